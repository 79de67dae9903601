// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package timescale accelerates the simulated parts of a dev cluster: at speed 60, they do in a
// minute what takes a real cluster an hour.
//
// It does not affect clocks: the clocks of a dev cluster show the real time.
package timescale

import (
	"encoding/json"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Speed is the speed of the simulated parts relative to real ones. It is greater than 0.
type Speed float64

// Scale returns the duration at this speed of what takes a real cluster d. Never stays Never.
func (s Speed) Scale(d Duration) time.Duration {
	if d == Never {
		return time.Duration(Never)
	}
	return time.Duration(float64(d) / float64(s))
}

// Duration is a time.Duration that is encoded as in "1h30m", or as "never".
type Duration time.Duration

// Never exceeds the life of any dev cluster.
const Never = Duration(math.MaxInt64)

// invalid is decoded from a text that is no duration. Like all negative durations, it is rejected by Validate.
const invalid = Duration(-1)

// String returns the encoded duration.
func (d Duration) String() string {
	if d == Never {
		return "never"
	}
	return time.Duration(d).String()
}

// MarshalJSON encodes the duration.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON decodes "1h30m" or "never". It accepts anything, so Validate can report all invalid
// values at once.
func (d *Duration) UnmarshalJSON(data []byte) error {
	if string(data) == "null" { // as for every type: not set
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

// Validate returns an error for a negative duration and for a text that is no duration.
func (d Duration) Validate(path *field.Path) field.ErrorList {
	if d < 0 {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, `must be a duration such as "90s" or "1h30m", or "never"`)}
	}
	return nil
}

// MinNonZero returns the smaller of two durations; 0 means none.
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
