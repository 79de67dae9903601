// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config/strict"
)

// Custom is the section of the file for upgraders of other projects: a mapping in JSON format. It
// is nil if the file does not contain the section.
type Custom []byte

// UnmarshalJSON keeps the section unchanged.
func (c *Custom) UnmarshalJSON(data []byte) error {
	*c = nil
	if string(data) != "null" { // as for every type, null leaves the section unset
		*c = slices.Clone(data)
	}
	return nil
}

// MarshalJSON returns the unchanged section.
func (c Custom) MarshalJSON() ([]byte, error) {
	if c == nil {
		return []byte("null"), nil
	}
	return c, nil
}

// Decode decodes the section into the struct that settings points to. Fields missing from the
// section keep their values. The error lists every field that the struct does not have.
func (c Custom) Decode(settings any) error {
	errs, err := strict.Unmarshal(c, settings)
	if err == nil {
		err = strict.Error(errs)
	}
	if err != nil {
		return fmt.Errorf("custom: %w", err)
	}
	return nil
}

// CustomSetting is the setting for the section of other projects.
type CustomSetting struct{ Value *Custom }

// DefaultText returns an empty mapping.
func (CustomSetting) DefaultText() string { return "{}" }

// Range describes the section.
func (CustomSetting) Range() string { return "a mapping" }

func (s CustomSetting) reset() { *s.Value = nil }

func (CustomSetting) clear() {}

func (CustomSetting) complete() {}

func (s CustomSetting) validate(path *field.Path) field.ErrorList {
	if len(*s.Value) > 0 && (*s.Value)[0] != '{' {
		return field.ErrorList{field.TypeInvalid(path, field.OmitValueType{}, "must be a mapping")}
	}
	return nil
}
