// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/celexpr"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/alertmanager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/prometheus"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify/webhook"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/externaldeps"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/silence"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// dependenciesInterval is the interval between attempts to reach external dependencies.
const dependenciesInterval = 30 * time.Second

// proxyFunc has the type of http.Transport.Proxy.
type proxyFunc = func(*http.Request) (*url.URL, error)

// newDeps returns the dependencies of upgraders other than the API server. The error lists all
// invalid keys. It sends no requests.
func newDeps(cfg config.Config, clk clock.PassiveClock, proxy proxyFunc) (upgraders.Deps, error) {
	sources, err := newSources(cfg, clk)
	externalDeps, err2 := newExternalDeps(cfg, proxy)
	silencer, err3 := newSilencer(cfg)
	if err := errors.Join(err, err2, err3); err != nil {
		return upgraders.Deps{}, err
	}
	return upgraders.Deps{Sources: sources, Drains: &checks.DrainExplanations{}, Dependencies: externalDeps, Silencer: silencer, Config: cfg}, nil
}

// newSources returns the sources that health checks query in addition to the cache. It uses no
// proxy, because Prometheus runs in the cluster.
func newSources(cfg config.Config, clk clock.PassiveClock) (*checks.Sources, error) {
	a := cfg.Alerts
	sources := &checks.Sources{AlertsDisabled: a.URL == "", Conditions: celexpr.Evaluator{}, Clock: clk, Interval: a.Interval.Duration}
	for i := range cfg.HealthCheck.Objects {
		if key, err := checks.ObjectCheck(cfg.HealthCheck.Objects[i]).Validate(sources.Conditions); err != nil {
			return nil, fmt.Errorf("healthCheck.objects[%d].%s: %w", i, key, err)
		}
	}
	if a.URL == "" {
		return sources, nil
	}
	client, err := prometheus.New(prometheus.Options{
		HTTPClient: httpclient.Options{URL: a.URL, CAFile: a.CAFile, ExtraCAFile: cfg.TrustedCAFile, TokenFile: a.TokenFile, Timeout: a.Timeout.Duration},
		Watchdog:   a.Watchdog,
	})
	if err != nil {
		return nil, fmt.Errorf("alerts.url: %w", err)
	}
	sources.Prometheus = client
	return sources, nil
}

// newExternalDeps returns the external dependencies of an upgrade. They are reached through a proxy
// if one is configured.
func newExternalDeps(cfg config.Config, proxy proxyFunc) (*externaldeps.Dependencies, error) {
	e := cfg.ExternalDependencies
	d, err := externaldeps.New(externaldeps.Options{
		URLs: e.URLs, CAFile: e.CAFile, ExtraCAFile: cfg.TrustedCAFile, Timeout: e.Timeout.Duration,
		Interval: dependenciesInterval, Proxy: proxy,
	})
	if err != nil {
		return nil, fmt.Errorf("externalDependencies.urls: %w", err)
	}
	return d, nil
}

// newSilencer returns the silencer of alerts. It uses no proxy, because Alertmanager runs in the
// cluster.
func newSilencer(cfg config.Config) (*silence.Silencer, error) {
	a := cfg.Alertmanager
	if a.URL == "" {
		return &silence.Silencer{}, nil
	}
	c, err := alertmanager.New(httpclient.Options{
		URL: a.URL, CAFile: a.CAFile, ExtraCAFile: cfg.TrustedCAFile, TokenFile: a.TokenFile, Timeout: a.Timeout.Duration,
	})
	if err != nil {
		return nil, fmt.Errorf("alertmanager.url: the URL of Alertmanager %w", err)
	}
	return &silence.Silencer{Alertmanager: c}, nil
}

// configureWebhook sets the receiver of the webhook. It may be outside the cluster and behind a
// proxy.
func configureWebhook(w *webhook.Webhook, cfg config.Config, proxy proxyFunc) error {
	c := cfg.Webhook
	err := w.SetReceiver(&httpclient.Options{
		URL: c.URL, CAFile: c.CAFile, ExtraCAFile: cfg.TrustedCAFile, TokenFile: c.TokenFile, Timeout: c.Timeout.Duration, Proxy: proxy,
	})
	if err != nil {
		return fmt.Errorf("webhook.url: the URL of the receiver %w", err)
	}
	return nil
}
