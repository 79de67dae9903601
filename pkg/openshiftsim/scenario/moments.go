// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// moment matches a variable in a string of an object. It stands for a time relative to the creation
// of the object: "${now+90s}" in RFC 3339 format, "${cron+90s}" as a cron expression in UTC that
// matches the first full minute at or after that time, once a year.
var moment = regexp.MustCompile(`\$\{(now|cron)([^}]*)\}`)

// withMoments returns a copy of a decoded value with the variables in strings replaced by times.
func withMoments(value any, now time.Time) any {
	switch value := value.(type) {
	case map[string]any:
		copied := make(map[string]any, len(value))
		for key, item := range value {
			copied[key] = withMoments(item, now)
		}
		return copied
	case []any:
		copied := make([]any, len(value))
		for i, item := range value {
			copied[i] = withMoments(item, now)
		}
		return copied
	case string:
		return moment.ReplaceAllStringFunc(value, func(variable string) string {
			parts := moment.FindStringSubmatch(variable)
			offset, _ := parseOffset(parts[2]) // validated
			return formatMoment(parts[1], now.Add(offset))
		})
	default:
		return value
	}
}

func formatMoment(kind string, at time.Time) string {
	at = at.UTC()
	if kind == "now" {
		return at.Truncate(time.Second).Format(time.RFC3339)
	}
	if minute := at.Truncate(time.Minute); minute.Before(at) {
		at = minute.Add(time.Minute)
	}
	return fmt.Sprintf("%d %d %d %d *", at.Minute(), at.Hour(), at.Day(), int(at.Month()))
}

// parseOffset returns the duration of an offset such as "+5s" or "-1h", 0 for an empty one.
func parseOffset(text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0, nil
	}
	if text[0] != '+' && text[0] != '-' {
		return 0, errors.New("it has no sign")
	}
	return time.ParseDuration(text)
}

func validateOffset(path *field.Path, text string) field.ErrorList {
	if _, err := parseOffset(text); err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, `must be an offset such as "+5s" or "-1h"`)}
	}
	return nil
}

// validateMoments returns an error for each variable with an invalid offset.
func validateMoments(path *field.Path, value any) field.ErrorList {
	var allErrs field.ErrorList
	switch value := value.(type) {
	case map[string]any:
		for key, item := range value {
			allErrs = append(allErrs, validateMoments(path.Child(key), item)...)
		}
	case []any:
		for i, item := range value {
			allErrs = append(allErrs, validateMoments(path.Index(i), item)...)
		}
	case string:
		for _, parts := range moment.FindAllStringSubmatch(value, -1) {
			if _, err := parseOffset(parts[2]); err != nil {
				allErrs = append(allErrs, field.Invalid(path, parts[0], `must be a time such as "${now+30s}" or "${cron+30s}"`))
			}
		}
	}
	return allErrs
}
