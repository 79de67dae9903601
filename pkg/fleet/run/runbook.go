// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
)

const withdrawTimeout = 10 * time.Minute // how long an attempt waits until the agent has withdrawn a request

// Runbook returns the table of the steps of the attempt. The upgrade is nil if it is not known. progress is the time of the
// last progress of the cluster; zero for the start of the step.
func (c *Cluster) Runbook(upgrade *fleetv1beta1.ManagedClustersUpgrade, progress time.Time) engine.Runbook {
	return engine.Runbook{
		Steps: append(c.platformSteps(upgrade, progress), c.finalSteps(upgrade)...),
		Cleanup: []engine.Step{{
			Name:      fleetv1alpha1.StepTargetWithdrawn,
			Doc:       "Withdraws the request if the cluster has not accepted the release. It does not wait for a cluster that the hub cannot reach.",
			Do:        c.Withdraw,
			FailAfter: withdrawTimeout,
			Milestone: engine.MilestoneFailed,
		}},
		Finally: []engine.Step{{
			Name: fleetv1alpha1.StepWorksRemoved,
			Doc:  "Removes the ManifestWorks of the attempt. After a failure, the work of the platform stays, and only observes; the work of the operators stays if its Job has failed.",
			Do:   c.RemoveWorks,
		}},
		Abandon: c.RemoveAll,
	}
}

// platformSteps returns the steps until the platform is upgraded. StepUpgradeDelivered is the point of no return.
func (c *Cluster) platformSteps(upgrade *fleetv1beta1.ManagedClustersUpgrade, progress time.Time) []engine.Step {
	return []engine.Step{
		{
			Name:       fleetv1alpha1.StepPreUpgradeActionAvailable,
			Doc:        "Applies `preUpgradeAction`, and waits until it is available.",
			Skip:       skipUnless(upgrade == nil || delivery.HasAction(upgrade, delivery.PreUpgrade), noAction),
			Do:         c.Heard(c.actionAvailable(delivery.PreUpgrade, fleetv1alpha1.ReasonPreActionDegraded)),
			Reached:    c.isAvailable(c.actions()[0]),
			SlowAfter:  c.actionSlowAfter(fleetv1alpha1.StepPreUpgradeActionAvailable),
			FailBy:     c.afterNews(fleetv1alpha1.StepPreUpgradeActionAvailable, delivery.PreActionBy(c.Run, &c.Record)),
			FailReason: fleetv1alpha1.ReasonPreActionDegraded,
			Milestone:  engine.MilestoneStarted,
		}, {
			Name:       fleetv1alpha1.StepUpgradeDelivered,
			Doc:        "Requests the release by a ManifestWork, and waits until the agent has applied it. It fails if the agent has not by `applyTimeout`.",
			Gates:      []engine.Gate{{Name: "NotBeyondTarget", Check: c.Heard(c.NotBeyondTarget)}},
			Do:         c.Deliver,
			Commit:     &engine.Commit{Observe: c.observe, Withdraw: c.Withdraw, Requested: waitForAgent(delivery.UpgradeName(c.Run.Namespace))},
			Repeatable: true,
			FailBy:     c.afterNews(fleetv1alpha1.StepUpgradeDelivered, delivery.ApplyBy(c.Run, &c.Record)),
			FailReason: fleetv1alpha1.ReasonApplyTimedOut,
			Milestone:  engine.MilestoneCommenced,
		}, {
			Name:       fleetv1alpha1.StepClusterUpgraded,
			Doc:        "Waits until the platform is at the release. It fails early if the cluster refuses the release or is failing.",
			Skip:       skipUnless(c.Run.Spec.ClusterVersion != nil, noClusterVersion),
			Do:         c.Heard(c.Upgraded),
			Repeatable: true,
			Reached:    c.IsUpgraded,
			SlowAfter:  c.stallAfter(fleetv1alpha1.StepClusterUpgraded, progress),
			FailAfter:  c.failAfterNews(fleetv1alpha1.StepClusterUpgraded),
			FailReason: fleetv1alpha1.ReasonClusterUpgradeTimedOut,
			Milestone:  engine.MilestoneControlPlaneUpgraded,
		},
	}
}

// observe is ObserveDelivery for a cluster that may be silent.
func (c *Cluster) observe(ctx context.Context, run engine.Run) (engine.Observed, engine.Result, error) {
	observed, answer, err := c.ObserveDelivery(ctx, run)
	answer, err = c.Heard(func(context.Context, engine.Run) (engine.Result, error) { return answer, err })(ctx, run)
	return observed, answer, err
}

// finalSteps returns the steps on a cluster whose platform is upgraded.
func (c *Cluster) finalSteps(upgrade *fleetv1beta1.ManagedClustersUpgrade) []engine.Step {
	return []engine.Step{
		{
			Name:       fleetv1alpha1.StepOperatorsUpgraded,
			Doc:        "Approves the upgrades of `ocpOperators` by a Job on the cluster, and waits until they are installed.",
			Skip:       skipUnless(upgrade == nil || delivery.ApprovesOperators(upgrade), noOperators),
			Do:         c.Heard(c.OperatorsUpgraded),
			Reached:    c.isAvailable(delivery.OperatorsName(c.Run.Namespace)),
			FailAfter:  c.failAfterNews(fleetv1alpha1.StepOperatorsUpgraded),
			FailReason: fleetv1alpha1.ReasonOperatorsFailed,
		}, {
			Name:       fleetv1alpha1.StepPostUpgradeActionAvailable,
			Doc:        "Applies `postUpgradeAction`, and waits until it is available.",
			Skip:       skipUnless(upgrade == nil || delivery.HasAction(upgrade, delivery.PostUpgrade), noAction),
			Do:         c.Heard(c.actionAvailable(delivery.PostUpgrade, fleetv1alpha1.ReasonPostActionDegraded)),
			Reached:    c.isAvailable(c.actions()[1]),
			SlowAfter:  c.actionSlowAfter(fleetv1alpha1.StepPostUpgradeActionAvailable),
			FailAfter:  c.failAfterNews(fleetv1alpha1.StepPostUpgradeActionAvailable),
			FailReason: fleetv1alpha1.ReasonPostActionDegraded,
		}, {
			Name: fleetv1alpha1.StepSoaked,
			Doc: "Observes the cluster for `minSuccessTime`. A cluster that is failing or silent starts the soak again. It fails if the cluster is failing for " +
				"`failingTimeout`, or if the soak is not over `clusterUpgradeTimeout` after it could have been.",
			Skip:       skipUnless(c.Run.Spec.Timeouts.Soak != "", noSoak),
			Do:         c.Soaked,
			Repeatable: true,
			SlowAfter:  c.soakSlowAfter(),
			FailAfter:  c.soakFailAfter(),
			FailReason: fleetv1alpha1.ReasonSoakTimedOut,
			Milestone:  engine.MilestoneCompleted,
		},
	}
}

// skipUnless returns the answer of a step without work, and otherwise the zero Result.
func skipUnless(hasWork bool, answer engine.Result) engine.Result {
	if hasWork {
		return engine.Result{}
	}
	return answer
}

// stallAfter returns the time until a step stalls if it makes no progress since a time. The engine counts from the start
// of the step, or from its last answer that was progress.
func (c *Cluster) stallAfter(name string, since time.Time) time.Duration {
	step := c.Record.Step(name)
	stall := delivery.Timeout(c.Run.Spec.Timeouts.Stall, fleetv1beta1.DefaultStallTimeout)
	if counted := cmp.Or(step.ProgressTime, step.StartTime); counted != nil {
		return stall + max(0, since.Sub(counted.Time))
	}
	return stall
}

// actionSlowAfter returns the time until an action stalls if its ManifestWorkReplicaSet is ignored.
func (c *Cluster) actionSlowAfter(name string) time.Duration {
	if c.Record.Step(name).Reason == ReasonReplicaSetIgnored {
		return ReplicaSetLimit
	}
	return 0
}

// afterNews returns the deadline of a step, but not before the agents have reported to a hub that starts during the step: what
// they reported to the hub before may be older than its absence.
func (c *Cluster) afterNews(step string, due time.Time) time.Time {
	start := c.Record.Step(step).StartTime
	if due.IsZero() || start == nil || !c.Watched.After(start.Time) {
		return due
	}
	if news := c.Watched.Add(admission.NewsGrace); due.Before(news) {
		return news
	}
	return due
}

// failAfterNews returns how long a step may take.
func (c *Cluster) failAfterNews(step string) time.Duration {
	limit, start := delivery.StepTimeout(c.Run, step), c.Record.Step(step).StartTime
	if limit == 0 || start == nil {
		return limit
	}
	return c.afterNews(step, start.Add(limit)).Sub(start.Time)
}

// soakFailAfter returns how long the soak may take. The absence of a hub says nothing about the cluster: one that starts looks
// for the soak and the stall timeout.
func (c *Cluster) soakFailAfter() time.Duration {
	limit, start := delivery.StepTimeout(c.Run, fleetv1alpha1.StepSoaked), c.Record.Step(fleetv1alpha1.StepSoaked).StartTime
	if limit == 0 || start == nil {
		return limit
	}
	timeouts := &c.Run.Spec.Timeouts
	return max(limit, c.Watched.Sub(start.Time)+delivery.Timeout(timeouts.Soak, "")+delivery.Timeout(timeouts.Stall, fleetv1beta1.DefaultStallTimeout))
}

// soakSlowAfter returns the time until the soak stalls: until it is interrupted for the stall timeout.
func (c *Cluster) soakSlowAfter() time.Duration {
	step := c.Record.Step(fleetv1alpha1.StepSoaked)
	if step.StartTime == nil || step.Reason == engine.ReasonPaused || !SoakStart(&c.Record).IsZero() {
		return 0
	}
	since := cmp.Or(step.ReasonTime, step.StartTime)
	if step.Status == metav1.ConditionUnknown {
		since = step.LastTransitionTime
	}
	return c.stallAfter(fleetv1alpha1.StepSoaked, since.Time)
}
