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
	// Unset is the value unless set, as it would be written.
	Unset() string
	// Bounds says what the value may be.
	Bounds() string

	reset()
	// read takes what is written in a file, if it is within the bounds.
	read(e entry) error
}

// Span is a duration.
type Span struct {
	Value         *Duration
	Default       time.Duration
	Least, AtMost time.Duration
}

// Unset is the default.
func (s Span) Unset() string { return Duration{s.Default}.String() }

// Bounds are both ends.
func (s Span) Bounds() string { return fmt.Sprintf("%s to %s", Duration{s.Least}, Duration{s.AtMost}) }

func (s Span) reset() { s.Value.Duration = s.Default }

func (s Span) read(e entry) error {
	value, err := time.ParseDuration(e.text)
	switch {
	case err != nil:
		return fmt.Errorf("is %s, must be a duration with its unit, such as 90s, 30m or 2h30m", e.shown())
	case value < s.Least || value > s.AtMost:
		return fmt.Errorf("is %s, must be between %s and %s", e.text, Duration{s.Least}, Duration{s.AtMost})
	}
	s.Value.Duration = value
	return nil
}

// Text is a string, which may be empty.
type Text struct {
	Value   *string
	Default string
	Longest int // in bytes
}

// Unset is the default.
func (t Text) Unset() string { return strconv.Quote(t.Default) }

// Bounds are how long it may be.
func (t Text) Bounds() string { return fmt.Sprintf("up to %d bytes", t.Longest) }

func (t Text) reset() { *t.Value = t.Default }

func (t Text) read(e entry) error {
	if err := e.within(0, t.Longest); err != nil {
		return err
	}
	*t.Value = e.text
	return nil
}

// List is a list of strings, none of which is empty.
type List struct {
	Value   *[]string
	Default []string
	Most    int // items
	Longest int // in bytes, each
}

// Unset is the default.
func (l List) Unset() string { return "[" + strings.Join(l.Default, ", ") + "]" }

// Bounds are how many there may be, and how long.
func (l List) Bounds() string {
	return fmt.Sprintf("up to %d, each of 1 to %d bytes", l.Most, l.Longest)
}

func (l List) reset() { *l.Value = append([]string{}, l.Default...) }

func (l List) read(e entry) error {
	switch {
	case !e.isList:
		return fmt.Errorf("is %s, must be a list, such as [] or [one, another]", e.shown())
	case len(e.items) > l.Most:
		return fmt.Errorf("has %d items, must have %d at most", len(e.items), l.Most)
	}
	values := make([]string, 0, len(e.items))
	var wrong []string
	for i, item := range e.items {
		if err := item.within(1, l.Longest); err != nil {
			wrong = append(wrong, fmt.Sprintf("item %d %s", i+1, err))
		}
		values = append(values, item.text)
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "; "))
	}
	*l.Value = values
	return nil
}

// Choice is a list of names out of a given set. Unset, it is empty.
type Choice struct {
	Value *[]string
	Of    []string
}

// Unset is the empty list.
func (Choice) Unset() string { return "[]" }

// Bounds are the names.
func (c Choice) Bounds() string { return "any of " + strings.Join(c.Of, ", ") }

func (c Choice) reset() { *c.Value = []string{} }

func (c Choice) read(e entry) error {
	var chosen []string
	if err := (List{Value: &chosen, Most: len(c.Of), Longest: longestName}).read(e); err != nil {
		return err
	}
	var wrong []string
	for i, name := range chosen {
		if !slices.Contains(c.Of, name) {
			wrong = append(wrong, fmt.Sprintf("item %d is %q, must be one of %s", i+1, name, strings.Join(c.Of, ", ")))
		}
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "; "))
	}
	*c.Value = chosen
	return nil
}

// within says whether a text is written there, of so many bytes.
func (e entry) within(least, most int) error {
	switch {
	case !e.isText:
		return fmt.Errorf("is %s, must be a text, in quotes if it is empty or could be something else", e.shown())
	case len(e.text) < least || len(e.text) > most:
		return fmt.Errorf("has %d bytes, must have %d to %d", len(e.text), least, most)
	}
	return nil
}
