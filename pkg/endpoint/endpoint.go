// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options say how a server is reached.
type Options struct {
	// URL is where it is: http or https, a host and perhaps a path, no more.
	URL string
	// CAFile has the certificates of the authorities that may vouch for it, in
	// PEM; empty: those of the system. It is read anew when it changes.
	CAFile string
	// TokenFile has the bearer token, read for each request; empty: none is
	// sent. A token goes over https only.
	TokenFile string
	// Timeout bounds one request and its answer to the last byte; 0 is 10 seconds.
	Timeout time.Duration
	// MaxAnswer bounds the body of an answer, in bytes; 0 is 1 MiB.
	MaxAnswer int64
	// Proxy is asked for the proxy of a request; nil: there is none.
	Proxy func(*http.Request) (*url.URL, error)
}

const (
	defaultTimeout   = 10 * time.Second
	defaultMaxAnswer = 1 << 20
)

// Endpoint is a server that can be asked. It keeps at most one idle connection.
type Endpoint struct {
	options Options
	base    *url.URL

	mu        sync.Mutex
	ca        []byte
	transport *http.Transport
}

// ValidPort says whether somebody could listen at the URL's port, if it has one.
func ValidPort(u *url.URL) bool {
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	return u.Port() == "" || err == nil && port > 0
}

// New makes an Endpoint, or says what is wrong with the options. It asks nobody
// and reads no file.
func New(o Options) (*Endpoint, error) {
	base, err := url.Parse(o.URL)
	wrong := err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Hostname() == ""
	switch {
	case wrong && strings.ContainsAny(o.URL, "@?#"): // it is not shown: there may be a secret in it
		return nil, errors.New("must begin with https:// or http:// and a host, and be without user, query and fragment; a token belongs into its own file")
	case err != nil:
		return nil, fmt.Errorf("is %q, must be a URL: %w", o.URL, errors.Unwrap(err))
	case wrong:
		return nil, fmt.Errorf("is %q, must begin with https:// or http:// and a host", o.URL)
	case base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return nil, errors.New("must be a URL without user, query and fragment; a token belongs into its own file")
	case !ValidPort(base):
		return nil, fmt.Errorf("is %q, must have a port from 1 to 65535, or none", o.URL)
	case o.TokenFile != "" && base.Scheme != "https":
		return nil, fmt.Errorf("is %q, must begin with https://: a token is sent over https only", o.URL)
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.MaxAnswer == 0 {
		o.MaxAnswer = defaultMaxAnswer
	}
	return &Endpoint{options: o, base: base}, nil
}

// Request is what a server is asked.
type Request struct {
	Method      string
	Path        []string // below the endpoint's own, one element each
	Query       url.Values
	ContentType string
	Body        []byte
	// StatusOnly says that it matters whether the answer is one of success, and
	// not what else it says, nor whether that comes to its end.
	StatusOnly bool
}

// Do asks the server, and returns the body of its answer. An answer whose status
// is not 2xx is a *StatusError; what is too long or late is an error, too.
func (e *Endpoint) Do(ctx context.Context, r Request) ([]byte, error) {
	at := e.base.JoinPath(escaped(r.Path)...)
	at.RawQuery = r.Query.Encode()
	body, err := e.exchange(ctx, at, r)
	if err != nil {
		return nil, fmt.Errorf("asking %s/%s: %w", e.base.Host, strings.TrimPrefix(at.Path, "/"), legible(err))
	}
	return body, nil
}

func (e *Endpoint) exchange(ctx context.Context, at *url.URL, r Request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, e.options.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, r.Method, at.String(), bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if r.ContentType != "" {
		request.Header.Set("Content-Type", r.ContentType)
	}
	token, err := e.token()
	if err != nil {
		return nil, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport, err := e.current()
	if err != nil {
		return nil, err
	}
	answer, err := transport.RoundTrip(request) // and not a client: it would follow redirects
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }() // whatever is wrong with it was seen when it was read
	body, err := io.ReadAll(io.LimitReader(answer.Body, e.options.MaxAnswer+1))
	switch {
	case answer.StatusCode < 200 || answer.StatusCode > 299:
		return nil, refusal(answer, string(body), token)
	case r.StatusOnly:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the answer: %w", err)
	case int64(len(body)) > e.options.MaxAnswer:
		return nil, fmt.Errorf("the answer is longer than %d bytes", e.options.MaxAnswer)
	}
	return body, nil
}

func escaped(path []string) []string {
	out := make([]string, len(path))
	for i, element := range path {
		out[i] = url.PathEscape(element)
	}
	return out
}
