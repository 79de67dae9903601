// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/alertmanager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/endpoint"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/runbooks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/dependencies"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/gate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/telemetry/webhook"
)

// dependenciesInterval is how long external dependencies that could not be
// reached are left alone.
const dependenciesInterval = 30 * time.Second

// outside is what upgraders are made with that is not of the API server. All
// that is wrong is said, each with its key. Nobody is asked.
func outside(cfg config.Config, clk clock.PassiveClock) (runbooks.Tools, error) {
	firing, err := alerts(cfg.Alerts, clk)
	needed, err2 := external(cfg.ExternalDependencies)
	silencer, err3 := silences(cfg.Alertmanager)
	if err := errors.Join(err, err2, err3); err != nil {
		return runbooks.Tools{}, err
	}
	return runbooks.Tools{Alerts: firing, Dependencies: needed, Silencer: silencer, Config: cfg}, nil
}

// alerts is what the gates know about alerts. Prometheus is in the cluster, so
// no proxy is asked.
func alerts(a config.Alerts, clk clock.PassiveClock) (*gate.Alerts, error) {
	if a.URL == "" {
		return &gate.Alerts{Unchecked: true}, nil
	}
	prometheus, err := monitoring.New(monitoring.Options{
		Endpoint:         endpoint.Options{URL: a.URL, CAFile: a.CAFile, TokenFile: a.TokenFile, Timeout: a.Timeout.Duration},
		IgnoreAlerts:     a.IgnoreAlerts,
		IgnoreNamespaces: a.IgnoreNamespaces,
		Watchdog:         a.Watchdog,
	})
	if err != nil {
		return nil, fmt.Errorf("alerts.url: %w", err)
	}
	return &gate.Alerts{Source: prometheus, Clock: clk, Interval: a.Interval.Duration}, nil
}

// external is what an upgrade needs outside of the cluster, where a proxy may
// be in between.
func external(e config.ExternalDependencies) (*dependencies.Dependencies, error) {
	d, err := dependencies.New(dependencies.Options{
		URLs: e.URLs, Timeout: e.Timeout.Duration, Interval: dependenciesInterval, Proxy: http.ProxyFromEnvironment,
	})
	if err != nil {
		return nil, fmt.Errorf("externalDependencies.urls: %w", err)
	}
	return d, nil
}

// silences is who silences alerts. Alertmanager is in the cluster, so no proxy
// is asked.
func silences(a config.Alertmanager) (*maintenance.Silencer, error) {
	if a.URL == "" {
		return &maintenance.Silencer{}, nil
	}
	c, err := alertmanager.New(endpoint.Options{URL: a.URL, CAFile: a.CAFile, TokenFile: a.TokenFile, Timeout: a.Timeout.Duration})
	if err != nil {
		return nil, fmt.Errorf("alertmanager.url: the URL of Alertmanager %w", err)
	}
	return &maintenance.Silencer{Alertmanager: c}, nil
}

// direct has the webhook tell the receiver that is configured, from now on. It
// may be anywhere, with a proxy in between.
func direct(w *webhook.Webhook, c config.Webhook) error {
	if c.URL == "" {
		return w.Direct(nil)
	}
	err := w.Direct(&endpoint.Options{URL: c.URL, CAFile: c.CAFile, TokenFile: c.TokenFile, Timeout: c.Timeout.Duration, Proxy: http.ProxyFromEnvironment})
	if err != nil {
		return fmt.Errorf("webhook.url: the URL of the receiver %w", err)
	}
	return nil
}
