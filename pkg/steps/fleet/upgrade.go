// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/feedback"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/preflight"
)

// refusedAfter is how long a cluster may refuse the target before the upgrade fails.
const refusedAfter = 5 * time.Minute

// upgradeWork returns the work that upgrades the platform in a form.
func (c *Cluster) upgradeWork(ctx context.Context, form delivery.Form) (*workv1.ManifestWork, error) {
	upgrade, err := c.upgrade(ctx)
	if err != nil {
		return nil, err
	}
	started := c.Run.Spec.AdmissionTime.Time
	if c.Record.StartTime != nil {
		started = c.Record.StartTime.Time
	}
	work, err := delivery.UpgradeWork(c.Run, upgrade, form, started)
	if err != nil {
		return nil, fmt.Errorf("building the ManifestWork that upgrades the platform: %w", err)
	}
	return work, nil
}

// isApplied reports whether the agent has applied the request of this attempt.
func (c *Cluster) isApplied(work *workv1.ManifestWork) bool {
	form := c.formOf(work)
	if form != delivery.FormApply && form != delivery.FormReadOnly { // the latter is written once the target is accepted
		return false
	}
	f := feedback.Read(work)
	return form == delivery.FormReadOnly || f.Applied == metav1.ConditionTrue
}

// IsDelivered reports whether the agent has applied the request of this attempt.
func (c *Cluster) IsDelivered(ctx context.Context) (bool, error) {
	if c.Run.Spec.ClusterVersion == nil {
		return false, nil
	}
	work, err := c.work(ctx, delivery.UpgradeName(c.Run.Namespace))
	return err == nil && c.isApplied(work), err
}

// ObserveDelivery waits until the agent has applied the request. It returns the zero Result if this
// attempt has not requested the upgrade.
func (c *Cluster) ObserveDelivery(ctx context.Context, _ engine.Run) (engine.Result, error) {
	if c.Run.Spec.ClusterVersion == nil {
		return engine.Result{}, nil
	}
	work, err := c.work(ctx, delivery.UpgradeName(c.Run.Namespace))
	switch {
	case err != nil:
		return engine.Result{}, err
	case c.isApplied(work):
		return engine.Done("the agent has applied %s", work.Name), nil
	case c.formOf(work) != delivery.FormApply || !work.DeletionTimestamp.IsZero():
		return engine.Result{}, nil
	}
	if result, err := c.failIfDetached(ctx); err != nil || !result.IsZero() {
		return result, err
	}
	f := feedback.Read(work)
	return waitForApply(work.Name, &f), nil
}

// Deliver requests the upgrade of the platform.
func (c *Cluster) Deliver(ctx context.Context, _ engine.Run) (engine.Result, error) {
	if c.Run.Spec.ClusterVersion == nil {
		return noClusterVersion, nil
	}
	work, err := c.upgradeWork(ctx, delivery.FormApply)
	if err != nil {
		return engine.Result{}, err
	}
	_, result, err := c.deliver(ctx, work)
	if err == nil && result.IsZero() { // ObserveDelivery answers
		return waitForAgent(work.Name), nil
	}
	return result, err
}

// NotBeyondTarget passes unless the cluster has a newer release than the target, for which a request
// would be a downgrade. It waits while the cluster is being upgraded to another release. The claims of a
// cluster show only which release is complete, so a ManifestWork reads its history.
func (c *Cluster) NotBeyondTarget(ctx context.Context, _ engine.Run) (engine.Result, error) {
	if c.Run.Spec.ClusterVersion == nil {
		return engine.Done("no release is requested"), nil
	}
	if result, err := c.check(ctx); err != nil || !result.IsZero() {
		return result, err
	}
	return engine.Done("the cluster is not beyond %s", c.target()), nil
}

// check returns why the upgrade must not be requested; the zero Result means that it may be.
func (c *Cluster) check(ctx context.Context) (engine.Result, error) {
	if result, err := c.failIfDetached(ctx); err != nil || !result.IsZero() {
		return result, err
	}
	cluster, err := managedCluster(ctx, c.Client, c.Run.Namespace)
	if err != nil || cluster == nil {
		return engine.Result{}, err
	}
	if refusal := admission.Refusal(c.Run.Spec.ClusterVersion, cluster); refusal != nil {
		return engine.Fail(refusal.Reason, "%s", refusal.Message), nil
	}
	return c.preflight(ctx)
}

// preflight reads the history of the ClusterVersion, and decides about it as a dry run does.
func (c *Cluster) preflight(ctx context.Context) (engine.Result, error) {
	desired, err := delivery.PreflightWork(c.Run)
	if err != nil {
		return engine.Result{}, fmt.Errorf("building the ManifestWork of the preflight: %w", err)
	}
	work, result, err := c.deliver(ctx, desired)
	if err != nil || !result.IsZero() {
		return result, err
	}
	f := feedback.Read(work)
	version := f.ClusterVersion()
	switch {
	case f.Applied != metav1.ConditionTrue:
		return waitForApply(work.Name, &f), nil
	case !version.Version.IsKnown() || !version.State.IsKnown():
		return engine.Wait(reasonNoFeedback, "waiting until the agent reports the history of the ClusterVersion"), nil
	}
	found, _ := preflight.CheckHistory(&version, delivery.Target(c.Run))
	switch obstacle := found.Obstacle; obstacle.Reason {
	case "":
		return engine.Result{}, nil
	case fleetv1beta1.ReasonHeld:
		return engine.Wait(engine.ReasonPaused, "%s", obstacle.Message), nil
	case preflight.ReasonUpgradeInProgress:
		return engine.Wait(obstacle.Reason, "%s", obstacle.Message), nil
	default:
		return engine.Fail(obstacle.Reason, "%s", obstacle.Message), nil
	}
}

// Upgraded waits until the platform is at the target.
func (c *Cluster) Upgraded(ctx context.Context, run engine.Run) (engine.Result, error) {
	if c.Run.Spec.ClusterVersion == nil {
		return noClusterVersion, nil
	}
	work, result, err := c.observed(ctx)
	if err != nil || !result.IsZero() {
		return result, err
	}
	p := ReadPlatform(c.Run, work)
	switch p.Stage {
	case feedback.StageCompleted:
		return c.complete(ctx, work)
	case feedback.StageSuperseded:
		return engine.Fail(fleetv1alpha1.ReasonSuperseded, "another release has replaced %s before it was complete", c.target()), nil
	case feedback.StageNotAccepted:
		return c.notAccepted(&p, run), nil
	case feedback.StagePartial:
		if p.Failing.IsTrue() {
			return c.failing(fleetv1alpha1.StepClusterUpgraded, fleetv1alpha1.ReasonClusterVersionFailing, &p.Failing, run), nil
		}
		return engine.Wait(reasonUpgrading, "%s", cmp.Or(p.Message, "upgrading to "+c.target())), nil
	case feedback.StageUnknown:
	}
	return engine.Wait(reasonNoFeedback, "the agent does not report how far the upgrade is"), nil
}

// observed returns the work of the platform, which is written again if a user has deleted it. Once the
// target was accepted, the cluster is only observed.
func (c *Cluster) observed(ctx context.Context) (*workv1.ManifestWork, engine.Result, error) {
	if result, err := c.failIfDetached(ctx); err != nil || !result.IsZero() {
		return nil, result, err
	}
	work, err := c.work(ctx, delivery.UpgradeName(c.Run.Namespace))
	if err != nil {
		return nil, engine.Result{}, err
	}
	if form := c.formOf(work); work != nil && work.DeletionTimestamp.IsZero() && (form == delivery.FormApply || form == delivery.FormReadOnly) {
		return work, engine.Result{}, nil
	}
	form := delivery.FormApply
	if c.WasAccepted() {
		form = delivery.FormReadOnly
	}
	desired, err := c.upgradeWork(ctx, form)
	if err != nil {
		return nil, engine.Result{}, err
	}
	return c.deliver(ctx, desired)
}

// complete makes the work read-only: what the cluster requests from now on is its own affair.
func (c *Cluster) complete(ctx context.Context, work *workv1.ManifestWork) (engine.Result, error) {
	if result, err := c.observeOnly(ctx, work); err != nil || !result.IsZero() {
		return result, err
	}
	return engine.Done("the platform is at %s", c.target()), nil
}

// observeOnly makes the work read-only. The zero Result means that it is written so.
func (c *Cluster) observeOnly(ctx context.Context, work *workv1.ManifestWork) (engine.Result, error) {
	if c.formOf(work) == delivery.FormReadOnly {
		return engine.Result{}, nil
	}
	desired, err := c.upgradeWork(ctx, delivery.FormReadOnly)
	if err != nil {
		return engine.Result{}, err
	}
	_, result, err := c.deliver(ctx, desired)
	if err == nil && result.Reason() == reasonDelivered {
		return engine.Result{}, nil
	}
	return result, err
}

// notAccepted answers for a cluster whose history does not hold the target.
func (c *Cluster) notAccepted(p *Platform, run engine.Run) engine.Result {
	switch {
	case p.Newer != "" && !c.WasAccepted():
		return engine.Fail(fleetv1alpha1.ReasonNewerVersionInstalled, "it has %s, which is newer than %s", p.Newer, c.target())
	case c.WasAccepted():
		return engine.Fail(fleetv1alpha1.ReasonSuperseded, "another release has replaced %s before it was complete", c.target())
	case p.Refused != nil:
		message := fmt.Sprintf("the cluster does not accept %s: %s: %s", c.target(), p.Refused.Reason, p.Refused.Message)
		return c.failAfter(refusedAfter, fleetv1alpha1.StepClusterUpgraded, fleetv1alpha1.ReasonTargetRefused, p.Refused, run.Now, message)
	case p.Failing.IsTrue():
		return c.failing(fleetv1alpha1.StepClusterUpgraded, fleetv1alpha1.ReasonClusterVersionFailing, &p.Failing, run)
	}
	return engine.Wait(reasonRequested, "requested %s; the cluster has not accepted it", c.target())
}

// failing waits for an upgrade that reports that it is failing, in the words of the cluster version
// operator.
func (c *Cluster) failing(step, reason string, condition *feedback.Condition, run engine.Run) engine.Result {
	limit := delivery.Timeout(c.Run.Spec.Timeouts.Failing, fleetv1beta1.DefaultFailingTimeout)
	message := cmp.Or(condition.Message, condition.Reason, "the cluster version operator reports no message")
	return c.failAfter(limit, step, reason, condition, run.Now, message)
}

// IsUpgraded reports whether the platform is at the target.
func (c *Cluster) IsUpgraded(ctx context.Context) (bool, error) {
	if c.Run.Spec.ClusterVersion == nil {
		return false, nil
	}
	work, err := c.work(ctx, delivery.UpgradeName(c.Run.Namespace))
	if err != nil || c.formOf(work) == "" {
		return false, err
	}
	return ReadPlatform(c.Run, work).Stage == feedback.StageCompleted, nil
}

// WasAccepted reports whether the status holds that the cluster has accepted the target in this attempt.
func (c *Cluster) WasAccepted() bool {
	status := &c.Run.Status
	return status.Attempt == c.Record.Attempt && status.Accepted
}

// target returns the release for messages.
func (c *Cluster) target() string {
	return cmp.Or(c.Run.Spec.ClusterVersion.Version, c.Run.Spec.ClusterVersion.Image)
}

// reportGrace is how long an agent may take to report a work that was written: it polls every 10 to 19
// seconds.
const reportGrace = 30 * time.Second

// Soaked waits until the upgraded cluster was observed for long enough. Lost feedback, and a cluster
// that is failing, hold the soak open.
func (c *Cluster) Soaked(ctx context.Context, run engine.Run) (engine.Result, error) {
	if c.Run.Spec.Timeouts.Soak == "" {
		return noSoak, nil
	}
	until := run.Since.Add(delivery.Timeout(c.Run.Spec.Timeouts.Soak, ""))
	if c.Run.Spec.ClusterVersion != nil {
		work, result, err := c.observed(ctx)
		if err != nil || !result.IsZero() {
			return result, err
		}
		if result, err = c.observeOnly(ctx, work); err != nil || !result.IsZero() {
			return result, err
		}
		p := ReadPlatform(c.Run, work)
		switch {
		case p.Failing.IsTrue():
			return c.failing(fleetv1alpha1.StepSoaked, fleetv1alpha1.ReasonUnhealthyDuringSoak, &p.Failing, run), nil
		case p.Stage != feedback.StageCompleted && run.Now.Before(run.Since.Add(reportGrace)):
			return engine.WaitFor(run.Since.Add(reportGrace).Sub(run.Now), reasonSoaking, "observing the cluster until %s, once its agent reports", until.UTC().Format(time.RFC3339)), nil
		case p.Stage != feedback.StageCompleted:
			return engine.Wait(reasonNoFeedback, "the agent does not report whether the cluster is healthy"), nil
		}
	}
	if run.Now.Before(until) {
		return engine.WaitFor(until.Sub(run.Now), reasonSoaking, "observing the cluster until %s", until.UTC().Format(time.RFC3339)), nil
	}
	return engine.Done("the cluster was healthy for %s", c.Run.Spec.Timeouts.Soak), nil
}
