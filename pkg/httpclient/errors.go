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

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// StatusError is an answer whose status says that the request was not carried out.
type StatusError struct {
	Code       int
	RetryAfter time.Duration // as the server asks for, in whole seconds; 0 if it does not
	Body       string        // what it says, fit to be shown
}

// Error says the status and what came with it.
func (e *StatusError) Error() string {
	message := fmt.Sprintf("answered %d %s", e.Code, http.StatusText(e.Code))
	if e.Body != "" {
		message += ": " + e.Body
	}
	return message
}

// newStatusError is what an answer says that is none. Some say what they were asked
// with: the token is not shown.
func newStatusError(response *http.Response, body, token string) *StatusError {
	excerpt := func(received string) string {
		if token != "" {
			received = strings.ReplaceAll(received, token, "…")
		}
		return text.Excerpt(received)
	}
	e := &StatusError{Code: response.StatusCode, Body: excerpt(body)}
	if location := response.Header.Get("Location"); location != "" && response.StatusCode < 400 {
		e.Body = "redirects are not followed; this one leads to " + excerpt(location)
	}
	const most = 24 * 60 * 60
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		e.RetryAfter = time.Duration(min(seconds, most)) * time.Second
	}
	return e
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
