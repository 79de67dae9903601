// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet has the table of the steps by which the hub upgrades a managed cluster. The operator of
// a single cluster does not link it.
package fleet

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

// Upgrader upgrades a managed cluster as a ClusterUpgradeRun requests.
type Upgrader struct {
	// Client reads from the cache of the hub and writes to its API server.
	Client client.Client
	// Image is the image of the Job that approves operators.
	Image string
	// ReplicaSets has the actions delivered by ManifestWorkReplicaSets.
	ReplicaSets bool
	// Creations are the works that the process has created; nil means that it does not remember them.
	Creations *fleet.Creations
	// Upgrade is the ManagedClustersUpgrade; nil means that it is not known.
	Upgrade *fleetv1beta1.ManagedClustersUpgrade
}

// Runbook returns the table of the steps of an attempt. progress is when the cluster last made
// progress; zero means when the step started.
func (u Upgrader) Runbook(run *fleetv1alpha1.ClusterUpgradeRun, record history.Record, progress time.Time) engine.Runbook {
	s := stepSet{
		Cluster: &fleet.Cluster{Client: u.Client, Run: run, Record: record, Image: u.Image, ReplicaSets: u.ReplicaSets, Creations: u.Creations},
		upgrade: u.Upgrade, record: record, progress: progress,
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

// stepSet has the lines of the table, for one attempt. Each method returns one
// line and is named for its step.
type stepSet struct {
	*fleet.Cluster

	upgrade  *fleetv1beta1.ManagedClustersUpgrade
	record   history.Record
	progress time.Time
}

// slowAfter returns after which time a step stalls: when the cluster has made no progress for as long
// as the stall timeout.
func (s stepSet) slowAfter(name string) time.Duration {
	stall := delivery.Timeout(s.Run.Spec.Timeouts.Stall, fleetv1beta1.DefaultStallTimeout)
	if started := s.record.Step(name).StartTime; started != nil && s.progress.After(started.Time) {
		stall += s.progress.Sub(started.Time)
	}
	return stall
}

// actionSlowAfter returns after which time the step of an action stalls: if ManifestWorkReplicaSets are
// ignored.
func (s stepSet) actionSlowAfter(name string) time.Duration {
	if s.record.Step(name).Reason == fleet.ReasonReplicaSetIgnored {
		return fleet.ReplicaSetLimit
	}
	return 0
}

// PreUpgradeActionAvailable runs the action before the upgrade.
func (s stepSet) PreUpgradeActionAvailable() engine.Step {
	return engine.Step{
		Name:       fleetv1alpha1.StepPreUpgradeActionAvailable,
		Doc:        "Applies `preUpgradeAction`, and waits until it is available.",
		Skip:       fleet.SkipAction(s.upgrade, delivery.PreUpgrade),
		Do:         s.ActionAvailable(delivery.PreUpgrade),
		Reached:    s.IsActionAvailable(delivery.PreUpgrade),
		SlowAfter:  s.actionSlowAfter(fleetv1alpha1.StepPreUpgradeActionAvailable),
		FailAfter:  delivery.StepTimeout(s.Run, fleetv1alpha1.StepPreUpgradeActionAvailable),
		FailReason: fleetv1alpha1.ReasonPreActionDegraded,
		Milestone:  engine.MilestoneStarted,
	}
}

// UpgradeDelivered is the point of no return.
func (s stepSet) UpgradeDelivered() engine.Step {
	return engine.Step{
		Name:       fleetv1alpha1.StepUpgradeDelivered,
		Doc:        "Requests the release by a ManifestWork, and waits until the agent has applied it. It fails if the agent has not by `applyTimeout`.",
		Observe:    s.ObserveDelivery,
		Gates:      []engine.Gate{{Name: "NotBeyondTarget", Check: s.NotBeyondTarget}},
		Do:         s.Deliver,
		Undo:       s.Withdraw,
		Reached:    s.IsDelivered,
		Commits:    true,
		Repeatable: true,
		FailBy:     delivery.ApplyBy(s.Run, &s.record),
		FailReason: fleetv1alpha1.ReasonApplyTimedOut,
		Milestone:  engine.MilestoneCommenced,
	}
}

// ClusterUpgraded is the longest wait.
func (s stepSet) ClusterUpgraded() engine.Step {
	return engine.Step{
		Name:       fleetv1alpha1.StepClusterUpgraded,
		Doc:        "Waits until the platform is at the release. It fails early if the cluster refuses the release or is failing.",
		Skip:       s.SkipPlatform(),
		Do:         s.Upgraded,
		Repeatable: true,
		Reached:    s.IsUpgraded,
		SlowAfter:  s.slowAfter(fleetv1alpha1.StepClusterUpgraded),
		FailAfter:  delivery.StepTimeout(s.Run, fleetv1alpha1.StepClusterUpgraded),
		FailReason: fleetv1alpha1.ReasonClusterUpgradeTimedOut,
		Milestone:  engine.MilestoneControlPlaneUpgraded,
	}
}

// OperatorsUpgraded upgrades the operators of the Operator Lifecycle Manager.
func (s stepSet) OperatorsUpgraded() engine.Step {
	return engine.Step{
		Name:       fleetv1alpha1.StepOperatorsUpgraded,
		Doc:        "Approves the upgrades of `ocpOperators` by a Job on the cluster, and waits until they are installed.",
		Skip:       fleet.SkipOperators(s.upgrade),
		Do:         s.Cluster.OperatorsUpgraded,
		Reached:    s.AreOperatorsUpgraded,
		FailAfter:  delivery.StepTimeout(s.Run, fleetv1alpha1.StepOperatorsUpgraded),
		FailReason: fleetv1alpha1.ReasonOperatorsFailed,
	}
}

// PostUpgradeActionAvailable runs the action after the upgrade.
func (s stepSet) PostUpgradeActionAvailable() engine.Step {
	return engine.Step{
		Name:       fleetv1alpha1.StepPostUpgradeActionAvailable,
		Doc:        "Applies `postUpgradeAction`, and waits until it is available.",
		Skip:       fleet.SkipAction(s.upgrade, delivery.PostUpgrade),
		Do:         s.ActionAvailable(delivery.PostUpgrade),
		Reached:    s.IsActionAvailable(delivery.PostUpgrade),
		SlowAfter:  s.actionSlowAfter(fleetv1alpha1.StepPostUpgradeActionAvailable),
		FailAfter:  delivery.StepTimeout(s.Run, fleetv1alpha1.StepPostUpgradeActionAvailable),
		FailReason: fleetv1alpha1.ReasonPostActionDegraded,
	}
}

// Soaked observes the cluster.
func (s stepSet) Soaked() engine.Step {
	return engine.Step{
		Name:       fleetv1alpha1.StepSoaked,
		Doc:        "Observes the cluster for `minSuccessTime`. It fails if the cluster is failing meanwhile.",
		Skip:       s.SkipSoak(),
		Do:         s.Cluster.Soaked,
		Repeatable: true,
		Milestone:  engine.MilestoneCompleted,
	}
}

// TargetWithdrawn undoes what the cluster has not accepted.
func (s stepSet) TargetWithdrawn() engine.Step {
	return engine.Step{
		Name:      fleetv1alpha1.StepTargetWithdrawn,
		Doc:       "Withdraws the request if the cluster has not accepted the release. It does not wait for a cluster that the hub cannot reach.",
		Do:        s.Withdraw,
		FailAfter: withdrawTimeout,
		Milestone: engine.MilestoneFailed,
	}
}

// WorksRemoved removes the works of the attempt.
func (s stepSet) WorksRemoved() engine.Step {
	return engine.Step{
		Name: fleetv1alpha1.StepWorksRemoved,
		Doc:  "Removes the ManifestWorks of the attempt. After a failure, that of the platform stays, and observes only; that of the operators stays if its Job has failed.",
		Do:   s.RemoveWorks,
	}
}
