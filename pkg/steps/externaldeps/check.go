// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package externaldeps

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

const maxRedirects = 5

// checkAll sends requests to all dependencies concurrently. It returns the unavailable ones with
// the reasons, or the reason why no request can be sent.
func (d *Dependencies) checkAll(ctx context.Context) []string {
	client, err := d.options.client()
	if err != nil {
		return []string{text.Excerpt(err.Error())}
	}
	found := make([]string, len(d.urls))
	var wg sync.WaitGroup
	for i, at := range d.urls {
		wg.Go(func() {
			if failure := d.failureReason(ctx, client, at); failure != "" {
				found[i] = fmt.Sprintf("%s (%s)", name(at), failure)
			}
		})
	}
	wg.Wait()
	var failures []string
	for _, failure := range found {
		if failure != "" {
			failures = append(failures, failure)
		}
	}
	return failures
}

// failureReason returns the reason why a dependency is unavailable; empty if it is available.
// Failures that may be transient are retried.
func (d *Dependencies) failureReason(ctx context.Context, client *http.Client, at *url.URL) (failure string) {
	for range tries {
		code, err := d.request(ctx, client, at)
		switch {
		case err != nil:
			failure = reason(err, d.options)
		case code < http.StatusBadRequest:
			return ""
		default:
			failure = fmt.Sprintf("the status is %d %s", code, http.StatusText(code))
		}
		if err == nil && code < http.StatusInternalServerError && code != http.StatusTooManyRequests || ctx.Err() != nil {
			break
		}
	}
	return failure
}

// request sends one request and returns the status code. It does not read the body.
func (d *Dependencies) request(ctx context.Context, client *http.Client, at *url.URL) (code int, err error) {
	ctx, cancel := context.WithTimeout(ctx, d.options.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// sameHost follows redirects only to the host of the first request, and never from HTTPS to HTTP.
// Any other redirect is the final response, because it shows that the host is reachable.
func sameHost(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	switch {
	case req.URL.Host != first.Host || via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https":
		return http.ErrUseLastResponse
	case len(via) > maxRedirects:
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	return nil
}

// name returns the URL without its query, because the query may contain a secret.
func name(at *url.URL) string {
	shown := url.URL{Scheme: at.Scheme, Host: at.Host, Path: at.Path}
	return shown.String()
}

// reason returns the reason for a failed request in one line of limited length. It omits the query
// and details that change with each try.
func reason(err error, o Options) string {
	var urlErr *url.Error
	if errors.As(err, &urlErr) {
		err = urlErr.Err
	}
	var netErr net.Error
	var opErr *net.OpError
	switch {
	case errors.As(err, &netErr) && netErr.Timeout():
		return fmt.Sprintf("no response within %s", o.Timeout)
	case errors.As(err, &opErr):
		err = opErr.Err
	}
	return text.Excerpt(err.Error())
}
