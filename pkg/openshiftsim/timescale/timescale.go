// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package timescale accelerates the simulated parts of a dev cluster: at speed 60, they take a
// minute for what takes a real cluster an hour.
//
// It does not affect clocks. A dev cluster uses real time.
package timescale

import (
	"encoding/json"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Speed is the speed of the simulated parts relative to real ones. It must be greater than 0.
type Speed float64

// Scale converts a duration on a real cluster to the duration at this speed. Never stays Never.
func (s Speed) Scale(d Duration) time.Duration {
	if d == Never {
		return time.Duration(Never)
	}
	return time.Duration(float64(d) / float64(s))
}

// Duration is a time.Duration that is encoded like "1h30m", or as "never".
type Duration time.Duration

// Never exceeds the lifetime of any dev cluster.
const Never = Duration(math.MaxInt64)

// invalid represents a string that is not a duration. Like every negative duration, it fails
// validation.
const invalid = Duration(-1)

// String formats the duration as in JSON.
func (d Duration) String() string {
	if d == Never {
		return "never"
	}
	return time.Duration(d).String()
}

// MarshalJSON encodes the duration.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON decodes "1h30m" or "never". It accepts anything and leaves errors to Validate,
// which reports all of them at once.
func (d *Duration) UnmarshalJSON(data []byte) error {
	if string(data) == "null" { // as for every type, null leaves the field unset
		return nil
	}
	*d = invalid
	var text string
	if err := json.Unmarshal(data, &text); err == nil {
		*d = parse(text)
	}
	return nil
}

func parse(text string) Duration {
	if text == "never" {
		return Never
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return invalid
	}
	return Duration(parsed)
}

// Validate returns an error if the duration is negative or was decoded from an invalid string.
func (d Duration) Validate(path *field.Path) field.ErrorList {
	if d < 0 {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, `must be a duration such as "90s" or "1h30m", or "never"`)}
	}
	return nil
}

// MinNonZero returns the smaller of two durations, ignoring 0.
func MinNonZero(a, b time.Duration) time.Duration {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	default:
		return min(a, b)
	}
}
