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

// OperatorsGrace is how long the Job that approves operators lives beyond their timeout.
const OperatorsGrace = 90 * time.Second

// ApplyBy returns until when the agent must have applied the request of an attempt; zero means that the
// step has not started, or is paused. Before the request, the time counts from the last change of what
// the step waits for. The time in which the upgrade was paused does not count.
func ApplyBy(run *fleetv1alpha1.ClusterUpgradeRun, record *history.Record) time.Time {
	var step history.StepCondition
	for i := range record.Conditions {
		if record.Conditions[i].Type == fleetv1alpha1.StepUpgradeDelivered {
			step = record.Conditions[i]
		}
	}
	start := cmp.Or(record.RequestTime, step.ReasonTime, step.StartTime)
	timeout, err := time.ParseDuration(string(cmp.Or(run.Spec.Timeouts.Apply, fleetv1beta1.DefaultApplyTimeout)))
	if err != nil || start == nil || record.RequestTime == nil && step.Reason == engine.ReasonPaused {
		return time.Time{} // the API server would not have accepted another duration
	}
	return start.Add(timeout)
}
