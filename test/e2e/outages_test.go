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
)

// waitReasons are the steps that ask Prometheus or Alertmanager for something, each with the reason for which it waits while
// they are down. The others need neither.
var waitReasons = map[string]string{
	"PreHealthCheck":                "CannotObserve",
	"ControlPlaneMaintWindow":       "NotSilenced",
	"CommenceUpgrade":               "CannotObserve",
	"RemoveControlPlaneMaintWindow": "NotEnded",
	"WorkersMaintWindow":            "NotSilenced",
	"RemoveMaintWindow":             "NotEnded",
	"PostClusterHealthCheck":        "CannotObserve",
}

// answerTTL is for how long what Prometheus has answered counts. So long does an outage last at least: a gate may open by an
// answer that is a moment older.
const answerTTL = time.Second

// outages has Prometheus and Alertmanager go down at the very request by which the operator saves that a step has begun,
// before that step is tried. They are back once a step that asks them is saved to wait for them, and not before.
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

// TestMonitoring_is_down_when_any_step_starts upgrades a cluster on which Prometheus and Alertmanager are down whenever a step
// begins. Steps that ask them wait, and are not passed by what nobody has said; the others do not care. In the end the
// cluster is upgraded, and nothing is silenced.
func TestMonitoring_is_down_when_any_step_starts(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, devcluster.Spec{Version: installed, Speed: fast, Releases: releases(1), Monitoring: &monitoring.Spec{}})
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
