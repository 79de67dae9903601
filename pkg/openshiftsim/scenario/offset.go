// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/json"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Offset is a relative time, such as "+5s" or "-1h".
type Offset time.Duration

// invalidOffset is the result of decoding any other string. Validation rejects it.
const invalidOffset = Offset(math.MinInt64)

// MarshalJSON encodes the offset.
func (o Offset) MarshalJSON() ([]byte, error) {
	text := time.Duration(o).String()
	if o >= 0 {
		text = "+" + text
	}
	return json.Marshal(text)
}

// UnmarshalJSON decodes "+5s" or "-1h". It accepts anything and leaves errors to validation, which
// reports all of them at once.
func (o *Offset) UnmarshalJSON(data []byte) error {
	if string(data) == "null" { // as for every type, null leaves the field unset
		return nil
	}
	*o = invalidOffset
	var text string
	if err := json.Unmarshal(data, &text); err == nil {
		*o = parseOffset(text)
	}
	return nil
}

func parseOffset(text string) Offset {
	parsed, err := time.ParseDuration(text)
	if err != nil || text[0] != '+' && text[0] != '-' {
		return invalidOffset
	}
	return Offset(parsed)
}

func (o Offset) validate(path *field.Path) field.ErrorList {
	if o == invalidOffset {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, `must be an offset such as "+5s" or "-1h"`)}
	}
	return nil
}
