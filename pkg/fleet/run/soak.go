// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// reportGrace is how long an agent may take to report the read-only work; it polls every 10 to 19 seconds. A soak counts from
// its start if the report comes in that time.
const reportGrace = 30 * time.Second

// Soaked waits until the upgraded cluster was healthy for the soak without an interruption, as far as the hub hears of it. No
// news is not good news: a failing, unavailable, or silent cluster starts the soak again.
func (c *Cluster) Soaked(ctx context.Context, run engine.Run) (engine.Result, error) {
	if result, err := c.awaitAgent(ctx, run.Now); err != nil || !result.IsZero() {
		return result, err
	}
	healthy := c.since(fleetv1alpha1.StepSoaked, reasonSoaking, time.Time{}, run.Now)
	if c.Run.Spec.ClusterVersion != nil {
		since, result, err := c.observePlatform(ctx, run)
		if err != nil || !result.IsZero() {
			return result, err
		}
		healthy = latest(healthy, since, run.Now)
	}
	available, result, err := c.availableSince(ctx)
	if err != nil || !result.IsZero() {
		return result, err
	}
	soak := delivery.Timeout(c.Run.Spec.Timeouts.Soak, "")
	until := latest(healthy, available, run.Now).Add(soak)
	if c.Watched.After(run.Since) { // a hub that starts during the soak waits for news
		until = latest(until, c.Watched.Add(reportGrace), run.Now.Add(reportGrace))
	}
	isOver := !run.Now.Before(until)
	isProven, err := c.proveAgent(ctx, until, isOver)
	switch {
	case !isOver:
		return engine.WaitFor(until.Sub(run.Now), reasonSoaking, "observing the cluster until %s", text.FormatTime(until)), err
	case !isProven:
		return engine.WaitFor(retryAfter, reasonSoaking, "waiting until the agent gives up the ManifestWork of the preflight"), err
	}
	return engine.Done("the cluster was healthy for %s", c.Run.Spec.Timeouts.Soak), nil
}

// awaitAgent waits until the agent has given up the work of the preflight, once the end of the soak has removed it: as long
// as the cluster is available, a silent work agent looks healthy. Silence starts the soak again.
func (c *Cluster) awaitAgent(ctx context.Context, now time.Time) (engine.Result, error) {
	work, err := c.work(ctx, delivery.PreflightName(c.Run.Namespace))
	switch {
	case err != nil || !c.isOwn(work):
		return engine.Result{}, err
	case work.DeletionTimestamp.IsZero():
		if !delivery.IsTaken(work) && !now.Before(work.CreationTimestamp.Add(reportGrace)) {
			return engine.Wait(fleetv1alpha1.ReasonAgentSilent, "the cluster is available, and its agent does not apply ManifestWork %s", work.Name), nil
		}
		return engine.Result{}, nil
	}
	if rest := work.DeletionTimestamp.Add(reportGrace).Sub(now); rest > 0 {
		return engine.WaitFor(rest, reasonSoaking, "waiting until the agent gives up ManifestWork %s", work.Name), nil
	}
	return engine.Wait(fleetv1alpha1.ReasonAgentSilent, "the cluster is available, and its agent does not give up ManifestWork %s", work.Name), nil
}

// proveAgent reports whether the agent has given up the work of the preflight since the soak was over. A missing work is
// delivered again: another client has removed it, or the soak has started again.
func (c *Cluster) proveAgent(ctx context.Context, until time.Time, isOver bool) (bool, error) {
	if c.Run.Spec.ClusterVersion == nil {
		return true, nil // there is no such work
	}
	desired, err := delivery.PreflightWork(c.Run)
	if err != nil {
		return false, fmt.Errorf("building the ManifestWork of the preflight: %w", err)
	}
	work, err := c.work(ctx, desired.Name)
	key, end := client.ObjectKeyFromObject(desired), text.FormatTime(until)
	switch {
	case err != nil:
		return false, err
	case work == nil && isOver && c.Writes.of(key, removalTimeout).delivery == end:
		return true, nil
	case work == nil:
		_, _, err = c.deliver(ctx, desired)
		return false, err
	case isOver && c.isOwn(work) && delivery.IsTaken(work):
		err = c.remove(ctx, work.Name)
		c.Writes.note(key, nil, end) // also if the answer was lost
		return false, err
	}
	return false, nil
}

// observePlatform returns since when the cluster version operator reports that the release is not failing. The result is why
// the soak does not count now; zero if it does. Beside an UpgradeConfig, the work of the preflight observes the
// ClusterVersion.
func (c *Cluster) observePlatform(ctx context.Context, run engine.Run) (time.Time, engine.Result, error) {
	work, result, err := c.observed(ctx)
	if err != nil || !result.IsZero() {
		return time.Time{}, result, err
	}
	if result, err = c.observeOnly(ctx, work); err != nil || !result.IsZero() {
		return time.Time{}, result, err
	}
	reportBy := run.Since.Add(reportGrace)
	if !delivery.HasClusterVersion(work) {
		work, err = c.work(ctx, delivery.PreflightName(c.Run.Namespace))
		if err != nil || !c.isOwn(work) { // proveAgent delivers it, or has removed it
			return time.Time{}, engine.Result{}, err
		}
		reportBy = latest(reportBy, work.CreationTimestamp.Add(reportGrace), run.Now.Add(reportGrace))
	}
	p, f := ReadPlatform(c.Run, work), delivery.Read(work)
	switch {
	case p.Failing.IsTrue():
		return time.Time{}, c.failing(fleetv1alpha1.StepSoaked, fleetv1alpha1.ReasonUnhealthyDuringSoak, &p.Failing, run), nil
	case !f.IsApplied() && run.Now.Before(reportBy):
		return time.Time{}, engine.WaitFor(reportBy.Sub(run.Now), reasonSoaking, "observing the cluster once its agent reports"), nil
	case !f.IsApplied(): // what it reports is about an earlier work
		return time.Time{}, waitForApply(work.Name, f), nil
	case p.Stage != delivery.StageCompleted:
		return time.Time{}, engine.Wait(reasonNoFeedback, "the agent does not report whether the cluster is healthy"), nil
	}
	return p.Failing.Since, engine.Result{}, nil
}

// availableSince returns since when the cluster has been available to the hub, or why it is not.
func (c *Cluster) availableSince(ctx context.Context) (time.Time, engine.Result, error) {
	cluster, result, err := c.attached(ctx)
	if err != nil || !result.IsZero() {
		return time.Time{}, result, err
	}
	condition := apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	switch {
	case condition == nil:
		return time.Time{}, engine.Wait(fleetv1alpha1.ReasonUnreachable, "the cluster has never reported to the hub"), nil
	case condition.Status != metav1.ConditionTrue:
		return time.Time{}, engine.Wait(fleetv1alpha1.ReasonUnreachable, "the cluster does not report to the hub since %s",
			text.FormatTime(condition.LastTransitionTime.Time)), nil
	}
	return condition.LastTransitionTime.Time, engine.Result{}, nil
}

// latest returns the later one of two times. A time in the future, by a fast clock, does not count.
func latest(a, b, now time.Time) time.Time {
	if b.After(a) && !b.After(now) {
		return b
	}
	return a
}

// SoakStart returns since when the soak counts, by the record; zero if it does not count now.
func SoakStart(record *history.Record) time.Time {
	step := record.Step(fleetv1alpha1.StepSoaked)
	if step.StartTime == nil || step.Reason != reasonSoaking {
		return time.Time{}
	}
	return cmp.Or(step.ReasonTime, step.StartTime).Time
}
