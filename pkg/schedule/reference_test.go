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

// field is a field of an expression and the numbers that it selects.
type field struct {
	text    string
	numbers []int // nil for no restriction
}

// rule is a schedule. Both the reference and the expressions are derived from it.
type rule struct {
	minutes, hours, days, months, weekdays, weeks field
}

func (r rule) cron() string {
	return strings.Join([]string{r.minutes.text, r.hours.text, r.days.text, r.months.text, r.weekdays.text}, " ")
}

// selects reports whether the rule selects the minute shown by a wall clock, represented in UTC.
func (r rule) selects(wall time.Time) bool {
	in := func(f field, n int) bool { return f.numbers == nil || slices.Contains(f.numbers, n) }
	_, week := wall.ISOWeek()
	day := in(r.days, wall.Day()) && in(r.weekdays, int(wall.Weekday()))
	if r.days.numbers != nil && r.weekdays.numbers != nil {
		day = in(r.days, wall.Day()) || in(r.weekdays, int(wall.Weekday()))
	}
	return day && in(r.minutes, wall.Minute()) && in(r.hours, wall.Hour()) && in(r.months, int(wall.Month())) && in(r.weeks, week)
}

// slowNext follows the wall clock minute by minute, starting three days before base. A selected
// minute starts when the clock first shows it or a later minute.
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

var (
	monthNames   = []string{"", "jan", "FEB", "mar", "Apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	weekdayNames = []string{"sun", "MON", "tue", "Wed", "thu", "fri", "sat"}
)

// randomField returns a random list of at most the given number of items: numbers, names if there
// are any, ranges, and steps.
func randomField(rng *rand.Rand, first, last, most int, names []string) field {
	items := rng.IntN(most + 1)
	if items == 0 {
		return field{text: "*"}
	}
	name := func(n int) string {
		if n < len(names) && rng.IntN(3) == 0 {
			return names[n]
		}
		return strconv.Itoa(n)
	}
	var texts []string
	f := field{numbers: []int{}}
	for range items {
		from, step := first+rng.IntN(last-first+1), 1
		to := from + rng.IntN(last-from+1)
		var item string
		switch rng.IntN(6) {
		default:
			item, to = name(from), from
		case 3:
			item = name(from) + "-" + name(to)
		case 4:
			if size := to - from + 1; size > 2 { // a step must be smaller than the size
				step = 2 + rng.IntN(min(6, size-2))
			}
			item = fmt.Sprintf("%s-%s/%d", name(from), name(to), step)
		case 5:
			from, to, step = first, last, 2+rng.IntN(5)
			item = fmt.Sprintf("*/%d", step)
		}
		texts = append(texts, item)
		for n := from; n <= to; n += step {
			f.numbers = append(f.numbers, n)
		}
	}
	f.text = strings.Join(texts, ",")
	return f
}

func randomWeeks(rng *rand.Rand) field {
	steps := func(text string, from int) field {
		f := field{text: text}
		for n := from; n <= 53; n += 2 {
			f.numbers = append(f.numbers, n)
		}
		return f
	}
	switch rng.IntN(8) {
	case 0:
		return steps("@odd", 1)
	case 1:
		return steps("@even", 2)
	case 2:
		if f := randomField(rng, 1, 53, 20, nil); f.numbers != nil {
			return f
		}
	}
	return field{}
}

func randomRule(rng *rand.Rand) rule {
	all := field{text: "*"}
	r := rule{minutes: randomField(rng, 0, 59, 4, nil), hours: randomField(rng, 0, 23, 6, nil), days: all, months: all, weekdays: all, weeks: randomWeeks(rng)}
	switch rng.IntN(4) {
	case 0:
		r.days = randomField(rng, 1, 31, 12, nil)
	case 1:
		r.weekdays = randomField(rng, 0, 6, 4, weekdayNames)
	case 2:
		r.days, r.weekdays = randomField(rng, 1, 31, 4, nil), randomField(rng, 0, 6, 2, weekdayNames)
	}
	if rng.IntN(4) == 0 {
		r.months = randomField(rng, 1, 12, 8, monthNames)
	}
	return r
}

// zones returns the names of all time zones in the Go distribution.
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

// transitions returns the clock changes of a location between 2000 and 2040.
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

// isOdd reports whether a clock change is unusual: not by one hour at night, but by half an hour or
// a day, at midnight, or during the day.
func isOdd(change time.Time) bool {
	_, before := change.Add(-time.Second).Zone()
	_, after := change.Zone()
	by := max(after-before, before-after)
	wall := change.UTC().Add(time.Duration(before) * time.Second)
	return by != 0 && (by != 3600 || wall.Hour() == 0 || wall.Hour() > 4)
}

func TestNext_equals_a_slow_reference_around_clock_changes(t *testing.T) {
	if testing.Short() {
		t.Skip("it compares with what looks at each minute")
	}
	t.Parallel()
	const seed = 20270314
	rng := rand.New(rand.NewPCG(seed, 1))
	compared, changes, odd := 0, 0, 0
	compare := func(location *time.Location, change time.Time) {
		r := randomRule(rng)
		base := change.Add(time.Duration(rng.IntN(48*3600)-36*3600) * time.Second)
		want, found := slowNext(r, location, base, change.Add(30*time.Hour))
		got, runs := parse(t, r.cron(), r.weeks.text, location.String()).Next(base)
		if found && (!runs || !got.Equal(want)) || !found && runs && got.Before(change.Add(30*time.Hour)) {
			t.Errorf("%s, %q in weeks %q after %s: got %s (%t), want %s (%t)", location, r.cron(), r.weeks.text, base, got, runs, want, found)
		}
		if found {
			compared++
		}
	}
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
			compare(location, around[rng.IntN(len(around))])
		}
		for _, change := range around {
			if isOdd(change) {
				odd++
				compare(location, change)
			}
		}
	}
	t.Logf("%d starts around %d clock changes were compared; %d changes are odd, and each was tried", compared, changes, odd)
	if compared < 1000 || changes < 10_000 || odd < 500 {
		t.Error("too few")
	}
}

// The starts are the same, in the same order, for every base.
func TestNext_is_increasing_and_independent_of_the_base(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 7))
	for _, name := range []string{"UTC", "Europe/Zurich", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Pacific/Apia", "Asia/Tehran"} {
		for range 40 {
			r := randomRule(rng)
			s := parse(t, r.cron(), r.weeks.text, name)
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
