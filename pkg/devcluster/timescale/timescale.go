// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package timescale accelerates the simulated parts of a dev cluster: at speed 60, they do in a
// minute what takes a real cluster an hour.
//
// It does not affect clocks: the clocks of a dev cluster show the real time.
package timescale

import (
	"encoding/json"
	"errors"
	"math"
	"time"
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

// String returns the encoded duration.
func (d Duration) String() string {
	if d == Never {
		return "never"
	}
	return time.Duration(d).String()
}

// MarshalJSON encodes the duration.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON decodes "1h30m" or "never".
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
