// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterproxy finds the proxy of requests that leave the cluster.
package clusterproxy

import (
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"golang.org/x/net/http/httpproxy"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// interval is how long the settings of the proxy of the cluster count. They are read when a request is sent, so a
// pass without one reads nothing.
const interval = time.Minute

// Proxy finds the proxy of requests that leave the cluster in the environment or else in the Proxy object of the cluster.
type Proxy struct {
	// Live reads the Proxy object. It is set before the first request is sent.
	Live  client.Reader
	Clock clock.PassiveClock

	mu     sync.Mutex
	readAt time.Time
	of     func(*url.URL) (*url.URL, error) // nil if it was never read
}

// +kubebuilder:rbac:groups=config.openshift.io,resources=proxies,resourceNames=cluster,verbs=get

// ForRequest returns the proxy of a request; nil means none. It is for http.Transport. A request waits for the first
// settings, and keeps the last ones if they cannot be read.
func (p *Proxy) ForRequest(r *http.Request) (*url.URL, error) {
	if set := httpproxy.FromEnvironment(); set.HTTPProxy != "" || set.HTTPSProxy != "" {
		return set.ProxyFunc()(r.URL)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil || p.Clock.Since(p.readAt) >= interval {
		var proxy configv1.Proxy
		switch err := p.Live.Get(r.Context(), client.ObjectKey{Name: "cluster"}, &proxy); {
		case err == nil || apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
			set := httpproxy.Config{HTTPProxy: proxy.Status.HTTPProxy, HTTPSProxy: proxy.Status.HTTPSProxy, NoProxy: proxy.Status.NoProxy}
			p.of, p.readAt = set.ProxyFunc(), p.Clock.Now()
		case p.of == nil:
			return nil, fmt.Errorf("reading the proxy of the cluster: %w", err)
		}
	}
	return p.of(r.URL)
}
