// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config/strict"
)

// Value is the value of a setting with its default and its valid values.
type Value interface {
	// DefaultText returns the default in the format of the file.
	DefaultText() string
	// Range describes the valid values.
	Range() string

	// reset sets the value to its default.
	reset()
	// clear prepares the value for decoding, which would otherwise mix the items of a list with the
	// default.
	clear()
	// complete sets the default if the file does not contain the value or sets it to null.
	complete()
	// validate returns all errors in the value.
	validate(path *field.Path) field.ErrorList
}

// DurationSetting is a setting with a duration.
type DurationSetting struct {
	Value    *Duration
	Default  time.Duration
	Min, Max time.Duration
}

// DefaultText returns the default.
func (s DurationSetting) DefaultText() string { return Duration{Duration: s.Default}.String() }

// Range returns the minimum and the maximum.
func (s DurationSetting) Range() string {
	return fmt.Sprintf("%s to %s", Duration{Duration: s.Min}, Duration{Duration: s.Max})
}

func (s DurationSetting) reset() { *s.Value = Duration{Duration: s.Default} }

func (s DurationSetting) clear() { s.Value.unset = true }

func (s DurationSetting) complete() {
	if s.Value.unset {
		s.reset()
	}
}

func (s DurationSetting) validate(path *field.Path) field.ErrorList {
	switch value := s.Value; {
	case value.invalid != "":
		return field.ErrorList{field.Invalid(path, strict.Sanitize(strings.Trim(value.invalid, `"`)), "must be a duration with its unit, for example 90s, 30m, or 2h30m")}
	case value.Duration < s.Min || value.Duration > s.Max:
		return field.ErrorList{field.Invalid(path, value.String(), fmt.Sprintf("must be between %s and %s", Duration{Duration: s.Min}, Duration{Duration: s.Max}))}
	}
	return nil
}

// StringSetting is a setting with a string, possibly empty.
type StringSetting struct {
	Value   *string
	Default string
	MaxLen  int // in bytes
}

// DefaultText returns the default.
func (t StringSetting) DefaultText() string { return strconv.Quote(t.Default) }

// Range returns the maximum length.
func (t StringSetting) Range() string { return fmt.Sprintf("up to %d bytes", t.MaxLen) }

func (t StringSetting) reset() { *t.Value = t.Default }

func (StringSetting) clear() {}

func (StringSetting) complete() {}

func (t StringSetting) validate(path *field.Path) field.ErrorList {
	if len(*t.Value) > t.MaxLen {
		return field.ErrorList{field.TooLong(path, field.OmitValueType{}, t.MaxLen)}
	}
	return nil
}

// StringListSetting is a setting with a list of non-empty strings.
type StringListSetting struct {
	Value    *[]string
	Default  []string
	MaxItems int
	MaxLen   int // of each item, in bytes
}

// DefaultText returns the default.
func (l StringListSetting) DefaultText() string { return "[" + strings.Join(l.Default, ", ") + "]" }

// Range returns the maximum number and length of the items.
func (l StringListSetting) Range() string {
	return fmt.Sprintf("up to %d, each of 1 to %d bytes", l.MaxItems, l.MaxLen)
}

func (l StringListSetting) reset() { *l.Value = append([]string{}, l.Default...) }

func (l StringListSetting) clear() { *l.Value = nil }

func (l StringListSetting) complete() {
	if *l.Value == nil {
		l.reset()
	}
}

func (l StringListSetting) validate(path *field.Path) field.ErrorList {
	if len(*l.Value) > l.MaxItems {
		return field.ErrorList{field.TooMany(path, len(*l.Value), l.MaxItems)}
	}
	var errs field.ErrorList
	for i, item := range *l.Value {
		switch {
		case item == "":
			errs = append(errs, field.Required(path.Index(i), "must not be empty"))
		case len(item) > l.MaxLen:
			errs = append(errs, field.TooLong(path.Index(i), field.OmitValueType{}, l.MaxLen))
		}
	}
	return errs
}

// EnumSetting is a setting with one of several allowed values.
type EnumSetting struct {
	Value   *string
	Default string
	Allowed []string
}

// DefaultText returns the default.
func (e EnumSetting) DefaultText() string { return e.Default }

// Range returns the allowed values.
func (e EnumSetting) Range() string { return "one of " + strings.Join(e.Allowed, ", ") }

func (e EnumSetting) reset() { *e.Value = e.Default }

func (EnumSetting) clear() {}

func (EnumSetting) complete() {}

func (e EnumSetting) validate(path *field.Path) field.ErrorList {
	if !slices.Contains(e.Allowed, *e.Value) {
		return field.ErrorList{field.NotSupported(path, strict.Sanitize(*e.Value), e.Allowed)}
	}
	return nil
}

// EnumListSetting is a setting with a list of allowed values. It defaults to an empty list.
type EnumListSetting struct {
	Value   *[]string
	Allowed []string
}

// DefaultText returns an empty list.
func (EnumListSetting) DefaultText() string { return "[]" }

// Range returns the allowed values.
func (c EnumListSetting) Range() string { return "any of " + strings.Join(c.Allowed, ", ") }

func (c EnumListSetting) reset() { *c.Value = []string{} }

func (c EnumListSetting) clear() { *c.Value = nil }

func (c EnumListSetting) complete() {
	if *c.Value == nil {
		c.reset()
	}
}

func (c EnumListSetting) validate(path *field.Path) field.ErrorList {
	if len(*c.Value) > len(c.Allowed) {
		return field.ErrorList{field.TooMany(path, len(*c.Value), len(c.Allowed))}
	}
	var errs field.ErrorList
	for i, name := range *c.Value {
		if !slices.Contains(c.Allowed, name) {
			errs = append(errs, field.NotSupported(path.Index(i), strict.Sanitize(name), c.Allowed))
		}
	}
	return errs
}

// ObjectsSetting is a setting with a list of conditions on objects. It defaults to an empty list.
// The items are validated where the conditions are used.
type ObjectsSetting struct {
	Value    *[]ObjectCheck
	MaxItems int
}

// DefaultText returns an empty list.
func (ObjectsSetting) DefaultText() string { return "[]" }

// Range returns the maximum number of items.
func (o ObjectsSetting) Range() string { return fmt.Sprintf("up to %d", o.MaxItems) }

func (o ObjectsSetting) reset() { *o.Value = nil }

func (o ObjectsSetting) clear() { *o.Value = nil }

func (ObjectsSetting) complete() {}

func (o ObjectsSetting) validate(path *field.Path) field.ErrorList {
	if len(*o.Value) > o.MaxItems {
		return field.ErrorList{field.TooMany(path, len(*o.Value), o.MaxItems)}
	}
	return nil
}
