// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/endpoint"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/dependencies"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/gate"
)

// dependenciesInterval is how long external dependencies that could not be
// reached are left alone.
const dependenciesInterval = 30 * time.Second

// outside is what upgraders are made with that is not of the API server.
func outside(cfg config.Config, clk clock.PassiveClock) (Tools, error) {
	firing, err := alerts(cfg.Alerts, clk)
	if err != nil {
		return Tools{}, err
	}
	needed, err := external(cfg.ExternalDependencies)
	if err != nil {
		return Tools{}, err
	}
	return Tools{Alerts: firing, Dependencies: needed, Config: cfg}, nil
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
		return nil, fmt.Errorf("--config: alerts.url: %w", err)
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
		return nil, fmt.Errorf("--config: externalDependencies.urls: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return d, nil
}
