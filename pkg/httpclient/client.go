// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package httpclient

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
	// MaxBodyBytes bounds the body of an answer, in bytes; 0 is 1 MiB.
	MaxBodyBytes int64
	// Proxy is asked for the proxy of a request; nil: there is none.
	Proxy func(*http.Request) (*url.URL, error)
}

const (
	defaultTimeout      = 10 * time.Second
	defaultMaxBodyBytes = 1 << 20
)

// Client is a server that can be asked. It keeps at most one idle connection.
type Client struct {
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
func New(o Options) (*Client, error) {
	base, err := url.Parse(o.URL)
	invalid := err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Hostname() == ""
	switch {
	case invalid && strings.ContainsAny(o.URL, "@?#"): // it is not shown: there may be a secret in it
		return nil, errors.New("must begin with https:// or http:// and a host, and be without user, query and fragment; a token belongs into its own file")
	case err != nil:
		return nil, fmt.Errorf("is %q, must be a URL: %w", o.URL, errors.Unwrap(err))
	case invalid:
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
	if o.MaxBodyBytes == 0 {
		o.MaxBodyBytes = defaultMaxBodyBytes
	}
	return &Client{options: o, base: base}, nil
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
func (c *Client) Do(ctx context.Context, r Request) ([]byte, error) {
	target := c.base.JoinPath(escapePath(r.Path)...)
	target.RawQuery = r.Query.Encode()
	body, err := c.roundTrip(ctx, target, r)
	if err != nil {
		return nil, fmt.Errorf("asking %s/%s: %w", c.base.Host, strings.TrimPrefix(target.Path, "/"), stableError(err))
	}
	return body, nil
}

func (c *Client) roundTrip(ctx context.Context, target *url.URL, r Request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, r.Method, target.String(), bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if r.ContentType != "" {
		request.Header.Set("Content-Type", r.ContentType)
	}
	token, err := c.token()
	if err != nil {
		return nil, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport, err := c.currentTransport()
	if err != nil {
		return nil, err
	}
	response, err := transport.RoundTrip(request) // and not a client: it would follow redirects
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // whatever is wrong with it was seen when it was read
	body, err := io.ReadAll(io.LimitReader(response.Body, c.options.MaxBodyBytes+1))
	switch {
	case response.StatusCode < 200 || response.StatusCode > 299:
		return nil, newStatusError(response, string(body), token)
	case r.StatusOnly:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the answer: %w", err)
	case int64(len(body)) > c.options.MaxBodyBytes:
		return nil, fmt.Errorf("the answer is longer than %d bytes", c.options.MaxBodyBytes)
	}
	return body, nil
}

func escapePath(path []string) []string {
	out := make([]string, len(path))
	for i, element := range path {
		out[i] = url.PathEscape(element)
	}
	return out
}
