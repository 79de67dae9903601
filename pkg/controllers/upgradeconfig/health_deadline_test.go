// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// prometheus answers by a function. No alert fires if it is nil.
type prometheus struct {
	alerts func(context.Context) ([]clusterstate.Alert, error)
}

func (p *prometheus) CriticalAlerts(ctx context.Context) ([]clusterstate.Alert, error) {
	if p.alerts == nil {
		return nil, nil
	}
	return p.alerts(ctx)
}

func (p *prometheus) HasSamples(ctx context.Context, _ string) (bool, error) {
	_, err := p.CriticalAlerts(ctx)
	return false, err
}

// The health check after an upgrade fails after two hours, whatever keeps it from passing.
func TestPostClusterHealthCheck_ends_after_two_hours(t *testing.T) {
	t.Parallel()
	const limit = 2 * time.Hour
	refuse := func(_ *world, p *prometheus) {
		p.alerts = func(context.Context) ([]clusterstate.Alert, error) { return nil, errors.New("connection refused") }
	}
	for name, c := range map[string]struct {
		outage  func(*world, *prometheus)
		after   time.Duration // how long the last call may take
		message string
	}{
		"Prometheus is down": {refuse, 0, "CouldNotBeDetermined: checking the health of the cluster: connection refused"},
		"Prometheus does not answer": {func(w *world, p *prometheus) {
			p.alerts = func(ctx context.Context) ([]clusterstate.Alert, error) {
				if until, bounded := simulation.Deadline(ctx); bounded {
					w.Advance(until.Sub(w.Now()))
				}
				return nil, context.DeadlineExceeded
			}
		}, time.Minute, "deadline exceeded"},
		"an alert fires": {func(w *world, p *prometheus) {
			firing := []clusterstate.Alert{{Name: "etcdMembersDown", Namespace: "openshift-etcd", Severity: "critical", Firing: true, Since: w.Now()}}
			p.alerts = func(context.Context) ([]clusterstate.Alert, error) { return firing, nil }
		}, 0, "etcdMembersDown"},
		"budgets cannot be read": {func(w *world, _ *prometheus) {
			w.readError = func(kind string) error {
				if strings.HasPrefix(kind, "PodDisruptionBudget") {
					return errors.New("not now")
				}
				return nil
			}
		}, 0, "not now"},
		"Prometheus is down, and the operator starts again": {refuse, 0, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := &prometheus{}
			w := newWorld(t)
			queryAlerts := func() {
				deps := w.snapshot.Upgraders["OSD"].(watched).upgrader.(upgraders.OSD).Deps
				deps.Sources = &checks.Sources{Prometheus: source, Clock: w.Clock(), Interval: time.Minute}
				w.snapshot.Upgraders["OSD"] = watched{w: w, upgrader: upgraders.OSD{Deps: deps}}
			}
			queryAlerts()
			w.create(upgradeConfig(upgrade))
			w.runUntilStep("AllWorkerNodesUpgraded")
			c.outage(w, source)
			w.runUntilStep("PostClusterHealthCheck")
			if strings.Contains(name, "starts again") {
				w.RunFor(time.Hour)
				w.Restart()
				queryAlerts()
			}
			end := w.step("PostClusterHealthCheck").StartTime.Add(limit)
			w.RunFor(end.Add(-time.Second).Sub(w.Now()))
			if phase := w.record().Phase; phase == history.PhaseFailed || w.holder() == "" {
				t.Errorf("it has ended before; %s", w.describe())
			}
			w.RunFor(c.after + 6*time.Second)
			if got := w.condition("Succeeded"); w.record().Phase != history.PhaseFailed || !strings.HasPrefix(got, "False UnhealthyAfterUpgrade: ") || !strings.Contains(got, c.message) {
				t.Errorf("Succeeded is %q, want UnhealthyAfterUpgrade with %q; %s", got, c.message, w.describe())
			}
			if ended := w.step("PostClusterHealthCheck").CompleteTime; ended == nil || ended.After(end.Add(c.after+time.Second)) {
				t.Errorf("it ended at %s, want %s", ended, end)
			}
			if !w.isFinished(upgrade) {
				t.Errorf("something is held; %s", w.describe())
			}
		})
	}
}
