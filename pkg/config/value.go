// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Value is what a setting holds, what it holds unless set, and what it may hold.
type Value interface {
	// DefaultText is the value unless set, as it would be written.
	DefaultText() string
	// Range says what the value may be.
	Range() string

	reset()
	// read takes what is written in a file, if it is within the bounds.
	read(e node) error
}

// DurationSetting is a duration.
type DurationSetting struct {
	Value    *Duration
	Default  time.Duration
	Min, Max time.Duration
}

// DefaultText is the default.
func (s DurationSetting) DefaultText() string { return Duration{s.Default}.String() }

// Range are both ends.
func (s DurationSetting) Range() string {
	return fmt.Sprintf("%s to %s", Duration{s.Min}, Duration{s.Max})
}

func (s DurationSetting) reset() { s.Value.Duration = s.Default }

func (s DurationSetting) read(e node) error {
	value, err := time.ParseDuration(e.text)
	switch {
	case err != nil:
		return fmt.Errorf("is %s, must be a duration with its unit, such as 90s, 30m or 2h30m", e.quoted())
	case value < s.Min || value > s.Max:
		return fmt.Errorf("is %s, must be between %s and %s", e.text, Duration{s.Min}, Duration{s.Max})
	}
	s.Value.Duration = value
	return nil
}

// StringSetting is a string, which may be empty.
type StringSetting struct {
	Value   *string
	Default string
	MaxLen  int // in bytes
}

// DefaultText is the default.
func (t StringSetting) DefaultText() string { return strconv.Quote(t.Default) }

// Range are how long it may be.
func (t StringSetting) Range() string { return fmt.Sprintf("up to %d bytes", t.MaxLen) }

func (t StringSetting) reset() { *t.Value = t.Default }

func (t StringSetting) read(e node) error {
	if err := e.validateLength(0, t.MaxLen); err != nil {
		return err
	}
	*t.Value = e.text
	return nil
}

// StringListSetting is a list of strings, none of which is empty.
type StringListSetting struct {
	Value    *[]string
	Default  []string
	MaxItems int // items
	MaxLen   int // in bytes, each
}

// DefaultText is the default.
func (l StringListSetting) DefaultText() string { return "[" + strings.Join(l.Default, ", ") + "]" }

// Range are how many there may be, and how long.
func (l StringListSetting) Range() string {
	return fmt.Sprintf("up to %d, each of 1 to %d bytes", l.MaxItems, l.MaxLen)
}

func (l StringListSetting) reset() { *l.Value = append([]string{}, l.Default...) }

func (l StringListSetting) read(e node) error {
	switch {
	case !e.isList:
		return fmt.Errorf("is %s, must be a list, such as [] or [one, another]", e.quoted())
	case len(e.items) > l.MaxItems:
		return fmt.Errorf("has %d items, must have %d at most", len(e.items), l.MaxItems)
	}
	values := make([]string, 0, len(e.items))
	var errs []string
	for i, item := range e.items {
		if err := item.validateLength(1, l.MaxLen); err != nil {
			errs = append(errs, fmt.Sprintf("item %d %s", i+1, err))
		}
		values = append(values, item.text)
	}
	if len(errs) > 0 {
		return errors.New(strings.Join(errs, "; "))
	}
	*l.Value = values
	return nil
}

// EnumListSetting is a list of names out of a given set. Unset, it is empty.
type EnumListSetting struct {
	Value   *[]string
	Allowed []string
}

// DefaultText is the empty list.
func (EnumListSetting) DefaultText() string { return "[]" }

// Range are the names.
func (c EnumListSetting) Range() string { return "any of " + strings.Join(c.Allowed, ", ") }

func (c EnumListSetting) reset() { *c.Value = []string{} }

func (c EnumListSetting) read(e node) error {
	var chosen []string
	if err := (StringListSetting{Value: &chosen, MaxItems: len(c.Allowed), MaxLen: maxNameLen}).read(e); err != nil {
		return err
	}
	var errs []string
	for i, name := range chosen {
		if !slices.Contains(c.Allowed, name) {
			errs = append(errs, fmt.Sprintf("item %d is %q, must be one of %s", i+1, name, strings.Join(c.Allowed, ", ")))
		}
	}
	if len(errs) > 0 {
		return errors.New(strings.Join(errs, "; "))
	}
	*c.Value = chosen
	return nil
}

// validateLength says whether a text is written there, of so many bytes.
func (e node) validateLength(minLen, maxLen int) error {
	switch {
	case !e.isText:
		return fmt.Errorf("is %s, must be a text, in quotes if it is empty or could be something else", e.quoted())
	case len(e.text) < minLen || len(e.text) > maxLen:
		return fmt.Errorf("has %d bytes, must have %d to %d", len(e.text), minLen, maxLen)
	}
	return nil
}
