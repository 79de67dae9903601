// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"archive/zip"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// rule is a schedule as lists of numbers, from which the reference and the expressions are made.
type rule struct {
	minutes, hours, days, months, weekdays, weeks []int // an empty list restricts nothing
}

func (r rule) cron() string {
	return strings.Join([]string{list(r.minutes), list(r.hours), list(r.days), list(r.months), list(r.weekdays)}, " ")
}

func (r rule) week() string {
	if len(r.weeks) == 0 {
		return ""
	}
	return list(r.weeks)
}

func list(numbers []int) string {
	if len(numbers) == 0 {
		return "*"
	}
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, ",")
}

// selects reports whether the rule selects the minute that a wall clock shows, written as UTC.
func (r rule) selects(wall time.Time) bool {
	in := func(numbers []int, n int) bool { return len(numbers) == 0 || slices.Contains(numbers, n) }
	_, week := wall.ISOWeek()
	day := in(r.days, wall.Day()) && in(r.weekdays, int(wall.Weekday()))
	if len(r.days) > 0 && len(r.weekdays) > 0 {
		day = slices.Contains(r.days, wall.Day()) || slices.Contains(r.weekdays, int(wall.Weekday()))
	}
	return day && in(r.minutes, wall.Minute()) && in(r.hours, wall.Hour()) && in(r.months, int(wall.Month())) && in(r.weeks, week)
}

// slowNext follows the wall clock minute by minute, from three days before base: a selected minute
// starts when the clock first shows it or a later one.
func slowNext(r rule, location *time.Location, base, end time.Time) (time.Time, bool) {
	shown := func(t time.Time) time.Time {
		year, month, day := t.Date()
		return time.Date(year, month, day, t.Hour(), t.Minute(), 0, 0, time.UTC)
	}
	t := base.Add(-72 * time.Hour).Truncate(time.Minute).In(location)
	latest := shown(t)
	for ; t.Before(end); t = t.Add(time.Minute) {
		for now := shown(t); latest.Before(now); {
			latest = latest.Add(time.Minute)
			if t.After(base) && r.selects(latest) {
				return t, true
			}
		}
	}
	return time.Time{}, false
}

func randomRule(rng *rand.Rand) rule {
	some := func(first, last, most int) []int {
		numbers := make([]int, rng.IntN(most+1))
		for i := range numbers {
			numbers[i] = first + rng.IntN(last-first+1)
		}
		return numbers
	}
	r := rule{minutes: some(0, 59, 4), hours: some(0, 23, 6)}
	switch rng.IntN(4) {
	case 0:
		r.days = some(1, 31, 12)
	case 1:
		r.weekdays = some(0, 6, 4)
	case 2:
		r.days, r.weekdays = some(1, 31, 4), some(0, 6, 2)
	}
	if rng.IntN(4) == 0 {
		r.weeks = some(1, 53, 40)
	}
	return r
}

// zones returns the names of all zones that the Go distribution knows.
func zones(t *testing.T) []string {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = archive.Close() }()
	var names []string
	for _, file := range archive.File {
		if !strings.HasSuffix(file.Name, "/") && file.Name != "Factory" {
			names = append(names, file.Name)
		}
	}
	return names
}

// transitions returns the instants from 2000 to 2040 at which the clocks of a location were set, or
// will be.
func transitions(location *time.Location) []time.Time {
	var all []time.Time
	t := time.Date(2000, time.January, 1, 0, 0, 0, 0, location)
	for t.Year() <= 2040 {
		_, end := t.ZoneBounds()
		switch {
		case end.IsZero():
			return all
		case !end.After(t): // on the last day of a leap year
			end = t.Add(24 * time.Hour)
		default:
			all = append(all, end)
		}
		t = end
	}
	return all
}

func TestNext_equals_a_slow_reference_around_clock_changes(t *testing.T) {
	if testing.Short() {
		t.Skip("it compares with what looks at each minute")
	}
	t.Parallel()
	const seed = 20270314
	rng := rand.New(rand.NewPCG(seed, 1))
	compared, changes := 0, 0
	for _, name := range zones(t) {
		location, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		around := transitions(location)
		changes += len(around)
		if len(around) == 0 {
			around = []time.Time{time.Date(2020, time.December, 30, 0, 0, 0, 0, location)}
		}
		for range 3 {
			r := randomRule(rng)
			change := around[rng.IntN(len(around))]
			base := change.Add(time.Duration(rng.IntN(48*3600)-36*3600) * time.Second)
			want, found := slowNext(r, location, base, change.Add(30*time.Hour))
			got, runs := parse(t, r.cron(), r.week(), name).Next(base)
			if found && (!runs || !got.Equal(want)) || !found && runs && got.Before(change.Add(30*time.Hour)) {
				t.Errorf("%s, %q in weeks %q after %s: got %s (%t), want %s (%t)", name, r.cron(), r.week(), base, got, runs, want, found)
			}
			if found {
				compared++
			}
		}
	}
	if compared < 500 || changes < 10_000 {
		t.Errorf("only %d starts around %d clock changes were compared", compared, changes)
	}
}

// The starts are the same ones in the same order for every base.
func TestNext_is_increasing_and_independent_of_the_base(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 7))
	for _, name := range []string{"UTC", "Europe/Zurich", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Pacific/Apia", "Asia/Tehran"} {
		for range 40 {
			r := randomRule(rng)
			s := parse(t, r.cron(), r.week(), name)
			base := time.Unix(946_684_800+rng.Int64N(40*365*86400), rng.Int64N(1e9))
			for range 20 {
				next, runs := s.Next(base)
				if !runs {
					break
				}
				if !next.After(base) {
					t.Fatalf("%s %q: %s after %s", name, r.cron(), next, base)
				}
				between := base.Add(time.Duration(rng.Int64N(int64(next.Sub(base)))))
				if again, _ := s.Next(between); !again.Equal(next) {
					t.Fatalf("%s %q: from %s %s, from %s %s", name, r.cron(), base, next, between, again)
				}
				if wall := fmt.Sprint(next.Second(), next.Nanosecond()); wall != "0 0" {
					t.Fatalf("%s %q: %s is no whole minute", name, r.cron(), next)
				}
				base = next
			}
		}
	}
}
