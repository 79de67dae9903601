// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/alertmanager"
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

// Alertmanager simulates the silences of Alertmanager, using its own clock.
type Alertmanager struct {
	// Err, if set, is the error returned by all requests.
	Err error

	clock    clock.PassiveClock
	silences []alertmanager.Silence
}

// Silences returns the silences with all of these matchers, including expired ones, and
// Alertmanager's current time.
func (a *Alertmanager) Silences(_ context.Context, having ...alertmanager.Matcher) ([]alertmanager.Silence, time.Time, error) {
	now := a.clock.Now()
	if a.Err != nil {
		return nil, now, a.Err
	}
	var found []alertmanager.Silence
	for _, silence := range a.silences {
		if silence.HasMatchers(having...) {
			found = append(found, a.withState(silence))
		}
	}
	return found, now, nil
}

// InEffect returns the silences that have not expired.
func (a *Alertmanager) InEffect() []alertmanager.Silence {
	var found []alertmanager.Silence
	for _, silence := range a.silences {
		if current := a.withState(silence); current.InEffect() {
			found = append(found, current)
		}
	}
	return found
}

func (a *Alertmanager) withState(silence alertmanager.Silence) alertmanager.Silence {
	silence.Matchers = slices.Clone(silence.Matchers)
	switch now := a.clock.Now(); {
	case !silence.EndsAt.After(now):
		silence.State = alertmanager.Expired
	case silence.StartsAt.After(now):
		silence.State = alertmanager.Pending
	default:
		silence.State = alertmanager.Active
	}
	return silence
}

// Upsert creates a silence or changes its end.
func (a *Alertmanager) Upsert(_ context.Context, silence alertmanager.Silence) (string, error) {
	if a.Err != nil {
		return "", a.Err
	}
	silence.Matchers = slices.Clone(silence.Matchers)
	for i := range a.silences {
		if a.silences[i].ID == silence.ID {
			a.silences[i] = silence
			return silence.ID, nil
		}
	}
	silence.ID = fmt.Sprintf("silence-%d", len(a.silences)+1)
	a.silences = append(a.silences, silence)
	return silence.ID, nil
}

// Expire expires a silence.
func (a *Alertmanager) Expire(_ context.Context, id string) error {
	if a.Err != nil {
		return a.Err
	}
	for i := range a.silences {
		if a.silences[i].ID == id && a.silences[i].EndsAt.After(a.clock.Now()) {
			a.silences[i].EndsAt = a.clock.Now()
		}
	}
	return nil
}
