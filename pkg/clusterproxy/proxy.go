// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterproxy determines the proxy for requests that leave the cluster.
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

// interval is how long the settings of the cluster's proxy are valid. They are read only when a
// request is sent, so reconciles without requests cause no reads.
const interval = time.Minute

// Proxy determines the proxy for requests that leave the cluster from the environment or, if that
// is not set, from the cluster's Proxy object.
type Proxy struct {
	// Live reads the Proxy object. It must be set before the first request.
	Live  client.Reader
	Clock clock.PassiveClock

	mu     sync.Mutex
	readAt time.Time
	of     func(*url.URL) (*url.URL, error) // nil until the first read
}

// +kubebuilder:rbac:groups=config.openshift.io,resources=proxies,resourceNames=cluster,verbs=get

// ForRequest returns the proxy for a request, or nil. Use it as http.Transport.Proxy. A request
// waits for the settings to be read the first time; after that, the last settings are used if
// reading fails.
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
