// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/monitoring"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/alerting"
)

// waitReasons maps the steps that use Prometheus or Alertmanager to their reason while these are
// down. The other steps need neither.
var waitReasons = map[string]string{
	"PreHealthCheck":                "CannotObserve",
	"ControlPlaneMaintWindow":       "NotSilenced",
	"CommenceUpgrade":               "CannotObserve",
	"RemoveControlPlaneMaintWindow": "NotEnded",
	"WorkersMaintWindow":            "NotSilenced",
	"RemoveMaintWindow":             "NotEnded",
	"PostClusterHealthCheck":        "CannotObserve",
}

// answerTTL is how long a result of Prometheus stays valid. An outage lasts at least as long: a
// gate may pass with a slightly older result.
const answerTTL = time.Second

// outages stops Prometheus and Alertmanager during the request that saves the start of a step,
// before the step is called. It starts them again once a step that uses them is saved as waiting
// for them.
type outages struct {
	t       *testing.T
	servers *monitoring.Monitoring
	down    bool
	since   time.Time
	begun   map[string]bool // while they were down
	waited  map[string]bool
	count   int
}

func (o *outages) onSave(steps []history.StepCondition, pass func() bool) {
	back := false
	for _, c := range steps {
		waits := waitReasons[c.Type]
		switch {
		case !o.begun[c.Type]:
			o.begun[c.Type] = true
			o.stop()
		case c.Reason == waits && c.CompleteTime == nil && o.down:
			o.waited[c.Type], back = true, true
		}
		if waits != "" && c.CompleteTime != nil && !o.waited[c.Type] {
			o.t.Errorf("%s is over (%s: %s), and did not wait for who is down", c.Type, c.Reason, c.Message)
			o.waited[c.Type] = true
		}
	}
	pass()
	if back {
		o.start()
	}
}

func (o *outages) stop() {
	if o.down {
		return
	}
	if err := errors.Join(o.servers.StopPrometheus(), o.servers.StopAlertmanager()); err != nil {
		o.t.Error(err)
	}
	o.down, o.since = true, time.Now()
	o.count++
}

func (o *outages) start() {
	o.down = false
	<-time.After(time.Until(o.since.Add(answerTTL)))
	if err := errors.Join(o.servers.StartAlertmanager(o.t.Context()), o.servers.StartPrometheus(o.t.Context())); err != nil {
		o.t.Error(err)
	}
}

// TestMonitoring_is_down_when_any_step_starts upgrades a cluster whose Prometheus and Alertmanager
// are down whenever a step starts. Steps that use them wait, and no missing result passes a gate;
// other steps continue. In the end the cluster is upgraded, and no alert is silenced.
func TestMonitoring_is_down_when_any_step_starts(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, openshiftsim.ClusterSpec{Version: installed, Speed: fast, Releases: releases(1), Monitoring: &alerting.Spec{}})
	saves := startSaves(t, cluster)
	operator := startOperator(t, cluster, devcluster.OperatorOptions{APIServer: saves.access, Config: fmt.Sprintf("alerts: {interval: %s}", answerTTL)})
	userClient := newUserClient(t, cluster)
	o := &outages{t: t, servers: cluster.Monitoring, begun: map[string]bool{}, waited: map[string]bool{}}
	saves.setOnSave(o.onSave)
	upgrade := applyUpgrade(t, userClient, upgradeTo(releases(1)[0].Version))
	follow(t, userClient, upgrade, func(*history.Record) {})
	saves.setOnSave(nil)
	t.Logf("Prometheus and Alertmanager were down %d times", o.count)
	for _, step := range osd(upgrade) {
		if !o.begun[step.Name] {
			t.Errorf("Prometheus and Alertmanager were not down when %s began", step.Name)
		}
	}
	for step := range waitReasons {
		if !o.waited[step] {
			t.Errorf("%s did not wait for Prometheus and Alertmanager", step)
		}
	}
	o.start()
	checkAftermath(t, cluster, operator)
}
