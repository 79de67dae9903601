// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"regexp"
	"strings"
)

// secret matches strings that look like credentials.
var secret = regexp.MustCompile(`\b[Bb](?:earer|EARER)\s+[\w.~+/=-]{16,}|\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*|\b[sS](?:ha256|HA256)~[\w-]{20,}|-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?`)

// Redact replaces credentials in foreign text.
func Redact(text string) string {
	for _, word := range []string{"earer", "EARER", "eyJ", "ha256~", "HA256~", "-BEGIN"} { // every match contains one of these
		if strings.Contains(text, word) {
			return secret.ReplaceAllString(text, "[redacted]")
		}
	}
	return text
}
