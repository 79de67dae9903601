// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package externaldeps

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

const maxRedirects = 5

// checkAll asks all dependencies at the same time, and names those that are not
// available with the reason.
func (d *Dependencies) checkAll(ctx context.Context) []string {
	found := make([]string, len(d.urls))
	var wg sync.WaitGroup
	for i, at := range d.urls {
		wg.Go(func() {
			if failure := d.failureReason(ctx, at); failure != "" {
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

// failureReason says why a dependency is not available, trying several times if
// it may be a matter of luck. Empty: it is.
func (d *Dependencies) failureReason(ctx context.Context, at *url.URL) (failure string) {
	for range tries {
		code, err := d.request(ctx, at)
		switch {
		case err != nil:
			failure = reason(err, d.options)
		case code < http.StatusBadRequest:
			return ""
		default:
			failure = fmt.Sprintf("the answer is %d %s", code, http.StatusText(code))
		}
		if err == nil && code < http.StatusInternalServerError && code != http.StatusTooManyRequests || ctx.Err() != nil {
			break
		}
	}
	return failure
}

// request asks once. The answer's body is not read.
func (d *Dependencies) request(ctx context.Context, at *url.URL) (code int, err error) {
	ctx, cancel := context.WithTimeout(ctx, d.options.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return 0, err
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// sameHost follows a redirect only to the host that was asked for, and not out
// of HTTPS. Otherwise the redirect is the answer: the host is there.
func sameHost(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	switch {
	case req.URL.Host != first.Host || via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https":
		return http.ErrUseLastResponse
	case len(via) > maxRedirects:
		return fmt.Errorf("there are more than %d redirects", maxRedirects)
	}
	return nil
}

func tlsConfig(roots *x509.CertPool) *tls.Config {
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}

// name is how a dependency is shown: without the query, which may hold a secret.
func name(at *url.URL) string {
	shown := url.URL{Scheme: at.Scheme, Host: at.Host, Path: at.Path}
	return shown.String()
}

// reason says in one bounded line why there is no answer. What differs from one
// try to the next, and the query, are left out.
func reason(err error, o Options) string {
	var urlErr *url.Error
	if errors.As(err, &urlErr) {
		err = urlErr.Err
	}
	var netErr net.Error
	var opErr *net.OpError
	switch {
	case errors.As(err, &netErr) && netErr.Timeout():
		return fmt.Sprintf("there is no answer within %s", o.Timeout)
	case errors.As(err, &opErr):
		err = opErr.Err
	}
	return text.Excerpt(err.Error())
}
