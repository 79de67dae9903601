// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package externaldeps

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
)

// Limits of a round of requests. Requests are concurrent, so a round takes at most tries times the
// timeout. This is less than a step may take.
const (
	maxURLs    = 20
	maxTimeout = 15 * time.Second
	tries      = 3
)

// Options configures Dependencies.
type Options struct {
	// URLs are HTTP or HTTPS URLs, at most 20. A query is sent but never shown.
	URLs []string
	// Timeout is the timeout of each of the three tries, at most 15 s.
	Timeout time.Duration
	// Interval is the delay before the next round after a round that found a dependency
	// unavailable.
	Interval time.Duration
	// Proxy is as in http.Transport. Optional.
	Proxy func(*http.Request) (*url.URL, error)
	// CAFile is the path to a PEM bundle of trusted CAs, read in each round. Defaults to the system
	// CAs and the CAs in ExtraCAFile.
	CAFile string
	// ExtraCAFile is the path to a PEM bundle that may be missing. Optional.
	ExtraCAFile string
}

// Dependencies are the external services that must be reachable, with the result of the last round
// of requests. All passes of an upgrade share one instance.
type Dependencies struct {
	options Options
	urls    []*url.URL

	throttle engine.Throttle
}

// New validates the options. It makes no request.
func New(o Options) (*Dependencies, error) {
	d := &Dependencies{options: o}
	var errs []error
	if len(o.URLs) > maxURLs {
		errs = append(errs, fmt.Errorf("%d URLs are configured, %d are allowed", len(o.URLs), maxURLs))
	}
	if o.Timeout <= 0 || o.Timeout > maxTimeout {
		errs = append(errs, fmt.Errorf("the timeout is %s; it must be positive and at most %s", o.Timeout, maxTimeout))
	}
	for i, text := range o.URLs {
		at, err := url.Parse(text)
		switch {
		case err != nil || at.Hostname() == "" || at.User != nil || at.Scheme != "https" && at.Scheme != "http":
			errs = append(errs, fmt.Errorf("the URL in place %d must be one of https or http, such as https://quay.io/, without a user", i+1))
		case !httpclient.ValidPort(at):
			errs = append(errs, fmt.Errorf("the URL in place %d must have a port from 1 to 65535, or none", i+1))
		default:
			d.urls = append(d.urls, at)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("checking the external dependencies: %w", err)
	}
	return d, nil
}

// client returns a client for one round. It keeps no connections open.
func (o Options) client() (*http.Client, error) {
	roots, err := httpclient.RootCAs(o.CAFile, o.ExtraCAFile)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		Proxy:                  o.Proxy,
		DialContext:            (&net.Dialer{Timeout: o.Timeout}).DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		TLSHandshakeTimeout:    o.Timeout,
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: 64 << 10,
	}
	return &http.Client{Transport: transport, CheckRedirect: sameHost}, nil
}
