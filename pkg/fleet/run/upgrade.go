// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
)

const refusedAfter = 5 * time.Minute // how long a cluster may refuse the target before the upgrade fails

// deliverUpgrade delivers the work that upgrades the platform. A withdrawal returns to the current release.
func (c *Cluster) deliverUpgrade(ctx context.Context, form delivery.Form, current clusterstate.Release) (*workv1.ManifestWork, engine.Result, error) {
	upgrade, err := Upgrade(ctx, c.Client, c.Run)
	if err != nil {
		return nil, engine.Result{}, err
	}
	before, err := c.work(ctx, delivery.UpgradeName(c.Run.Namespace))
	if err != nil {
		return nil, engine.Result{}, err
	}
	at := cmp.Or(c.Record.RequestTime, c.Record.StartTime, &c.Run.Spec.AdmissionTime)
	if start := c.Record.StartTime; c.formOf(before) != "" && start != nil && delivery.UpgradeAt(before).Equal(start.Time) {
		at = start // of an earlier release; the cluster accepts no other time for an upgrade in progress
	}
	work, err := delivery.UpgradeWork(c.Run, upgrade, form, at.Time, current)
	if err != nil {
		return nil, engine.Result{}, fmt.Errorf("building the ManifestWork that upgrades the platform: %w", err)
	}
	return c.deliver(ctx, work)
}

// ObserveDelivery returns what became of the request of this attempt, and the answer. The upgrade begins when the agent
// applies the request. A read-only work was written once the target was accepted.
func (c *Cluster) ObserveDelivery(ctx context.Context, _ engine.Run) (engine.Observed, engine.Result, error) {
	if c.Run.Spec.ClusterVersion == nil {
		return engine.ObservedNone, engine.Result{}, nil
	}
	work, err := c.work(ctx, delivery.UpgradeName(c.Run.Namespace))
	if err != nil {
		return engine.ObservedNone, engine.Result{}, err
	}
	f := delivery.Read(work)
	switch form := c.formOf(work); {
	case form == delivery.FormReadOnly, form == delivery.FormApply && f.IsApplied():
		return engine.ObservedBegun, engine.Done("the agent has applied %s", work.Name), nil
	case form != delivery.FormApply || !work.DeletionTimestamp.IsZero():
		return engine.ObservedNone, engine.Result{}, nil
	}
	_, answer, err := c.attached(ctx)
	if err == nil && answer.IsZero() {
		answer = waitForApply(work.Name, f)
	}
	return engine.ObservedPending, answer, err
}

// Deliver requests the upgrade of the platform.
func (c *Cluster) Deliver(ctx context.Context, run engine.Run) (engine.Result, error) {
	if c.Run.Spec.ClusterVersion == nil {
		return noClusterVersion, nil
	}
	c.Record.RequestTime = cmp.Or(c.Record.RequestTime, &metav1.Time{Time: run.RequestTime}) // stored since the record was read
	work, result, err := c.deliverUpgrade(ctx, delivery.FormApply, clusterstate.Release{})
	if err == nil && result.IsZero() { // ObserveDelivery answers
		return waitForAgent(work.Name), nil
	}
	return result, err
}

// NotBeyondTarget fails if the cluster has a newer release than the target: a request would be a downgrade. It waits while
// the cluster is being upgraded to another release. Claims show complete releases only, so a ManifestWork reads the history.
func (c *Cluster) NotBeyondTarget(ctx context.Context, _ engine.Run) (engine.Result, error) {
	if c.Run.Spec.ClusterVersion == nil {
		return engine.Done("no release is requested"), nil
	}
	cluster, result, err := c.attached(ctx)
	if err != nil || !result.IsZero() {
		return result, err
	}
	if refusal := admission.Refusal(c.Run.Spec.ClusterVersion, cluster); refusal != nil {
		return engine.Fail(refusal.Reason, "%s", refusal.Message), nil
	}
	if result, err = c.preflight(ctx); err != nil || !result.IsZero() {
		return result, err
	}
	return engine.Done("the cluster is not beyond %s", c.target()), nil
}

// preflight checks the history of the ClusterVersion as a dry run does. The zero Result lets the upgrade be requested.
func (c *Cluster) preflight(ctx context.Context) (engine.Result, error) {
	desired, err := delivery.PreflightWork(c.Run)
	if err != nil {
		return engine.Result{}, fmt.Errorf("building the ManifestWork of the preflight: %w", err)
	}
	f, result, err := c.apply(ctx, desired)
	if err != nil || !result.IsZero() {
		return result, err
	}
	version := f.ClusterVersion()
	if !version.Version.IsKnown() || !version.State.IsKnown() {
		return engine.Wait(reasonNoFeedback, "waiting until the agent reports the history of the ClusterVersion"), nil
	}
	switch found := admission.CheckHistory(&version, delivery.TargetOf(c.Run)); {
	case found.Obstacle.IsZero():
		return engine.Result{}, nil
	case found.Obstacle.Reason == fleetv1beta1.ReasonHeld, found.IsHold() && !delivery.HasActed(c.Run):
		return engine.Wait(engine.ReasonPaused, "%s", found.Obstacle.Message), nil
	case found.IsHold(): // the action may have begun it
		return engine.Wait(found.Obstacle.Reason, "%s", found.Obstacle.Message), nil
	default:
		return engine.Fail(found.Obstacle.Reason, "%s", found.Obstacle.Message), nil
	}
}

// Upgraded waits until the platform is at the target.
func (c *Cluster) Upgraded(ctx context.Context, run engine.Run) (engine.Result, error) {
	work, result, err := c.observed(ctx)
	if err != nil || !result.IsZero() {
		return result, err
	}
	p := ReadPlatform(c.Run, work)
	switch p.Stage {
	case delivery.StageCompleted:
		if result, err := c.observeOnly(ctx, work); err != nil || !result.IsZero() { // what it requests from now on is its own affair
			return result, err
		}
		return engine.Done("the platform is at %s", c.target()), nil
	case delivery.StageSuperseded:
		return engine.Fail(fleetv1alpha1.ReasonSuperseded, "another release has replaced %s before it was complete", c.target()), nil
	case delivery.StageNotAccepted:
		return c.notAccepted(&p, run), nil
	case delivery.StagePartial:
		if p.Failing.IsTrue() {
			return c.failing(fleetv1alpha1.StepClusterUpgraded, fleetv1alpha1.ReasonClusterVersionFailing, &p.Failing, run), nil
		}
		return engine.Wait(reasonUpgrading, "%s", cmp.Or(p.Message, "upgrading to "+c.target())), nil
	case delivery.StageUnknown:
	}
	return engine.Wait(reasonNoFeedback, "the agent does not report how far the upgrade is"), nil
}

// observed returns the work of the platform. It writes it again if a user has deleted it, read-only once accepted.
func (c *Cluster) observed(ctx context.Context) (*workv1.ManifestWork, engine.Result, error) {
	if _, result, err := c.attached(ctx); err != nil || !result.IsZero() {
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
	return c.deliverUpgrade(ctx, form, clusterstate.Release{})
}

// observeOnly makes the work read-only. The zero Result says that it is written like that.
func (c *Cluster) observeOnly(ctx context.Context, work *workv1.ManifestWork) (engine.Result, error) {
	if c.formOf(work) == delivery.FormReadOnly {
		return engine.Result{}, nil
	}
	_, result, err := c.deliverUpgrade(ctx, delivery.FormReadOnly, clusterstate.Release{})
	if err == nil && result.Reason() == fleetv1alpha1.ReasonDelivered {
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

// failing waits while the upgrade is failing, in the words of the cluster version operator.
func (c *Cluster) failing(step, reason string, condition *delivery.Condition, run engine.Run) engine.Result {
	limit := delivery.Timeout(c.Run.Spec.Timeouts.Failing, fleetv1beta1.DefaultFailingTimeout)
	message := cmp.Or(condition.Message, condition.Reason, "the cluster version operator reports no message")
	return c.failAfter(limit, step, reason, condition, run.Now, message)
}

// IsUpgraded reports whether the platform is at the target.
func (c *Cluster) IsUpgraded(ctx context.Context) (bool, error) {
	work, err := c.work(ctx, delivery.UpgradeName(c.Run.Namespace))
	if err != nil || c.formOf(work) == "" {
		return false, err
	}
	return ReadPlatform(c.Run, work).Stage == delivery.StageCompleted, nil
}

// WasAccepted reports whether the status shows that the cluster has accepted the target in this attempt.
func (c *Cluster) WasAccepted() bool {
	return c.Run.Status.Attempt == c.Record.Attempt && c.Run.Status.Accepted
}

func (c *Cluster) target() string {
	return cmp.Or(c.Run.Spec.ClusterVersion.Version, c.Run.Spec.ClusterVersion.Image)
}

// Platform holds what the agent reports about the upgrade of the platform.
type Platform struct {
	Stage   delivery.Stage
	Message string // about the progress; empty if it is not known
	Newer   string // a release newer than the target, installed instead
	Failing delivery.Condition
	Slow    bool                // the cluster says that its upgrade makes no progress
	Refused *delivery.Condition // says why the cluster refuses the target; nil if it does not
}

// ReadPlatform returns what a work reports about the upgrade of the platform. The work may be nil.
func ReadPlatform(run *fleetv1alpha1.ClusterUpgradeRun, work *workv1.ManifestWork) Platform {
	if work == nil || run.Spec.ClusterVersion == nil {
		return Platform{Stage: delivery.StageUnknown}
	}
	f := delivery.Read(work)
	if slices.ContainsFunc(f.Manifests, func(m delivery.Manifest) bool { return m.Kind == "UpgradeConfig" }) {
		return readUpgradeConfig(run, f)
	}
	version, target := f.ClusterVersion(), delivery.TargetOf(run)
	p := Platform{Stage: version.Stage(target), Message: version.Message, Failing: version.Failing}
	if p.Stage != delivery.StageNotAccepted {
		return p
	}
	if admission.IsNewer(version.Version.Text, target.Version) {
		p.Newer = version.Version.Text
	}
	if version.IsObserved() {
		switch {
		case version.ReleaseAccepted.IsFalse():
			p.Refused = &version.ReleaseAccepted
		case version.Invalid.IsTrue():
			p.Refused = &version.Invalid
		}
	}
	return p
}

// readUpgradeConfig returns how far the Managed Upgrade Operator of the cluster is. The phase Upgrading includes what it does
// before its commit: that counts as accepted unless its steps are reported. It stays accepted while the UpgradeConfig
// requests the target, because nothing else has replaced it.
func readUpgradeConfig(run *fleetv1alpha1.ClusterUpgradeRun, f *delivery.Feedback) Platform {
	u := f.UpgradeConfig()
	p := Platform{Stage: delivery.StageUnknown, Message: u.Message, Slow: u.Slow.IsTrue()}
	if !u.IsObserved() {
		return p
	}
	accepted := run.Status.Accepted && run.Status.Attempt == run.Spec.Attempt
	switch {
	case !u.Version.Is(run.Spec.ClusterVersion.Version):
		p.Stage = delivery.StageNotAccepted
	case u.Phase.Is("Upgraded"), u.Succeeded.IsTrue():
		p.Stage = delivery.StageCompleted
	case u.Phase.Is("Upgrading"), u.Phase.Is("Failed"):
		p.Stage = delivery.StagePartial
		if !accepted && !commenced(&u) {
			p.Stage = delivery.StageNotAccepted
		}
	case u.Phase.IsKnown() && !u.Phase.Is("Unknown") && !accepted: // a step that fails for a moment is Unknown
		p.Stage = delivery.StageNotAccepted
	}
	if u.Phase.Is("Failed") {
		p.Failing = u.Succeeded
		p.Failing.Status = delivery.Value{Text: "True", Quality: delivery.Known}
	}
	if p.Stage == delivery.StageNotAccepted && u.Accepted.IsFalse() {
		p.Refused = &u.Accepted
	}
	return p
}

// commenced reports whether an UpgradeConfig has passed its commit, or may have because no step is reported.
func commenced(u *delivery.UpgradeConfig) bool {
	if u.Commenced.IsKnown() {
		return u.Commenced.Is("True")
	}
	return !u.HasSteps
}
