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

// StatusError is a response with a status other than 2xx.
type StatusError struct {
	Code       int
	RetryAfter time.Duration // as requested by the server, in whole seconds, or 0
	Body       string        // a sanitized excerpt
}

// Error returns the status and the excerpt of the body.
func (e *StatusError) Error() string {
	message := fmt.Sprintf("responded %d %s", e.Code, http.StatusText(e.Code))
	if e.Body != "" {
		message += ": " + e.Body
	}
	return message
}

// newStatusError returns the error for a response. It removes the token, because some servers
// repeat the request in the response.
func newStatusError(response *http.Response, body, token string) *StatusError {
	excerpt := func(received string) string {
		if token != "" {
			received = strings.ReplaceAll(received, token, "…")
		}
		return text.Excerpt(received)
	}
	e := &StatusError{Code: response.StatusCode, Body: excerpt(body)}
	if location := response.Header.Get("Location"); location != "" && response.StatusCode < 400 {
		e.Body = "redirects are not followed; this one is to " + excerpt(location)
	}
	const most = 24 * 60 * 60
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		e.RetryAfter = time.Duration(min(seconds, most)) * time.Second
	}
	return e
}

// ResponseError is returned for a successful response that cannot be used because it is too long or
// compressed.
type ResponseError struct{ message string }

func (e *ResponseError) Error() string { return e.message }

// stableError removes details that differ between requests, such as the local port, because
// messages are saved whenever they change.
func stableError(err error) error {
	var op *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no complete response in time: %w", context.DeadlineExceeded)
	case errors.Is(err, errTLS):
		return err
	case errors.As(err, &op):
		return fmt.Errorf("%s: %w", op.Op, op.Err)
	}
	return err
}
