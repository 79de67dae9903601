// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/alertmanager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/prometheus"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify/webhook"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/runbooks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/externaldeps"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/silence"
)

// dependenciesInterval is the time between two attempts to reach external dependencies.
const dependenciesInterval = 30 * time.Second

// newDeps returns what upgraders are built with beside the API server. It returns everything that is
// invalid, each with its key, and sends no request.
func newDeps(cfg config.Config, clk clock.PassiveClock) (runbooks.Deps, error) {
	sources, err := newSources(cfg.Alerts, clk)
	externalDeps, err2 := newExternalDeps(cfg.ExternalDependencies)
	silencer, err3 := newSilencer(cfg.Alertmanager)
	if err := errors.Join(err, err2, err3); err != nil {
		return runbooks.Deps{}, err
	}
	return runbooks.Deps{Sources: sources, Drains: &checks.DrainExplanations{}, Dependencies: externalDeps, Silencer: silencer, Config: cfg}, nil
}

// newSources returns what the health checks query beside the cache. Prometheus is in the cluster, so
// no proxy is used.
func newSources(a config.Alerts, clk clock.PassiveClock) (*checks.Sources, error) {
	sources := &checks.Sources{AlertsDisabled: a.URL == "", Clock: clk, Interval: a.Interval.Duration}
	if a.URL == "" {
		return sources, nil
	}
	client, err := prometheus.New(prometheus.Options{
		HTTPClient: httpclient.Options{URL: a.URL, CAFile: a.CAFile, TokenFile: a.TokenFile, Timeout: a.Timeout.Duration},
		Watchdog:   a.Watchdog,
	})
	if err != nil {
		return nil, fmt.Errorf("alerts.url: %w", err)
	}
	sources.Prometheus = client
	return sources, nil
}

// newExternalDeps returns what an upgrade needs outside of the cluster, through a proxy if one is
// configured.
func newExternalDeps(e config.ExternalDependencies) (*externaldeps.Dependencies, error) {
	d, err := externaldeps.New(externaldeps.Options{
		URLs: e.URLs, CAFile: e.CAFile, Timeout: e.Timeout.Duration, Interval: dependenciesInterval, Proxy: http.ProxyFromEnvironment,
	})
	if err != nil {
		return nil, fmt.Errorf("externalDependencies.urls: %w", err)
	}
	return d, nil
}

// newSilencer returns what silences alerts. Alertmanager is in the cluster, so no proxy is used.
func newSilencer(a config.Alertmanager) (*silence.Silencer, error) {
	if a.URL == "" {
		return &silence.Silencer{}, nil
	}
	c, err := alertmanager.New(httpclient.Options{URL: a.URL, CAFile: a.CAFile, TokenFile: a.TokenFile, Timeout: a.Timeout.Duration})
	if err != nil {
		return nil, fmt.Errorf("alertmanager.url: the URL of Alertmanager %w", err)
	}
	return &silence.Silencer{Alertmanager: c}, nil
}

// configureWebhook sets the receiver of the webhook. It may be outside of the cluster, behind a proxy.
func configureWebhook(w *webhook.Webhook, c config.Webhook) error {
	if c.URL == "" {
		return w.SetReceiver(nil)
	}
	err := w.SetReceiver(&httpclient.Options{URL: c.URL, CAFile: c.CAFile, TokenFile: c.TokenFile, Timeout: c.Timeout.Duration, Proxy: http.ProxyFromEnvironment})
	if err != nil {
		return fmt.Errorf("webhook.url: the URL of the receiver %w", err)
	}
	return nil
}
