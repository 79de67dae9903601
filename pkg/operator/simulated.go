// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/silence"
)

// Externals replaces the servers other than the API server in simulations. Prometheus and
// Alertmanager are used only if the configuration contains their URLs.
type Externals struct {
	Prometheus   checks.Prometheus
	Alertmanager silence.Alertmanager
	// Webhook delivers notifications. If it is nil, there are no notifications.
	Webhook notify.AsyncPublisher
	// Registry, if set, receives the metrics.
	Registry *prometheus.Registry
}

// NewControllers returns the operator's controllers, bound to the clients, without a manager. They
// are wired as in Run, except for the external servers.
func NewControllers(
	o manager.Options, cfg config.Config, clients manager.Clients, clk clock.WithTicker, upgraders Upgraders, externals Externals,
) ([]manager.Controller, error) {
	p, err := newOperator(&o, cfg, logr.Discard(), clk, upgraders, &externals)
	if err != nil {
		return nil, err
	}
	binary := p.binary()
	if err := binary.Bind(clients); err != nil {
		return nil, fmt.Errorf("binding the operator: %w", err)
	}
	return binary.Controllers, nil
}
