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

// MaxReason bounds a reason or a message that an object reports, in bytes.
const MaxReason = 512

// maxExcerpt bounds what is shown of a response or of another value, in bytes.
const maxExcerpt = 200

// noReason stands for a reason that is missing.
const noReason = "no reason given"

// escapeSequence matches an escape sequence of a terminal: a control sequence, a string that is ended by a
// bell or a terminator, or any other one.
var escapeSequence = regexp.MustCompile(`(?:\x1b\[|\x{9b})[0-?]*[ -/]*[@-~]|(?:\x1b[\]PX^_])[^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]`)

// Sanitize returns foreign text as one line of at most maxBytes bytes and an ellipsis. Escape sequences of
// terminals are removed. White space, control characters, and characters that change how others are displayed become single
// spaces; invalid UTF-8 is dropped.
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

// Reason returns a reason or message that an object reports as one bounded line, and says so if
// it is empty.
func Reason(text string) string { return cmp.Or(Sanitize(text, MaxReason), noReason) }

// Excerpt returns the beginning of a response, or of another foreign value, as one bounded line.
func Excerpt(text string) string { return Sanitize(text, maxExcerpt) }

const ellipsis = "…"

// Truncate returns the text, cut to at most maxBytes bytes and an ellipsis. It does not cut
// within a character.
func Truncate(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return text
	}
	return Cut(text, maxBytes) + ellipsis
}

// Fit returns the text, cut to at most maxBytes bytes, the ellipsis included. It does not cut
// within a character.
func Fit(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return text
	}
	return Cut(text, maxBytes-len(ellipsis)) + Cut(ellipsis, maxBytes)
}

// Cut returns the beginning of the text, of at most maxBytes bytes. It does not cut within a
// character.
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

// isClean reports whether Sanitize has nothing to change. It recognizes printable ASCII only.
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
