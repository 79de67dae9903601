// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/prometheus"
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
	firing []prometheusv1.Alert
}

// NewAlerts returns a simulated Prometheus without alerts.
func NewAlerts(clk clock.PassiveClock) *Alerts { return &Alerts{clock: clk} }

// FireOnly fires one critical platform alert and resolves all others.
func (a *Alerts) FireOnly(name string) {
	a.ResolveAll()
	a.Fire(alerting.Alert{Name: name, Labels: map[string]string{"severity": severityCritical, "namespace": "openshift-monitoring"}})
}

// Fire makes another alert fire. Nothing changes if an alert with the same labels fires.
func (a *Alerts) Fire(alert alerting.Alert) {
	labels := model.LabelSet(alert.LabelSet())
	if !slices.ContainsFunc(a.firing, func(f prometheusv1.Alert) bool { return f.Labels.Equal(labels) }) {
		a.firing = append(a.firing, prometheusv1.Alert{Labels: labels, State: prometheusv1.AlertStateFiring, ActiveAt: a.clock.Now()})
	}
}

// Resolve resolves all alerts with a name.
func (a *Alerts) Resolve(name string) {
	a.firing = slices.DeleteFunc(a.firing, func(f prometheusv1.Alert) bool { return string(f.Labels[model.AlertNameLabel]) == name })
}

// ResolveAll resolves all alerts.
func (a *Alerts) ResolveAll() { a.firing = nil }

// ActiveAlerts returns the firing alerts.
func (a *Alerts) ActiveAlerts(context.Context) ([]clusterstate.Alert, error) {
	if err := a.query(); err != nil {
		return nil, err
	}
	return prometheus.ActiveAlertsOf(a.firing, "")
}

// CriticalAlerts returns the firing critical alerts without the labels that the query aggregates.
func (a *Alerts) CriticalAlerts(context.Context) ([]clusterstate.Alert, error) {
	if err := a.query(); err != nil {
		return nil, err
	}
	var critical []clusterstate.Alert
	for _, f := range a.firing {
		if f.Labels["severity"] == severityCritical {
			critical = append(critical, clusterstate.Alert{
				Name: string(f.Labels[model.AlertNameLabel]), Namespace: string(f.Labels["namespace"]), Severity: severityCritical, Firing: true,
			})
		}
	}
	compare := func(a, b clusterstate.Alert) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
	}
	slices.SortFunc(critical, compare)
	return slices.CompactFunc(critical, func(a, b clusterstate.Alert) bool { return compare(a, b) == 0 }), nil
}

func (a *Alerts) query() error {
	a.Queries++
	if a.Err != nil {
		return fmt.Errorf("querying Prometheus for alerts: %w", a.Err)
	}
	return nil
}

// HasSamples reports whether any alert is firing, as the result of any expression.
func (a *Alerts) HasSamples(context.Context, string) (bool, error) {
	a.Queries++
	return len(a.firing) > 0, a.Err
}
