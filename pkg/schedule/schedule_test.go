// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/schedule"
)

func parse(tb testing.TB, cron, week, location string) schedule.Schedule {
	tb.Helper()
	s, err := schedule.Parse(cron, week, location)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func at(tb testing.TB, text string) time.Time {
	tb.Helper()
	instant, err := time.Parse(time.RFC3339, text)
	if err != nil {
		tb.Fatal(err)
	}
	return instant
}

func TestNext(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cron, week, location string
		base                 string
		want                 []string
	}{
		"every second Tuesday": {
			cron: "0 22 * * 2", week: "@odd", location: "Europe/Zurich", base: "2027-02-20T00:00:00Z",
			want: []string{"2027-03-02T21:00:00Z", "2027-03-16T21:00:00Z", "2027-03-30T20:00:00Z"},
		},
		"base that is a start itself": {
			cron: "0 22 * * 2", location: "UTC", base: "2027-03-02T22:00:00Z",
			want: []string{"2027-03-09T22:00:00Z"},
		},
		"base just before a start": {
			cron: "0 22 * * 2", location: "UTC", base: "2027-03-02T21:59:59Z",
			want: []string{"2027-03-02T22:00:00Z"},
		},
		"minute in a gap": {
			cron: "15 2 * * *", location: "America/New_York", base: "2027-03-13T12:00:00Z",
			want: []string{"2027-03-14T07:00:00Z", "2027-03-15T06:15:00Z"},
		},
		"all minutes of a gap are one start": {
			cron: "* 2 14 3 *", location: "America/New_York", base: "2027-03-13T12:00:00Z",
			want: []string{"2027-03-14T07:00:00Z", "2028-03-14T06:00:00Z"},
		},
		"minute that occurs twice": {
			cron: "30 1 * * *", location: "America/New_York", base: "2026-10-31T12:00:00Z",
			want: []string{"2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"},
		},
		"base in the second occurrence of an hour": {
			cron: "*/15 1 * * *", location: "America/New_York", base: "2026-11-01T06:10:00Z",
			want: []string{"2026-11-02T06:00:00Z"},
		},
		"gap of 30 minutes": {
			cron: "10 2 * * *", location: "Australia/Lord_Howe", base: "2026-10-03T12:00:00Z",
			want: []string{"2026-10-03T15:30:00Z", "2026-10-04T15:10:00Z"},
		},
		"gap at midnight": {
			cron: "0 0 * * *", location: "Africa/Cairo", base: "2026-04-23T12:00:00Z",
			want: []string{"2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z"},
		},
		"date that a location skipped": {
			cron: "0 9 21 8 *", location: "Pacific/Kwajalein", base: "1993-08-01T00:00:00Z",
			want: []string{"1993-08-21T12:00:00Z"},
		},
		"odd weeks around a year of 53": {
			cron: "0 22 * * 4", week: "@odd", location: "UTC", base: "2032-12-29T00:00:00Z",
			want: []string{"2032-12-30T22:00:00Z", "2033-01-06T22:00:00Z"},
		},
		"even weeks around a year of 53": {
			cron: "0 22 * * 4", week: "@even", location: "UTC", base: "2032-12-20T00:00:00Z",
			want: []string{"2032-12-23T22:00:00Z", "2033-01-13T22:00:00Z"},
		},
		"either of two restricted days": {
			cron: "0 0 13 * 5", location: "UTC", base: "2026-11-01T00:00:00Z",
			want: []string{"2026-11-06T00:00:00Z", "2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z"},
		},
		"wildcard with step 1 restricts no day": {
			cron: "0 0 */1 * 5", location: "UTC", base: "2026-11-01T00:00:00Z",
			want: []string{"2026-11-06T00:00:00Z", "2026-11-13T00:00:00Z"},
		},
		"Sunday written as 7": {
			cron: "0 0 * * 7", location: "UTC", base: "2026-11-22T00:00:00Z",
			want: []string{"2026-11-29T00:00:00Z"},
		},
		"leap day across 2100": {
			cron: "0 0 29 2 *", location: "UTC", base: "2096-03-01T00:00:00Z",
			want: []string{"2104-02-29T00:00:00Z"},
		},
		"last day of a leap year": {
			cron: "0 0,12 31 12 *", location: "Europe/Zurich", base: "2040-12-30T12:00:00Z",
			want: []string{"2040-12-30T23:00:00Z", "2040-12-31T11:00:00Z", "2041-12-30T23:00:00Z"},
		},
		"day that no month has": {cron: "0 0 31 2,4,6,9,11 *", location: "UTC", base: "2026-01-01T00:00:00Z"},
		"week that no day of the month is in": {
			cron: "0 0 1 7 *", week: "1", location: "UTC", base: "2026-01-01T00:00:00Z",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := parse(t, tc.cron, tc.week, tc.location)
			base := at(t, tc.base)
			var got []string
			for range max(len(tc.want), 1) {
				next, runs := s.Next(base)
				if !runs {
					break
				}
				if next.Location().String() != tc.location {
					t.Errorf("start in location %s", next.Location())
				}
				got = append(got, next.UTC().Format(time.RFC3339))
				base = next
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("starts (-want +got):\n%s", diff)
			}
			if never := s.NeverRuns(); never != (tc.want == nil) {
				t.Errorf("NeverRuns returns %t", never)
			}
		})
	}
}

// The search is limited to a number of years, so every date that is selected in some year must
// recur within it.
func TestNext_finds_rare_dates_from_every_year(t *testing.T) {
	t.Parallel()
	for _, rule := range []struct{ cron, week string }{
		{"0 0 29 2 *", ""},
		{"0 0 31 12 *", "53"},
		{"0 0 3 1 *", "53"},
		{"0 0 1 1 *", "@even"},
		{"0 0 1 1 *", "@odd"},
		{"0 0 29 12 *", "1"},
		{"0 0 29 2 *", "9"},
		{"0 0 28 12 *", "53"},
		{"0 0 27 12 *", "52"},
		{"0 0 1 1 *", "53"},
	} {
		s := parse(t, rule.cron, rule.week, "UTC")
		for year := 2000; year < 2400; year++ {
			if _, runs := s.Next(time.Date(year, time.June, 1, 0, 0, 0, 0, time.UTC)); !runs {
				t.Errorf("%s in weeks %q: no start after June %d", rule.cron, rule.week, year)
				break
			}
		}
	}
}

func TestNext_of_the_zero_schedule(t *testing.T) {
	t.Parallel()
	if next, runs := (schedule.Schedule{}).Next(time.Unix(0, 0)); runs {
		t.Errorf("starts at %s", next)
	}
}

func BenchmarkNext(b *testing.B) {
	const typical, worst = 20 * time.Microsecond, 5 * time.Millisecond
	for name, tc := range map[string]struct {
		cron, week string
		limit      time.Duration
	}{
		"fortnightly":       {"0 22 * * 2", "@odd", typical},
		"leap day":          {"0 0 29 2 *", "", worst},
		"never":             {"0 0 31 2 *", "", worst},
		"never by week":     {"0 0 1 * *", "@odd", worst},
		"never, all months": {"0 0 1-3 1-11 *", "52", worst},
	} {
		b.Run(name, func(b *testing.B) {
			s := parse(b, tc.cron, tc.week, "Europe/Zurich")
			base := at(b, "2096-03-01T00:00:00Z")
			b.ReportAllocs()
			for b.Loop() {
				s.Next(base)
			}
			if took := b.Elapsed() / time.Duration(b.N); took > tc.limit {
				b.Errorf("the next start takes %s, want at most %s", took, tc.limit)
			}
			if n := testing.AllocsPerRun(10, func() { s.Next(base) }); n > 0 {
				b.Errorf("the next start takes %.0f allocations, want none", n)
			}
		})
	}
}
