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

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Options configure a Client.
type Options struct {
	// URL is the base URL of all requests: http or https, a host, and an optional path.
	URL string
	// CAFile is the path to a PEM bundle of trusted CAs, a regular file of at most 64 KiB. It defaults
	// to the system CAs. A changed file is used from the next request on.
	CAFile string
	// ExtraCAFile is the path to a PEM bundle of at most 1 MiB. If neither CAFile nor CA is set, its
	// CAs are trusted in addition to the system CAs. The file may be missing. A changed file is used
	// from the next request on.
	ExtraCAFile string
	// CA is a PEM bundle of trusted CAs. It takes precedence over CAFile.
	CA []byte
	// ServerName is the name expected in the server's certificate. It defaults to the host of URL.
	ServerName string
	// DialAddress is the IP and port for all connections. It defaults to the host of URL. It cannot be
	// combined with a proxy.
	DialAddress string
	// DialTimeout limits the time to open a connection, without the TLS handshake. It defaults to
	// Timeout.
	DialTimeout time.Duration
	// Token returns the bearer token of a request. It takes precedence over TokenFile. The caller is
	// responsible for sending the token only to trusted servers.
	Token func(context.Context) (string, error)
	// TokenFile is the path to the bearer token, a regular file of at most 64 KiB that is read for
	// each request. If it is empty, no token is sent. Tokens are only sent over https, and the token
	// of the pod's ServiceAccount is only sent to services of the cluster.
	TokenFile string
	// Timeout limits the time from a request to the last byte of its response. It defaults to 10
	// seconds.
	Timeout time.Duration
	// MaxBodyBytes limits the size of a response body. It defaults to 1 MiB.
	MaxBodyBytes int64
	// Proxy returns the proxy for a request. If it is nil, no proxy is used.
	Proxy func(*http.Request) (*url.URL, error)
}

const (
	defaultTimeout      = 10 * time.Second
	defaultMaxBodyBytes = 1 << 20
)

// Client sends requests to one server. It keeps at most one idle connection.
type Client struct {
	options            Options
	base               *url.URL
	serviceAccountDirs []string

	mu        sync.Mutex
	ca        []byte
	transport *http.Transport
}

// ValidPort reports whether the URL has a valid port or no port.
func ValidPort(u *url.URL) bool {
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	return u.Port() == "" || err == nil && port > 0
}

// New returns a client, or an error that states how the URL must look. It sends no requests and
// reads no files.
func New(o Options) (*Client, error) {
	base, err := url.Parse(o.URL)
	invalid := err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Hostname() == ""
	switch {
	case invalid && strings.ContainsAny(o.URL, "@?#"): // the URL is not shown, because it may contain a secret
		return nil, errors.New("must begin with https:// or http:// and a host, and be without user, query and fragment; a token belongs in a file of its own")
	case err != nil:
		return nil, fmt.Errorf("is %q, must be a URL: %w", o.URL, errors.Unwrap(err))
	case invalid:
		return nil, fmt.Errorf("is %q, must begin with https:// or http:// and a host", o.URL)
	case base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return nil, errors.New("must be a URL without user, query and fragment; a token belongs in a file of its own")
	case !ValidPort(base):
		return nil, fmt.Errorf("is %q, must have a port from 1 to 65535, or none", o.URL)
	case (o.TokenFile != "" || o.Token != nil) && base.Scheme != "https":
		return nil, fmt.Errorf("is %q, must begin with https://: a token is sent over https only", o.URL)
	case o.CA != nil && o.CAFile != "", o.Token != nil && o.TokenFile != "":
		return nil, errors.New("must have one source of CAs, and one of tokens")
	case o.DialAddress != "" && o.Proxy != nil:
		return nil, errors.New("must have no proxy, since the address of its server is fixed")
	case isServiceAccountPath(o.TokenFile) && !isClusterService(base):
		return nil, fmt.Errorf("is %q, %w", o.URL, errServiceAccountToken)
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.MaxBodyBytes == 0 {
		o.MaxBodyBytes = defaultMaxBodyBytes
	}
	return &Client{options: o, base: base, serviceAccountDirs: serviceAccountDirs}, nil
}

// Request is an HTTP request.
type Request struct {
	Method      string
	Path        []string // elements of the path below the client's URL
	Query       url.Values
	ContentType string
	Body        []byte
	// StatusOnly ignores the body of a successful response, even if it is truncated.
	StatusOnly bool
}

// Do sends a request and returns the response body. It returns a *StatusError for a status other
// than 2xx and a *ResponseError for a body that is too long or compressed. A response after the
// timeout is an error.
func (c *Client) Do(ctx context.Context, r Request) ([]byte, error) {
	body, _, err := c.DoDated(ctx, r)
	return body, err
}

// DoDated is like Do but also returns the time of the response according to the server, with a
// resolution of seconds. The time is zero if the server does not report it.
func (c *Client) DoDated(ctx context.Context, r Request) ([]byte, time.Time, error) {
	target := c.base.JoinPath(escapePath(r.Path)...)
	target.RawQuery = r.Query.Encode()
	var date time.Time
	body, err := c.roundTrip(ctx, target, r, &date)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("requesting %s/%s: %w", c.base.Host, strings.TrimPrefix(target.Path, "/"), stableError(err))
	}
	return body, date, nil
}

func (c *Client) roundTrip(ctx context.Context, target *url.URL, r Request, date *time.Time) ([]byte, error) {
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
	token, err := c.token(ctx)
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
	response, err := transport.RoundTrip(request) // an http.Client would follow redirects
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // an error would have occurred while reading
	*date, _ = http.ParseTime(response.Header.Get("Date"))
	body, err := io.ReadAll(io.LimitReader(response.Body, c.options.MaxBodyBytes+1))
	if err == nil {
		err = ctx.Err() // a server may truncate a response because it sees the connection close
	}
	switch {
	case response.StatusCode < 200 || response.StatusCode > 299:
		return nil, newStatusError(response, string(body), token)
	case r.StatusOnly:
		return nil, nil
	case !isIdentity(response.Header):
		return nil, &ResponseError{"the response is compressed (Content-Encoding " + text.Excerpt(response.Header.Get("Content-Encoding")) + "), which was not requested"}
	case err != nil:
		return nil, fmt.Errorf("reading the response: %w", err)
	case int64(len(body)) > c.options.MaxBodyBytes:
		return nil, &ResponseError{fmt.Sprintf("the response is longer than %d bytes", c.options.MaxBodyBytes)}
	}
	return body, nil
}

// isIdentity reports whether a body is sent without encoding, so its size equals the size of its
// content.
func isIdentity(header http.Header) bool {
	encoding := header.Get("Content-Encoding")
	return encoding == "" || strings.EqualFold(encoding, "identity")
}

// Close closes the idle connection. The client can still be used.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.transport != nil {
		c.transport.CloseIdleConnections()
	}
}

func escapePath(path []string) []string {
	out := make([]string, len(path))
	for i, element := range path {
		out[i] = url.PathEscape(element)
	}
	return out
}
