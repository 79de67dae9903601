// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package timescale makes the simulated parts of a dev cluster faster than real ones: at speed 60,
// what takes a real cluster an hour takes a dev cluster a minute.
//
// It scales durations only. It reads no clock: the clocks of a dev cluster show the real time.
package timescale

import (
	"encoding/json"
	"errors"
	"math"
	"time"
)

// Speed is how many times faster than the real ones the played parts are. It is greater than 0.
type Speed float64

// Scale returns how long something takes at this speed that takes a real cluster d. Never stays never.
func (s Speed) Scale(d Duration) time.Duration {
	if d == Never {
		return time.Duration(Never)
	}
	return time.Duration(float64(d) / float64(s))
}

// Duration is a time.Duration that is written as in "1h30m", or "never".
type Duration time.Duration

// Never is longer than any dev cluster lives.
const Never = Duration(math.MaxInt64)

// String writes the duration as it is read.
func (d Duration) String() string {
	if d == Never {
		return "never"
	}
	return time.Duration(d).String()
}

// MarshalJSON writes the duration as it is read.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads "1h30m" or "never".
func (d *Duration) UnmarshalJSON(data []byte) error {
	errInvalid := errors.New(`is not a duration: write it like "90s", "1h30m" or "never"`)
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return errInvalid
	}
	if text == "never" {
		*d = Never
		return nil
	}
	parsed, err := time.ParseDuration(text)
	if err != nil || parsed < 0 {
		return errInvalid
	}
	*d = Duration(parsed)
	return nil
}

// MinNonZero returns the smaller of two delays of which 0 means none.
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
