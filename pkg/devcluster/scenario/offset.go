// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/json"
	"errors"
	"time"
)

// Offset is a time relative to another one, such as "+5s" or "-1h".
type Offset time.Duration

// MarshalJSON encodes the offset.
func (o Offset) MarshalJSON() ([]byte, error) {
	text := time.Duration(o).String()
	if o >= 0 {
		text = "+" + text
	}
	return json.Marshal(text)
}

// UnmarshalJSON decodes "+5s" or "-1h".
func (o *Offset) UnmarshalJSON(data []byte) error {
	var text string
	errInvalid := errors.New("is not an offset: write it like \"+5s\" or \"-1h\"")
	if err := json.Unmarshal(data, &text); err != nil || text == "" || text[0] != '+' && text[0] != '-' {
		return errInvalid
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return errInvalid
	}
	*o = Offset(parsed)
	return nil
}
