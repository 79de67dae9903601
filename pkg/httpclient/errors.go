// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package httpclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// maxTextBytes bounds what is shown of an answer, in bytes.
const maxTextBytes = 200

// StatusError is an answer whose status says that the request was not carried out.
type StatusError struct {
	Code       int
	RetryAfter time.Duration // as the server asks for, in whole seconds; 0 if it does not
	Body       string        // what it says, fit to be shown
}

// Error says the status and what came with it.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("answered %d %s", e.Code, http.StatusText(e.Code))
	if e.Body != "" {
		text += ": " + e.Body
	}
	return text
}

// newStatusError is what an answer says that is none. Some say what they were asked
// with: the token is not shown.
func newStatusError(response *http.Response, body, token string) *StatusError {
	sanitize := func(text string) string {
		if token != "" {
			text = strings.ReplaceAll(text, token, "…")
		}
		return SanitizeText(text)
	}
	e := &StatusError{Code: response.StatusCode, Body: sanitize(body)}
	if location := response.Header.Get("Location"); location != "" && response.StatusCode < 400 {
		e.Body = "redirects are not followed; this one leads to " + sanitize(location)
	}
	const most = 24 * 60 * 60
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		e.RetryAfter = time.Duration(min(seconds, most)) * time.Second
	}
	return e
}

// SanitizeText is a text of unknown origin made fit to be shown: on one line, each
// character that cannot be printed replaced, shortened to 200 bytes and an ellipsis.
func SanitizeText(text string) string {
	var out strings.Builder
	space := false
	for _, r := range strings.ToValidUTF8(text, string(unicode.ReplacementChar)) {
		switch {
		case unicode.IsSpace(r):
			space = out.Len() > 0
			continue
		case !unicode.IsPrint(r):
			r = unicode.ReplacementChar
		}
		if space {
			out.WriteByte(' ')
			space = false
		}
		if out.Len() > maxTextBytes {
			out.WriteRune('…')
			break
		}
		out.WriteRune(r)
	}
	return out.String()
}

// stableError is an error without what differs from one time to the next, such as
// the port of this end: messages are saved when they change.
func stableError(err error) error {
	var op *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no full answer in time: %w", context.DeadlineExceeded)
	case errors.As(err, &op):
		return fmt.Errorf("%s: %w", op.Op, op.Err)
	}
	return err
}
