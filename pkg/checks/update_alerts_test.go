// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// fakePrometheus returns alerts or an error.
type fakePrometheus struct {
	alerts  []clusterstate.Alert
	err     error
	queries int
}

func (p *fakePrometheus) ActiveAlerts(context.Context) ([]clusterstate.Alert, error) {
	p.queries++
	return p.alerts, p.err
}

// fire returns an alert that started to fire a minute ago.
func fire(name, severity string, labels ...string) clusterstate.Alert {
	alert := clusterstate.Alert{
		Name: name, Namespace: "shop", Severity: severity, Firing: true, Since: now.Add(-time.Minute),
		Labels: map[string]string{}, Annotations: map[string]string{"summary": "s", "runbook_url": "https://example.com/" + name},
	}
	for i := 0; i < len(labels); i += 2 {
		alert.Labels[labels[i]] = labels[i+1]
	}
	return alert
}

func TestAlerts(t *testing.T) {
	t.Parallel()
	since := func(alert clusterstate.Alert, age time.Duration) clusterstate.Alert {
		alert.Since = now.Add(-age)
		return alert
	}
	pending := fire("A", "warning")
	pending.Firing = false
	timeless := fire("A", "warning")
	timeless.Since = time.Time{}
	cases := map[string]struct {
		alerts []clusterstate.Alert
		change func(*cluster)
		want   []string
	}{
		"warning":                       {[]clusterstate.Alert{fire("A", "warning")}, nil, []string{"warning AlertFiring/Alert/shop/A"}},
		"critical":                      {[]clusterstate.Alert{fire("A", "critical")}, nil, []string{"warning CriticalAlertFiring/Alert/shop/A"}},
		"info":                          {[]clusterstate.Alert{fire("A", "info")}, nil, nil},
		"pending":                       {[]clusterstate.Alert{pending}, nil, nil},
		"since the start":               {[]clusterstate.Alert{since(fire("A", "warning"), time.Hour)}, nil, []string{"warning AlertFiring/Alert/shop/A"}},
		"since before the update":       {[]clusterstate.Alert{since(fire("A", "warning"), time.Hour+time.Second)}, nil, nil},
		"since an unknown time":         {[]clusterstate.Alert{timeless}, nil, []string{"warning AlertFiring/Alert/shop/A"}},
		"of this product":               {[]clusterstate.Alert{fire("ManagedUpgradeNeedsAction", "critical")}, nil, nil},
		"no update is in progress":      {[]clusterstate.Alert{fire("A", "warning")}, func(c *cluster) { c.complete(); updateAll(c) }, nil},
		"nodes are still being updated": {[]clusterstate.Alert{fire("A", "warning")}, (*cluster).complete, []string{"warning AlertFiring/Alert/shop/A"}},
		"one alert of several pods": {[]clusterstate.Alert{fire("A", "warning", "pod", "a"), fire("A", "warning", "pod", "b")}, nil, []string{
			"warning AlertFiring/Alert/shop/A",
		}},
		"about budgets, since before the update": {[]clusterstate.Alert{
			since(fire("PodDisruptionBudgetAtLimit", "warning", "poddisruptionbudget", "api"), 9*time.Hour),
			since(fire("PodDisruptionBudgetAtLimit", "warning", "poddisruptionbudget", "db"), 9*time.Hour),
		}, nil, []string{
			"warning AlertFiring/Alert/shop/PodDisruptionBudgetAtLimit/PodDisruptionBudget/shop/api",
			"warning AlertFiring/Alert/shop/PodDisruptionBudgetAtLimit/PodDisruptionBudget/shop/db",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			c.prometheus = &fakePrometheus{alerts: tc.alerts}
			if tc.change != nil {
				tc.change(c)
			}
			if diff := cmp.Diff(tc.want, found(t, checks.InformerAlerts, c.facts(t))); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAlerts_describe_themselves(t *testing.T) {
	t.Parallel()
	c := newCluster()
	odd := fire("B", "warning")
	odd.Annotations = map[string]string{"runbook_url": "javascript:alert(1)", "message": "evil\x1b[31m"}
	early := fire("A", "warning", "pod", "b")
	early.Since = now.Add(-30 * time.Minute)
	c.prometheus = &fakePrometheus{alerts: []clusterstate.Alert{odd, fire("A", "warning", "pod", "a"), early}}
	all := find(t, checks.InformerAlerts, c.facts(t))
	if len(all) != 2 {
		t.Fatalf("got %v", all)
	}
	if f := all[0]; f.Description != "s (2 alerts)" || f.Reference != "https://example.com/A" || !f.Since.Equal(early.Since) {
		t.Errorf("got %q, %q, since %s", f.Description, f.Reference, f.Since)
	}
	if f := all[1]; f.Description != "evil" || f.Reference != "" {
		t.Errorf("got %q, %q", f.Description, f.Reference)
	}
}

// Pre-checks read alerts outside of an update. Such alerts did not start during an update.
func TestAlerts_while_no_update_is_in_progress(t *testing.T) {
	t.Parallel()
	c := newCluster()
	c.complete()
	updateAll(c)
	reader := simulation.NewFakeClient(t, c.objects()...)
	facts := checks.Gather(t.Context(), checks.Plan, checks.Readers{
		Reader: reader, Live: reader, Prometheus: &fakePrometheus{alerts: []clusterstate.Alert{fire("A", "warning")}},
		Clock: clocktesting.NewFakePassiveClock(now),
	})
	if got := found(t, checks.InformerAlerts, facts); len(facts.Alerts) != 1 || len(got) > 0 {
		t.Errorf("found %v in %v", got, facts.Alerts)
	}
}
