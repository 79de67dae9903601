// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"cmp"
	"time"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// operatorsGrace is how long the Job that approves operators lives beyond their timeout.
const operatorsGrace = 90 * time.Second

// ApplyBy returns until when the agent must have applied the request of an attempt; zero means that the
// step has not started, or is paused. Before the request, the time counts from the last change of what
// the step waits for. The time in which the upgrade was paused does not count.
func ApplyBy(run *fleetv1alpha1.ClusterUpgradeRun, record *history.Record) time.Time {
	step := record.Step(fleetv1alpha1.StepUpgradeDelivered)
	start := cmp.Or(record.RequestTime, step.ReasonTime, step.StartTime)
	timeout := Timeout(run.Spec.Timeouts.Apply, fleetv1beta1.DefaultApplyTimeout)
	if timeout == 0 || start == nil || record.RequestTime == nil && step.Reason == engine.ReasonPaused {
		return time.Time{}
	}
	return start.Add(timeout)
}

// StepTimeout returns how long a step may take from its start; zero means that it has no such limit.
// ApplyBy has the limit of StepUpgradeDelivered.
func StepTimeout(run *fleetv1alpha1.ClusterUpgradeRun, step string) time.Duration {
	timeouts := &run.Spec.Timeouts
	switch step {
	case fleetv1alpha1.StepPreUpgradeActionAvailable, fleetv1alpha1.StepPostUpgradeActionAvailable:
		return Timeout(timeouts.Action, fleetv1beta1.DefaultActionTimeout)
	case fleetv1alpha1.StepClusterUpgraded:
		return Timeout(timeouts.ClusterUpgrade, fleetv1beta1.DefaultClusterUpgradeTimeout)
	case fleetv1alpha1.StepOperatorsUpgraded:
		return Timeout(timeouts.OperatorsUpgrade, fleetv1beta1.DefaultOperatorsUpgradeTimeout) + operatorsGrace
	}
	return 0
}

// Timeout returns a configured duration, or the default; zero means that it is no duration, which the
// API server does not accept.
func Timeout(configured, byDefault fleetv1beta1.Duration) time.Duration {
	timeout, err := time.ParseDuration(string(cmp.Or(configured, byDefault)))
	if err != nil {
		return 0
	}
	return timeout
}
