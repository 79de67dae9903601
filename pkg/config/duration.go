// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"strings"
	"time"
)

// Duration is a duration that is written with units, for example 90s, 30m, or 2h30m.
type Duration struct {
	time.Duration

	unset   bool   // the key is missing from the file
	invalid string // the JSON value in the file if it is not a duration; empty in a valid configuration
}

// UnmarshalJSON decodes a duration. It accepts anything, so validation can report all invalid
// values at once.
func (d *Duration) UnmarshalJSON(data []byte) error {
	if string(data) == "null" { // as for every type, null leaves the duration unset
		return nil
	}
	*d = Duration{}
	var text string
	err := json.Unmarshal(data, &text)
	if err == nil {
		d.Duration, err = time.ParseDuration(text)
	}
	if err != nil {
		d.invalid = string(data)
	}
	return nil
}

// Equal reports whether both durations are equal.
func (d Duration) Equal(other Duration) bool { return d == other }

// MarshalJSON encodes the duration in its shortest form with units.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(d.String())
}

// String returns the duration with units, for example 30m.
func (d Duration) String() string {
	text := d.Duration.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
