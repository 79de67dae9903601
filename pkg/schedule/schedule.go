// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"math/bits"
	"time"
)

// horizon is the number of years that Next searches. Rare dates recur within 40 years: a leap year
// that starts on a given weekday recurs after 28 years, or after 40 years if a year such as 2100 is
// in between.
const horizon = 41

// Schedule selects minutes on the wall clock of a location. The zero value selects none.
type Schedule struct {
	minutes, hours   uint64 // bit n represents n
	daysOfMonth      uint64
	months           uint64
	weekdays         uint64 // bit 0 is Sunday
	weeks            uint64 // ISO 8601 weeks, 1 to 53
	eitherDayMatches bool   // both day of month and weekday are restricted
	location         *time.Location
}

// Location returns the location of the schedule's wall clock. It is UTC for the zero value.
func (s Schedule) Location() *time.Location {
	if s.location == nil {
		return time.UTC
	}
	return s.location
}

// Next returns the first start after base, in the schedule's location. It returns false if there is
// none within 41 years: then the schedule never runs.
func (s Schedule) Next(base time.Time) (time.Time, bool) {
	base = base.In(s.Location())
	wall := wallClock(base).Truncate(time.Minute)
	last := wall.AddDate(horizon, 0, 0)
	for {
		next, found := s.nextMinute(wall.Add(time.Minute), last)
		if !found {
			return time.Time{}, false
		}
		if start := firstShown(next, s.Location()); start.After(base) {
			return start, true
		}
		wall = next // already shown before base, because clocks were set back
	}
}

// NeverRuns reports whether the schedule selects only days that never occur, such as February 30.
func (s Schedule) NeverRuns() bool {
	_, runs := s.Next(time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC))
	return !runs
}

// nextMinute returns the first minute in [from, last) that the schedule selects. All times are
// wall-clock times represented in UTC.
func (s Schedule) nextMinute(from, last time.Time) (time.Time, bool) {
	year, month, day := from.Date()
	date := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	for date.Before(last) {
		switch {
		case s.months&(1<<date.Month()) == 0:
			date = time.Date(date.Year(), date.Month()+1, 1, 0, 0, 0, 0, time.UTC)
			continue
		case s.selectsDay(date):
			if offset, found := s.nextInDay(max(from.Sub(date), 0)); found {
				return date.Add(offset), true
			}
		}
		date = date.AddDate(0, 0, 1)
	}
	return time.Time{}, false
}

// selectsDay reports whether the schedule selects minutes on a day in a selected month.
func (s Schedule) selectsDay(date time.Time) bool {
	ofMonth := s.daysOfMonth&(1<<date.Day()) != 0
	ofWeek := s.weekdays&(1<<date.Weekday()) != 0
	selected := ofMonth && ofWeek || s.eitherDayMatches && (ofMonth || ofWeek)
	if !selected {
		return false
	}
	_, week := date.ISOWeek()
	return s.weeks&(1<<week) != 0
}

// nextInDay returns the first selected minute at or after from. Both are durations since midnight.
func (s Schedule) nextInDay(from time.Duration) (time.Duration, bool) {
	hour, minute := int(from/time.Hour), int(from%time.Hour/time.Minute)
	for ; hour < 24; hour, minute = hour+1, 0 {
		if s.hours&(1<<hour) == 0 {
			continue
		}
		if left := s.minutes >> minute; left != 0 {
			minute += bits.TrailingZeros64(left)
			return time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute, true
		}
	}
	return 0, false
}

// maxOffset exceeds every UTC offset that any location has ever had.
const maxOffset = 24 * time.Hour

// firstShown returns the first instant when the location's wall clock shows the given time or a
// later one.
func firstShown(wall time.Time, location *time.Location) time.Time {
	t := wall.Add(-maxOffset).In(location)
	for {
		start, end := zoneBounds(t)
		_, offset := t.Zone()
		shown := wall.Add(-time.Duration(offset) * time.Second).In(location)
		switch {
		case !start.IsZero() && shown.Before(start): // in the gap before start
			return start
		case end.IsZero() || shown.Before(end):
			return shown
		}
		t = end
	}
}

// zoneBounds returns when the offset in effect at t started and a time until which it certainly
// lasts. Zero values stand for no limit. On the last day of a leap year, time.Time.ZoneBounds
// returns an end in the past (Go 1.26); in that case, zoneBounds returns the next quarter of an
// hour, since clocks change only then.
func zoneBounds(t time.Time) (start, end time.Time) {
	start, end = t.ZoneBounds()
	if !end.IsZero() && !end.After(t) {
		end = t.Truncate(15 * time.Minute).Add(15 * time.Minute)
	}
	return start, end
}

// wallClock returns the wall-clock time at t, represented in UTC.
func wallClock(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}
