// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // locations must not depend on files in the container image

	"github.com/netresearch/go-cron"
)

// maxLength is the maximum length of each expression, in bytes.
const maxLength = 256

// lastWeek is the highest ISO 8601 week number.
const lastWeek = 53

var cronParser = cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.DowOrDom)

// Parse returns the schedule for a cron expression, an ISO week expression, and a location.
//
// The five fields of the cron expression are minute, hour, day (of the month), month, and day of the
// week, where Sunday is 0 or 7. If both day fields are restricted (neither is *, ?, or */1), a day
// matches if it matches either field.
//
// The week expression is empty for every week, @odd, @even, or a list of weeks from 1 to 53,
// ranges, and steps, such as 7, 10-20, or */4.
//
// The location is a name in the IANA time zone database, such as Europe/Zurich.
//
// The error names each invalid expression and explains how to correct it.
func Parse(cronExpression, weekExpression, location string) (Schedule, error) {
	s, cronErr := parseCron(cronExpression)
	weeks, weekErr := parseWeeks(weekExpression)
	loc, locationErr := parseLocation(location)
	if err := errors.Join(cronErr, weekErr, locationErr); err != nil {
		return Schedule{}, err
	}
	s.weeks, s.location = weeks, loc
	return s, nil
}

func parseCron(expression string) (Schedule, error) {
	invalid := func(format string, args ...any) (Schedule, error) {
		return Schedule{}, fmt.Errorf("cron %.64q: %s; write five fields, for example 0 22 * * 2", expression, fmt.Sprintf(format, args...))
	}
	fields := strings.Fields(strings.ToLower(expression))
	switch {
	case len(expression) > maxLength:
		return invalid("longer than %d characters", maxLength)
	case len(fields) > 0 && strings.HasPrefix(fields[0], "@"):
		return invalid("shortcuts are not supported")
	case strings.Contains(expression, "="):
		return invalid("the time zone belongs in location")
	case len(fields) != 5:
		return invalid("%d fields", len(fields))
	}
	for i, field := range fields {
		if slices.Contains(strings.Split(field, ","), "") {
			return invalid("%q has an empty list item", field)
		}
		if number, found := outOfRange(field, i); found {
			return invalid("%.64q: %.16s is not a number from %d to %d", field, number, bounds[i].first, bounds[i].last)
		}
	}
	parsed, err := cronParser.Parse(strings.Join(fields, " "))
	if err != nil {
		return invalid("%v", err)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return invalid("not a schedule of minutes")
	}
	return Schedule{
		minutes: spec.Minute & mask(0, 59), hours: spec.Hour & mask(0, 23),
		daysOfMonth: spec.Dom & mask(1, 31), months: spec.Month & mask(1, 12), weekdays: spec.Dow & mask(0, 6),
		eitherDayMatches: isRestricted(fields[2]) && isRestricted(fields[4]),
	}, nil
}

// bounds are the limits of the fields. Sunday is both 0 and 7.
var bounds = [5]struct{ first, last int }{{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 7}}

// outOfRange returns the first number in a field that exceeds its bounds. The cron library accepts
// some of them, in ranges that wrap around and before steps.
func outOfRange(field string, i int) (string, bool) {
	for item := range strings.SplitSeq(field, ",") {
		span, _, _ := strings.Cut(item, "/")
		for part := range strings.SplitSeq(span, "-") {
			number, err := strconv.Atoi(part)
			if err == nil && (number < bounds[i].first || number > bounds[i].last) {
				return part, true
			}
		}
	}
	return "", false
}

// isRestricted reports whether a day field is more than a wildcard.
func isRestricted(field string) bool { return !slices.Contains([]string{"*", "?", "*/1"}, field) }

func parseWeeks(expression string) (uint64, error) {
	switch expression {
	case "":
		return mask(1, lastWeek), nil
	case "@odd":
		return every(1, lastWeek, 2), nil
	case "@even":
		return every(2, lastWeek, 2), nil
	}
	if len(expression) > maxLength {
		return 0, fmt.Errorf("isoWeek %.64q: longer than %d characters", expression, maxLength)
	}
	var weeks uint64
	for item := range strings.SplitSeq(expression, ",") {
		some, err := parseWeekItem(item)
		if err != nil {
			return 0, fmt.Errorf("isoWeek %.64q: %w; write @odd, @even, or weeks from 1 to %d, for example 7,10-20,*/4", expression, err, lastWeek)
		}
		weeks |= some
	}
	return weeks, nil
}

// parseWeekItem returns the weeks selected by a number, a range, or the wildcard, each with an
// optional step.
func parseWeekItem(item string) (uint64, error) {
	span, stepText, hasStep := strings.Cut(item, "/")
	step := 1
	if hasStep {
		var err error
		if step, err = parseWeekNumber(stepText); err != nil {
			return 0, err
		}
	}
	if span == "*" {
		return every(1, lastWeek, step), nil
	}
	firstText, lastText, isRange := strings.Cut(span, "-")
	first, err := parseWeekNumber(firstText)
	switch {
	case err != nil:
		return 0, err
	case !isRange && hasStep:
		return every(first, lastWeek, step), nil
	case !isRange:
		return mask(first, first), nil
	}
	last, err := parseWeekNumber(lastText)
	if err != nil {
		return 0, err
	}
	if last < first {
		return 0, fmt.Errorf("the range %s ends before it starts", span)
	}
	return every(first, last, step), nil
}

func parseWeekNumber(text string) (int, error) {
	number, err := strconv.ParseUint(text, 10, 8)
	if err != nil || number < 1 || number > lastWeek {
		return 0, fmt.Errorf("%.16q is not a number from 1 to %d", text, lastWeek)
	}
	return int(number), nil
}

func parseLocation(name string) (*time.Location, error) {
	const hint = "write a name of the IANA time zone database, for example Europe/Zurich or UTC"
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("location %q: %s", name, hint)
	}
	location, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("location %.64q: unknown time zone; %s", name, hint)
	}
	return location, nil
}

// mask returns a set of the bits from first to last.
func mask(first, last int) uint64 { return every(first, last, 1) }

// every returns a set of every step-th bit from first to last.
func every(first, last, step int) uint64 {
	var set uint64
	for n := first; n <= last; n += step {
		set |= 1 << n
	}
	return set
}
