// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package runbooks

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/fleet"
)

// withdrawTimeout is how long the cleanup waits until the agent has withdrawn a request.
const withdrawTimeout = 10 * time.Minute

// Fleet upgrades a managed cluster as a ClusterUpgradeRun requests.
type Fleet struct {
	// Client reads from the cache of the hub and writes to its API server.
	Client client.Client
	// Image is the image of the Job that approves operators.
	Image string
}

// Runbook returns the table of the steps of an attempt. progress is when the cluster last made
// progress; zero means when the step started.
func (f Fleet) Runbook(run *fleetv1alpha1.ClusterUpgradeRun, record history.Record, progress time.Time) engine.Runbook {
	s := fleetSteps{
		Cluster: &fleet.Cluster{Client: f.Client, Run: run, Record: record, Image: f.Image},
		record:  record, progress: progress, timeouts: run.Spec.Timeouts,
	}
	return engine.Runbook{
		Steps: []engine.Step{
			s.PreUpgradeActionAvailable(),
			s.UpgradeDelivered(),
			s.ClusterUpgraded(),
			s.OperatorsUpgraded(),
			s.PostUpgradeActionAvailable(),
			s.Soaked(),
		},
		Cleanup: []engine.Step{s.TargetWithdrawn()},
		Finally: []engine.Step{s.WorksRemoved()},
		Abandon: s.RemoveAll,
	}
}

// fleetSteps has the lines of the table of ClusterUpgradeRuns, for one attempt. Each method returns one
// line and is named for its step.
type fleetSteps struct {
	*fleet.Cluster

	record   history.Record
	progress time.Time
	timeouts fleetv1alpha1.Timeouts
}

// condition returns the condition of a step; the zero condition means that it has not started.
func (s fleetSteps) condition(name string) history.StepCondition {
	for i := range s.record.Conditions {
		if s.record.Conditions[i].Type == name {
			return s.record.Conditions[i]
		}
	}
	return history.StepCondition{}
}

// slowAfter returns after which time a step stalls: when the cluster has made no progress for as long
// as the stall timeout.
func (s fleetSteps) slowAfter(name string) time.Duration {
	stall := fleet.Timeout(s.timeouts.Stall, fleetv1beta1.DefaultStallTimeout)
	if started := s.condition(name).StartTime; started != nil && s.progress.After(started.Time) {
		stall += s.progress.Sub(started.Time)
	}
	return stall
}

// PreUpgradeActionAvailable runs the action before the upgrade.
func (s fleetSteps) PreUpgradeActionAvailable() engine.Step {
	return engine.Step{
		Name:       fleetv1alpha1.StepPreUpgradeActionAvailable,
		Doc:        "Applies `preUpgradeAction`, and waits until it is available.",
		Do:         s.ActionAvailable(delivery.PreUpgrade),
		Reached:    s.IsActionAvailable(delivery.PreUpgrade),
		FailAfter:  fleet.Timeout(s.timeouts.Action, fleetv1beta1.DefaultActionTimeout),
		FailReason: fleetv1alpha1.ReasonPreActionDegraded,
		Milestone:  engine.MilestoneStarted,
	}
}

// UpgradeDelivered is the point of no return.
func (s fleetSteps) UpgradeDelivered() engine.Step {
	return engine.Step{
		Name:       fleetv1alpha1.StepUpgradeDelivered,
		Doc:        "Requests the release by a ManifestWork, and waits until the agent has applied it. It fails if the agent has not by `applyTimeout`.",
		Observe:    s.ObserveDelivery,
		Gates:      []engine.Gate{{Name: "NotBeyondTarget", Check: s.NotBeyondTarget}},
		Do:         s.Deliver,
		Undo:       s.Withdraw,
		Reached:    s.IsDelivered,
		Commits:    true,
		FailBy:     delivery.ApplyBy(s.Run, &s.record),
		FailReason: fleetv1alpha1.ReasonApplyTimedOut,
		Milestone:  engine.MilestoneCommenced,
	}
}

// ClusterUpgraded is the longest wait.
func (s fleetSteps) ClusterUpgraded() engine.Step {
	return engine.Step{
		Name:       fleetv1alpha1.StepClusterUpgraded,
		Doc:        "Waits until the platform is at the release. It fails early if the cluster refuses the release or is failing.",
		Do:         s.Upgraded,
		Reached:    s.IsUpgraded,
		SlowAfter:  s.slowAfter(fleetv1alpha1.StepClusterUpgraded),
		FailAfter:  fleet.Timeout(s.timeouts.ClusterUpgrade, fleetv1beta1.DefaultClusterUpgradeTimeout),
		FailReason: fleetv1alpha1.ReasonClusterUpgradeTimedOut,
		Milestone:  engine.MilestoneControlPlaneUpgraded,
	}
}

// OperatorsUpgraded upgrades the operators of the Operator Lifecycle Manager.
func (s fleetSteps) OperatorsUpgraded() engine.Step {
	return engine.Step{
		Name:       fleetv1alpha1.StepOperatorsUpgraded,
		Doc:        "Approves the upgrades of `ocpOperators` by a Job on the cluster, and waits until they are installed.",
		Do:         s.Cluster.OperatorsUpgraded,
		Reached:    s.AreOperatorsUpgraded,
		FailAfter:  fleet.Timeout(s.timeouts.OperatorsUpgrade, fleetv1beta1.DefaultOperatorsUpgradeTimeout) + delivery.OperatorsGrace,
		FailReason: fleetv1alpha1.ReasonOperatorsFailed,
	}
}

// PostUpgradeActionAvailable runs the action after the upgrade.
func (s fleetSteps) PostUpgradeActionAvailable() engine.Step {
	return engine.Step{
		Name:       fleetv1alpha1.StepPostUpgradeActionAvailable,
		Doc:        "Applies `postUpgradeAction`, and waits until it is available.",
		Do:         s.ActionAvailable(delivery.PostUpgrade),
		Reached:    s.IsActionAvailable(delivery.PostUpgrade),
		FailAfter:  fleet.Timeout(s.timeouts.Action, fleetv1beta1.DefaultActionTimeout),
		FailReason: fleetv1alpha1.ReasonPostActionDegraded,
	}
}

// Soaked observes the cluster.
func (s fleetSteps) Soaked() engine.Step {
	return engine.Step{
		Name:      fleetv1alpha1.StepSoaked,
		Doc:       "Observes the cluster for `minSuccessTime`. It fails if the cluster is failing meanwhile.",
		Do:        s.Cluster.Soaked,
		Milestone: engine.MilestoneCompleted,
	}
}

// TargetWithdrawn undoes what the cluster has not accepted.
func (s fleetSteps) TargetWithdrawn() engine.Step {
	return engine.Step{
		Name:      fleetv1alpha1.StepTargetWithdrawn,
		Doc:       "Withdraws the request if the cluster has not accepted the release. It does not wait for a cluster that the hub cannot reach.",
		Do:        s.Withdraw,
		FailAfter: withdrawTimeout,
		Milestone: engine.MilestoneFailed,
	}
}

// WorksRemoved removes the works of the attempt.
func (s fleetSteps) WorksRemoved() engine.Step {
	return engine.Step{
		Name: fleetv1alpha1.StepWorksRemoved,
		Doc:  "Removes the ManifestWorks of the attempt. After a failure, that of the platform stays, and observes only; that of the operators stays if its Job has failed.",
		Do:   s.RemoveWorks,
	}
}
