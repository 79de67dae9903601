// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxClockSkew is the tolerated difference between two clocks.
const MaxClockSkew = time.Minute

// TimeOf returns the time of an optional timestamp, or zero if it is nil.
func TimeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// FormatTime formats a time for messages.
func FormatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Plural returns a number with the singular or plural form of a noun.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// Hash returns the first bytes of the hash of a string in hexadecimal. Stored names and IDs depend
// on it.
func Hash(of string, bytes int) string {
	sum := sha256.Sum256([]byte(of))
	return hex.EncodeToString(sum[:min(bytes, len(sum))])
}
