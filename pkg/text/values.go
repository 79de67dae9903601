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

// MaxClockSkew is the difference between two clocks that is tolerated.
const MaxClockSkew = time.Minute

// TimeOf returns a time of an object; zero if it is absent.
func TimeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// FormatTime returns a time for messages.
func FormatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Plural returns a number with the noun in its singular or plural form.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// Hash returns the first bytes of the hash of a text, in hexadecimal digits. Names and IDs that are stored
// depend on it.
func Hash(of string, bytes int) string {
	sum := sha256.Sum256([]byte(of))
	return hex.EncodeToString(sum[:min(bytes, len(sum))])
}
