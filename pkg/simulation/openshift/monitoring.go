// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/alerting"
)

// severityCritical is the severity of critical alerts.
const severityCritical = "critical"

// Alerts simulates Prometheus with a fixed set of firing alerts.
type Alerts struct {
	// Err, if set, is the error returned by all queries.
	Err error
	// Queries is the number of queries.
	Queries int

	clock  clock.PassiveClock
	firing []clusterstate.Alert
}

// FireOnly fires one critical platform alert and resolves all others.
func (a *Alerts) FireOnly(name string) {
	a.ResolveAll()
	a.Fire(alerting.Alert{Name: name, Labels: map[string]string{"severity": severityCritical, "namespace": "openshift-monitoring"}})
}

// Fire makes another alert fire.
func (a *Alerts) Fire(alert alerting.Alert) {
	a.firing = append(a.firing, clusterstate.Alert{
		Name: alert.Name, Namespace: alert.Labels["namespace"], Severity: alert.Labels["severity"], Labels: alert.Labels,
		Firing: true, Since: a.clock.Now(),
	})
}

// Resolve resolves all alerts with a name.
func (a *Alerts) Resolve(name string) {
	a.firing = slices.DeleteFunc(a.firing, func(alert clusterstate.Alert) bool { return alert.Name == name })
}

// ResolveAll resolves all alerts.
func (a *Alerts) ResolveAll() { a.firing = nil }

// ActiveAlerts returns the firing alerts.
func (a *Alerts) ActiveAlerts(context.Context) ([]clusterstate.Alert, error) {
	a.Queries++
	if a.Err != nil {
		return nil, fmt.Errorf("querying Prometheus for alerts: %w", a.Err)
	}
	return slices.Clone(a.firing), nil
}

// CriticalAlerts returns the firing critical alerts.
func (a *Alerts) CriticalAlerts(ctx context.Context) ([]clusterstate.Alert, error) {
	active, err := a.ActiveAlerts(ctx)
	return slices.DeleteFunc(active, func(alert clusterstate.Alert) bool { return !alert.IsCritical() }), err
}

// HasSamples reports whether any alert is firing, as the result of any expression.
func (a *Alerts) HasSamples(context.Context, string) (bool, error) {
	a.Queries++
	return len(a.firing) > 0, a.Err
}
