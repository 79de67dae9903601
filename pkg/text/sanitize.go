// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"cmp"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxReason is the maximum size, in bytes, of a reason or message reported by an object.
const MaxReason = 512

// maxExcerpt is the maximum size, in bytes, of an excerpt of a response or another value.
const maxExcerpt = 200

// noReason replaces a missing reason.
const noReason = "no reason given"

// escapeSequence matches a terminal escape sequence: a control sequence, a string that ends with a
// bell or a terminator, or any other sequence.
var escapeSequence = regexp.MustCompile(`(?:\x1b\[|\x{9b})[0-?]*[ -/]*[@-~]|(?:\x1b[\]PX^_])[^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]`)

// Sanitize returns foreign text as a single line of at most maxBytes bytes, plus an ellipsis if it
// was truncated. It removes terminal escape sequences and invalid UTF-8. Each sequence of white
// space, control characters, and characters that affect how others are displayed becomes a single
// space.
func Sanitize(text string, maxBytes int) string {
	if len(text) <= maxBytes && isClean(text) {
		return text
	}
	cut := len(text) > 4*maxBytes // collapsing white space may leave more than maxBytes of it
	if cut {
		text = text[:4*maxBytes]
	}
	text = escapeSequence.ReplaceAllString(strings.ToValidUTF8(text, ""), "")
	text = strings.Join(strings.FieldsFunc(text, isSeparator), " ")
	if cut && len(text) <= maxBytes {
		return text + ellipsis
	}
	return Truncate(text, maxBytes)
}

// Reason sanitizes a reason or message reported by an object. If it is empty, Reason says so.
func Reason(text string) string { return cmp.Or(Sanitize(text, MaxReason), noReason) }

// Excerpt returns the sanitized beginning of a response or another foreign value.
func Excerpt(text string) string { return Sanitize(text, maxExcerpt) }

const ellipsis = "…"

// Truncate truncates the text to at most maxBytes bytes, plus an ellipsis. It does not split
// characters.
func Truncate(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return text
	}
	return Cut(text, maxBytes) + ellipsis
}

// Fit truncates the text to at most maxBytes bytes including the ellipsis. It does not split
// characters.
func Fit(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return text
	}
	return Cut(text, maxBytes-len(ellipsis)) + Cut(ellipsis, maxBytes)
}

// Cut returns the first maxBytes bytes of the text, or fewer to avoid splitting a character.
func Cut(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return text
	}
	maxBytes = max(maxBytes, 0)
	for maxBytes > 0 && !utf8.RuneStart(text[maxBytes]) {
		maxBytes--
	}
	return text[:maxBytes]
}

// isClean reports whether Sanitize would not change the text. It only recognizes printable ASCII.
func isClean(text string) bool {
	space := true
	for i := range len(text) {
		switch c := text[i]; {
		case c == ' ' && space, c < ' ', c > '~':
			return false
		default:
			space = c == ' '
		}
	}
	return text == "" || !space
}

func isSeparator(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }
