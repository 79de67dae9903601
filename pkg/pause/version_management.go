// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pause

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/schedule"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// field is the field of an object that pauses its updates.
const field = "spec.versionManagement"

// maxExclusions is the maximum number of exclusions of an object.
const maxExclusions = 256

// management is the content of spec.versionManagement. The zero value pauses nothing.
type management struct {
	paused      bool
	pausedUntil time.Time // zero if no date is set
	window      *window   // nil without an enforcing window
	exclusions  []exclusion
}

// window is an enforcing maintenance window.
type window struct {
	schedule schedule.Schedule
	duration time.Duration
}

// exclusion is an enforcing exclusion.
type exclusion struct{ start, end time.Time }

// parse parses spec.versionManagement as decoded from JSON; nil is valid. It returns an error
// unless every part has the documented structure, because an unknown field may be a pause that this
// version does not support.
func parse(value any) (management, error) {
	fields, err := object(field, value, "pausedUntil", "maintenanceWindow", "exclusions")
	if err != nil {
		return management{}, err
	}
	var m management
	if m.paused, m.pausedUntil, err = parsePausedUntil(fields["pausedUntil"]); err != nil {
		return management{}, err
	}
	if m.window, err = parseWindow(fields["maintenanceWindow"]); err != nil {
		return management{}, err
	}
	if m.exclusions, err = parseExclusions(fields["exclusions"]); err != nil {
		return management{}, err
	}
	return m, nil
}

// IsEndless reports whether spec.versionManagement pauses updates until a user ends the pause.
func IsEndless(value any) bool {
	m, err := parse(value)
	return err == nil && m.paused
}

func parsePausedUntil(value any) (paused bool, until time.Time, err error) {
	switch value := value.(type) {
	case nil:
		return false, time.Time{}, nil
	case bool:
		return value, time.Time{}, nil
	case string:
		switch strings.ToLower(value) {
		case "true":
			return true, time.Time{}, nil
		case "false", "":
			return false, time.Time{}, nil
		}
		if until, err = time.Parse(time.RFC3339, value); err == nil {
			return false, until, nil
		}
		return false, time.Time{}, fmt.Errorf("%s.pausedUntil is %q, not \"true\", \"false\", or a time such as 2026-05-01T12:00:00Z", field, text.Excerpt(value))
	}
	return false, time.Time{}, fmt.Errorf("%s.pausedUntil is %s, not a string", field, typeName(value))
}

func parseWindow(value any) (*window, error) {
	const name = field + ".maintenanceWindow"
	fields, err := object(name, value, "enforcing", "cron", "location", "duration")
	if err != nil || fields == nil {
		return nil, err
	}
	enforcing, err := boolean(name+".enforcing", fields["enforcing"])
	if err != nil {
		return nil, err
	}
	cron, err := str(name+".cron", fields["cron"])
	if err != nil {
		return nil, err
	}
	location, err := str(name+".location", fields["location"])
	if err != nil {
		return nil, err
	}
	duration, err := str(name+".duration", fields["duration"])
	if err != nil {
		return nil, err
	}
	if location == "" {
		location = "UTC"
	}
	w := &window{}
	if w.schedule, err = schedule.Parse(cron, "", location); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if w.duration, err = time.ParseDuration(duration); err != nil || w.duration <= 0 {
		return nil, fmt.Errorf("%s.duration is %q, not a length of time such as 4h", name, text.Excerpt(duration))
	}
	if !enforcing {
		return nil, nil
	}
	return w, nil
}

func parseExclusions(value any) ([]exclusion, error) {
	const name = field + ".exclusions"
	if value == nil {
		return nil, nil
	}
	list, isList := value.([]any)
	switch {
	case !isList:
		return nil, fmt.Errorf("%s is %s, not a list", name, typeName(value))
	case len(list) > maxExclusions:
		return nil, fmt.Errorf("%s has %d items, more than %d", name, len(list), maxExclusions)
	}
	var exclusions []exclusion
	for i, item := range list {
		parsed, enforcing, err := parseExclusion(fmt.Sprintf("%s[%d]", name, i), item)
		if err != nil {
			return nil, err
		}
		if enforcing {
			exclusions = append(exclusions, parsed)
		}
	}
	return exclusions, nil
}

func parseExclusion(name string, value any) (parsed exclusion, enforcing bool, err error) {
	fields, err := object(name, value, "enforcing", "start", "end")
	if err != nil {
		return exclusion{}, false, err
	}
	if enforcing, err = boolean(name+".enforcing", fields["enforcing"]); err != nil {
		return exclusion{}, false, err
	}
	if parsed.start, err = instant(name+".start", fields["start"]); err != nil {
		return exclusion{}, false, err
	}
	if parsed.end, err = instant(name+".end", fields["end"]); err != nil {
		return exclusion{}, false, err
	}
	if !parsed.end.After(parsed.start) {
		return exclusion{}, false, fmt.Errorf("%s ends before it starts", name)
	}
	return parsed, enforcing, nil
}

// object returns the fields of an object, or nil if it is missing. All fields must be known.
func object(name string, value any, known ...string) (map[string]any, error) {
	if value == nil {
		return nil, nil
	}
	fields, isObject := value.(map[string]any)
	if !isObject {
		return nil, fmt.Errorf("%s is %s, not an object", name, typeName(value))
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, key) {
			return nil, fmt.Errorf("%s has the unknown field %q", name, text.Excerpt(key))
		}
	}
	return fields, nil
}

func boolean(name string, value any) (bool, error) {
	if value == nil {
		return false, nil
	}
	parsed, isBool := value.(bool)
	if !isBool {
		return false, fmt.Errorf("%s is %s, not true or false", name, typeName(value))
	}
	return parsed, nil
}

func str(name string, value any) (string, error) {
	if value == nil {
		return "", nil
	}
	parsed, isString := value.(string)
	if !isString {
		return "", fmt.Errorf("%s is %s, not a string", name, typeName(value))
	}
	return parsed, nil
}

func instant(name string, value any) (time.Time, error) {
	written, err := str(name, value)
	if err != nil {
		return time.Time{}, err
	}
	parsed, err := time.Parse(time.RFC3339, written)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s is %q, not a time such as 2026-05-01T12:00:00Z", name, text.Excerpt(written))
	}
	return parsed, nil
}

// typeName returns the JSON name of a value's type.
func typeName(value any) string {
	switch value.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return "a string"
	case bool:
		return "true or false"
	}
	return "a number"
}

// errNever is returned if a pause has no end.
var errNever = errors.New("no end")

// end returns the first time at or after at when the window is open.
func (w *window) end(at time.Time) (time.Time, error) {
	start, found := w.schedule.Next(at.Add(-w.duration))
	switch {
	case !found:
		return time.Time{}, errNever
	case start.After(at):
		return start.UTC(), nil
	}
	return at, nil
}

// endAfter returns the first time at or after at that is outside the exclusion.
func (e exclusion) endAfter(at time.Time) time.Time {
	if at.Before(e.start) || !at.Before(e.end) {
		return at
	}
	return e.end.UTC()
}
