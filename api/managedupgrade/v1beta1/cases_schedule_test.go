// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"fmt"
	"strings"
)

const schedulePath = "spec.schedule."

// validCrons are accepted by the schema and by package schedule.
var validCrons = []string{
	"* * * * *", "0 22 * * 2", "59 23 31 12 7", "00 07 01 01 00", "0,30 8-18 1-7 1,6-12 0", "*/15 */2 */5 */3 */2", "*/59 */23 */30 */11 */7",
	"0 22 * * TUE,THU", "0 22 * jan-Mar mon-fri", "0 22 ? * ?", "5/10 1/5 1/7 1/2 1/2", "0-30/7 0-12/3 1-20/4 1-6/2 1-5/2", "0 22-2 * * *",
	"   0   22  *  * 2  ", "0 0 29 2 *", "0 0 31 4 *", "*,5 0 * * *",
}

// scheduleCases are cases of UpgradeConfigs' schedules.
func scheduleCases() map[string]testCase {
	cases := map[string]testCase{
		"no schedule":                     {edits: []edit{{"spec.schedule", nil}}, want: []string{"spec.schedule: Required value"}},
		"no cron":                         {edits: []edit{{schedulePath + "cron", nil}}, want: []string{"spec.schedule: " + missingCron}},
		"no cron, rhythm Cron":            {edits: []edit{{schedulePath + "cron", nil}, {schedulePath + "rhythm", "Cron"}}, want: []string{"spec.schedule: " + missingCron}},
		"no cron, rhythm UpdateAvailable": {edits: []edit{{schedulePath + "cron", nil}, {schedulePath + "rhythm", "UpdateAvailable"}}},
		"cron and rhythm UpdateAvailable": {edits: []edit{{schedulePath + "rhythm", "UpdateAvailable"}}},
		"unknown rhythm":                  {edits: []edit{{schedulePath + "rhythm", "Weekly"}}, want: []string{`spec.schedule.rhythm: supported values: "Cron", "UpdateAvailable"`}},
		"cron of 256 characters":          {edits: []edit{{schedulePath + "cron", "0 22 * * 2" + strings.Repeat(" ", 246)}}},
		"cron of 257 characters":          {edits: []edit{{schedulePath + "cron", "0 22 * * 2" + strings.Repeat(" ", 247)}}, want: []string{"spec.schedule.cron: may not be more than 256 bytes"}},
		"empty cron":                      {edits: []edit{{schedulePath + "cron", ""}}, want: []string{"spec.schedule.cron: should be at least 1 chars long", "spec.schedule.cron: " + invalidCron}},
		"cron that is a number":           {edits: []edit{{schedulePath + "cron", int64(0)}}, want: []string{`spec.schedule.cron: must be of type string: "integer"`}},
		"suspended":                       {edits: []edit{{schedulePath + "suspend", true}}},
		"suspended by a word":             {edits: []edit{{schedulePath + "suspend", "yes"}}, want: []string{`spec.schedule.suspend: must be of type boolean: "string"`}},
		"no week":                         {edits: []edit{{schedulePath + "isoWeek", nil}}},
		"weeks of 257 characters":         {edits: []edit{{schedulePath + "isoWeek", strings.Repeat("1,", 128) + "1"}}, want: []string{"spec.schedule.isoWeek: may not be more than 256 bytes"}},
		"location of 65 characters":       {edits: []edit{{schedulePath + "location", strings.Repeat("A", 65)}}, want: []string{"spec.schedule.location: may not be more than 64 bytes"}},
		"week that is a number":           {edits: []edit{{schedulePath + "isoWeek", int64(7)}}, want: []string{`spec.schedule.isoWeek: must be of type string: "integer"`}},
		"no location":                     {edits: []edit{{schedulePath + "location", nil}}},
		"empty location":                  {edits: []edit{{schedulePath + "location", ""}}, want: []string{"spec.schedule.location: should be at least 1 chars long", "spec.schedule.location: " + invalidLocation}},
		"unknown field of the schedule":   {edits: []edit{{schedulePath + "timezone", "UTC"}}, want: []string{`strict decoding error: unknown field "spec.schedule.timezone"`}},
	}
	add := func(field, value string, want ...string) {
		for i := range want {
			want[i] = schedulePath + field + ": " + want[i]
		}
		cases[fmt.Sprintf("%s %q", field, value)] = testCase{edits: []edit{{schedulePath + field, value}}, want: want}
	}
	for _, cron := range validCrons {
		add("cron", cron)
	}
	for message, crons := range map[string][]string{
		invalidCron:       {"0 22 * *", "0 0 22 * * 2", "@daily", "@every 1h", "TZ=UTC 0 22 * * 2", "CRON_TZ=Europe/Zurich 0 22 * * 2", "never", " "},
		invalidMinute:     {"60 22 * * 2", "-1 22 * * 2", "0-60 22 * * 2", "*/60 22 * * 2", "0, 22 * * 2", ",0 22 * * 2", "0,,5 22 * * 2", "*-5 22 * * 2", "a 22 * * 2", "+5 22 * * 2", "0/ 22 * * 2", "0-1-2 22 * * 2", "1/2/3 22 * * 2", "TZ=UTC 22 * * 2", "H 22 * * 2"},
		invalidHour:       {"0 24 * * 2", "0 22-24 * * 2", "0 */24 * * 2", "0 22h * * 2", "0 22, * * 2", "0 0-99 * * 2"},
		invalidDayOfMonth: {"0 22 0 * 2", "0 22 32 * 2", "0 22 L * *", "0 22 15W * *", "0 22 */31 * *", "0 22 MON * *", "0 22 1-40 * *"},
		invalidMonth:      {"0 22 * 0 2", "0 22 * 13 2", "0 22 * january 2", "0 22 * */12 2", "0 22 * MON 2", "0 22 * JAN- 2"},
		invalidWeekday:    {"0 22 * * 8", "0 22 * * tuesday", "0 22 * * 5#3", "0 22 * * 5L", "0 22 * * */8", "0 22 * * JAN", "0 22 * * MON-", "0 22 * * 2\n", "0 22 * * 2\t"},
		zeroStep:          {"*/0 22 * * 2", "0 22 * * */0", "0 0/00,5 * * 2", "0 22 1-7/0 * 2"},
	} {
		for _, cron := range crons {
			add("cron", cron, message)
		}
	}
	add("cron", "60 24 0 13 8", invalidMinute, invalidHour, invalidDayOfMonth, invalidMonth, invalidWeekday)
	for _, weeks := range []string{"", "@odd", "@even", "7", "07", "1,53", "10-20", "*", "*/4", "1-53/2", "30/5", "7,10-20,*/4,30/5", "53-53"} {
		add("isoWeek", weeks)
	}
	for message, all := range map[string][]string{
		invalidWeek:      {"0", "54", "@third", "odd", "@ODD", "1,,3", "1,", "*/0", "1-", "-1", "+7", "1-2-3", "1/2/3", "7 ", "1, 2", "W7", "7\n"},
		invalidWeekRange: {"50-2", "1,20-10", "20-10/2"},
	} {
		for _, weeks := range all {
			add("isoWeek", weeks, message)
		}
	}
	for _, zone := range []string{"UTC", "Europe/Zurich", "America/Argentina/Buenos_Aires", "America/Port-au-Prince", "Etc/GMT+1", "EST5EDT", "GMT0", "Pacific/Kwajalein"} {
		add("location", zone)
	}
	for _, zone := range []string{"Local", "+01:00", "01:00", "-05:30", "../etc/passwd", "/UTC", "Europe/", "Europe Zurich", "UTC\n", "Zürich"} {
		add("location", zone, invalidLocation)
	}
	for _, zone := range []string{"Europe/Atlantis", "europe/zurich/altstadt", "CESTX"} {
		add("location", zone, unknownLocation)
	}
	return cases
}
