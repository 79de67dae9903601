// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package externaldeps

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
)

// Bounds of a round of questions. All are asked at the same time, so it takes
// tries times the timeout, which is less than a step may take.
const (
	maxURLs    = 20
	maxTimeout = 15 * time.Second
	tries      = 3
)

// Options are what is asked, and how.
type Options struct {
	// URLs are of HTTP or HTTPS, at most 20. A query is sent, but not shown.
	URLs []string
	// Timeout is how long each of three tries may take, at most 15 s.
	Timeout time.Duration
	// Interval is how long after a round in which something could not be
	// reached the next one is.
	Interval time.Duration
	// Proxy is as in http.Transport. Nil: none.
	Proxy func(*http.Request) (*url.URL, error)
	// Roots are the authorities that are trusted. Nil: those of the system.
	Roots *x509.CertPool
}

// Dependencies is what is asked, and what the last round found out. All passes
// of an upgrade share one.
type Dependencies struct {
	options Options
	urls    []*url.URL
	client  *http.Client

	mutex       sync.Mutex
	lastChecked time.Time
	failures    []string
}

// New checks the options, all of them. It asks nothing yet.
func New(o Options) (*Dependencies, error) {
	d := &Dependencies{options: o, client: o.client()}
	var errs []error
	if len(o.URLs) > maxURLs {
		errs = append(errs, fmt.Errorf("there are %d, must be %d at most", len(o.URLs), maxURLs))
	}
	if o.Timeout <= 0 || o.Timeout > maxTimeout {
		errs = append(errs, fmt.Errorf("the timeout is %s, must be positive and %s at most", o.Timeout, maxTimeout))
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

// client leaves no connection behind.
func (o Options) client() *http.Client {
	transport := &http.Transport{
		Proxy:                  o.Proxy,
		DialContext:            (&net.Dialer{Timeout: o.Timeout}).DialContext,
		TLSClientConfig:        tlsConfig(o.Roots),
		TLSHandshakeTimeout:    o.Timeout,
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: 64 << 10,
	}
	return &http.Client{Transport: transport, CheckRedirect: sameHost}
}
