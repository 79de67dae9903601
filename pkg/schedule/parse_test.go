// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/schedule"
)

func TestParse_rejects(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cron, week, location string
		want                 string // part of the error
	}{
		"empty cron":               {"", "", "UTC", "cron"},
		"four fields":              {"0 22 * *", "", "UTC", "4 fields"},
		"seconds":                  {"0 0 22 * * 2", "", "UTC", "6 fields"},
		"shortcut":                 {"@daily", "", "UTC", "shortcuts"},
		"shortcut with arguments":  {"@every 1h x y z", "", "UTC", "shortcuts"},
		"time zone in cron":        {"TZ=UTC 0 22 * * 2", "", "UTC", "location"},
		"CRON_TZ in cron":          {"CRON_TZ=UTC 0 22 * * 2", "", "UTC", "location"},
		"minute out of range":      {"60 22 * * 2", "", "UTC", "cron"},
		"hour out of range":        {"0 24 * * 2", "", "UTC", "cron"},
		"day zero":                 {"0 0 0 * *", "", "UTC", "cron"},
		"month 13":                 {"0 0 1 13 *", "", "UTC", "cron"},
		"weekday 8":                {"0 0 * * 8", "", "UTC", "cron"},
		"range from hour 24":       {"0 24-15 * * *", "", "UTC", "24 is not a number from 0 to 23"},
		"steps from hour 24":       {"0 24/16 * * *", "", "UTC", "24 is not a number from 0 to 23"},
		"range to month zero":      {"0 0 1 feb-00 *", "", "UTC", "00 is not a number from 1 to 12"},
		"steps from weekday 8":     {"0 0 * * 8/6", "", "UTC", "8 is not a number from 0 to 7"},
		"empty list item":          {"0,,5 0 * * *", "", "UTC", "empty list item"},
		"trailing comma":           {"0 0 * * 1,", "", "UTC", "empty list item"},
		"step zero":                {"*/0 0 * * *", "", "UTC", "cron"},
		"last day of the month":    {"0 0 L * *", "", "UTC", "cron"},
		"nth weekday":              {"0 0 * * 5#3", "", "UTC", "cron"},
		"long cron":                {strings.Repeat("1,", 200) + "1 0 * * *", "", "UTC", "longer"},
		"week zero":                {"0 0 * * *", "0", "UTC", "isoWeek"},
		"week 54":                  {"0 0 * * *", "54", "UTC", "isoWeek"},
		"unknown rhythm":           {"0 0 * * *", "@third", "UTC", "isoWeek"},
		"week range that is empty": {"0 0 * * *", "20-10", "UTC", "ends before it starts"},
		"empty week in a list":     {"0 0 * * *", "1,,3", "UTC", "isoWeek"},
		"week step zero":           {"0 0 * * *", "*/0", "UTC", "isoWeek"},
		"week with a sign":         {"0 0 * * *", "+7", "UTC", "isoWeek"},
		"week of a wide number":    {"0 0 * * *", "4294967297", "UTC", "isoWeek"},
		"unknown zone":             {"0 0 * * *", "", "Europe/Atlantis", "Europe/Atlantis"},
		"no zone":                  {"0 0 * * *", "", "", "location"},
		"zone of the machine":      {"0 0 * * *", "", "Local", "location"},
		"offset":                   {"0 0 * * *", "", "+01:00", "location"},
		"path":                     {"0 0 * * *", "", "../etc/passwd", "location"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := schedule.Parse(tc.cron, tc.week, tc.location)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one that names %q", err, tc.want)
			}
			if next, runs := s.Next(time.Unix(0, 0)); runs {
				t.Errorf("what was rejected starts at %s", next)
			}
		})
	}
}

func TestParse_names_every_invalid_expression(t *testing.T) {
	t.Parallel()
	_, err := schedule.Parse("0 25 * * *", "99", "Nowhere")
	for _, name := range []string{"cron", "isoWeek", "location"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
}

func TestParse_accepts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ cron, week string }{
		{"0 22 * * 2", "@odd"},
		{"0 22 * * TUE,THU", "@even"},
		{"  */15   8-18  1-7 JAN-MAR mon-fri ", ""},
		{"0 0 ? * ?", "1-53/2"},
		{"0 0 * * 0-7", "53"},
		{"0 22-2 * * *", "7,10-20,*/4,30/5"},
	} {
		if _, err := schedule.Parse(tc.cron, tc.week, "Europe/Zurich"); err != nil {
			t.Errorf("%q in weeks %q: %v", tc.cron, tc.week, err)
		}
	}
}

func TestParse_week_expressions(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string][]int{
		"7": {7}, "1,53": {1, 53}, "10-12": {10, 11, 12}, "10-15/2": {10, 12, 14}, "*/20": {1, 21, 41}, "40/6": {40, 46, 52},
	} {
		t.Run(expression, func(t *testing.T) {
			t.Parallel()
			s := parse(t, "0 0 * * 4", expression, "UTC") // 2026 has 53 weeks, each with a Thursday
			seen := map[int]bool{}
			for next, end := at(t, "2025-12-31T23:59:00Z"), at(t, "2027-01-01T00:00:00Z"); ; {
				next, _ = s.Next(next)
				if !next.Before(end) {
					break
				}
				_, week := next.ISOWeek()
				seen[week] = true
			}
			for _, week := range want {
				if !seen[week] {
					t.Errorf("no start in week %d", week)
				}
				delete(seen, week)
			}
			if len(seen) > 0 {
				t.Errorf("starts in weeks %v as well", seen)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("0 22 * * 2", "@odd", "Europe/Zurich", int64(1_800_000_000))
	f.Add("*/7 2-4 31 2,3 SUN", "1-53/3", "Australia/Lord_Howe", int64(-1))
	f.Add("0 0 29 2 *", "53,", "America/Nuuk", int64(1)<<40)
	f.Fuzz(func(t *testing.T, cron, week, location string, base int64) {
		s, err := schedule.Parse(cron, week, location)
		if err != nil {
			if len(err.Error()) > 2048 {
				t.Errorf("error of %d bytes", len(err.Error()))
			}
			return
		}
		from := time.Unix(base%(1<<38), 0)
		next, runs := s.Next(from)
		if runs && !next.After(from) {
			t.Errorf("%q, %q, %s: %s does not come after %s", cron, week, location, next, from)
		}
	})
}
