// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateplan

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

// acceptancesPerEvent limits the acceptances in one Event, because its message has at most 1,024
// bytes.
const acceptancesPerEvent = 3

// prune deletes the plan if it is no longer useful. Otherwise, it returns when that may next be the
// case.
func (p *pass) prune(ctx context.Context) (gone bool, next time.Time, err error) {
	target := clusterstate.Target{Version: p.plan.Spec.TargetRelease}
	since := p.state.notOfferedSince
	switch {
	case p.current == "" || p.version.UpdatesUnknown() != "" || p.isRunning(p.plan) || p.version.AvailableUpdate(target).Available:
		since = time.Time{}
	case since.IsZero() || since.After(p.now):
		since = p.notOffered()
	}
	p.set(func(s *state) { s.notOfferedSince = since })
	reason, next := updateplan.Prune(p.plan, updateplan.Age{
		Now: p.now, Installed: p.isInstalled(), UnderWay: p.isUnderWay(p.plan), NotOfferedSince: since,
	})
	if reason == "" {
		surplus, err := p.surplus(ctx)
		if err != nil {
			return false, time.Time{}, err
		}
		if slices.Contains(surplus, p.plan.Name) {
			reason = updateplan.PruneTooMany
		}
	}
	if reason == "" {
		return false, next, nil
	}
	// Publish the acceptances before they are deleted, but only if the deletion will be admitted.
	if err = p.deletePlan(ctx, client.DryRunAll); err == nil {
		if err := p.publishPruned(ctx, reason); err != nil {
			return false, time.Time{}, err
		}
		err = p.deletePlan(ctx)
	}
	if client.IgnoreNotFound(err) != nil {
		return false, time.Time{}, fmt.Errorf("deleting UpdatePlan %s: %w", p.plan.Name, err)
	}
	p.forget(p.plan.Name)
	return true, time.Time{}, nil
}

// deletePlan deletes the plan, unless it has changed.
func (p *pass) deletePlan(ctx context.Context, options ...client.DeleteOption) error {
	uid, version := p.plan.UID, p.plan.ResourceVersion
	return p.Client.Delete(ctx, p.plan, append(options, client.Preconditions{UID: &uid, ResourceVersion: &version})...)
}

// notOffered returns when the release ceased to be offered: at the first observation in an
// analysis, or now if there is none.
func (p *pass) notOffered() time.Time {
	for _, of := range updateplan.Insights(&p.plan.Status) {
		if of.Insight.UID == checks.UIDNotOffered && !of.Insight.FirstObservedTime.IsZero() && of.Insight.FirstObservedTime.Time.Before(p.now) {
			return of.Insight.FirstObservedTime.Time
		}
	}
	return p.now
}

// isRunning reports whether the cluster is at the release of a plan or being updated to it.
func (p *pass) isRunning(plan *updatev1beta1.UpdatePlan) bool {
	return p.current != "" && p.current == plan.Spec.TargetRelease
}

// isInstalled reports whether the release of the plan is installed on all nodes, including the
// nodes of paused pools.
func (p *pass) isInstalled() bool {
	return p.isRunning(p.plan) && p.version.Completed && !p.poolsUnknown && !clusterstate.HoldsBackWorkers(p.pools)
}

// isUnderWay reports whether the update of a plan is requested, in progress, or being analyzed. It
// returns true if the release of the cluster is unknown.
func (p *pass) isUnderWay(plan *updatev1beta1.UpdatePlan) bool {
	requested, pending := p.version.PendingRequest()
	s := p.peek(plan.Name)
	return p.current == "" || p.isRunning(plan) && !p.version.Completed || pending && requested.Version == plan.Spec.TargetRelease ||
		s != nil && s.round != nil && !s.round.complete()
}

func (p *pass) surplus(ctx context.Context) ([]string, error) {
	var plans updatev1beta1.UpdatePlanList
	if err := p.Client.List(ctx, &plans, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the UpdatePlans: %w", err)
	}
	return updateplan.Surplus(plans.Items, p.isUnderWay), nil
}

// publishPruned publishes why the plan is deleted, and the acceptances that are lost.
func (p *pass) publishPruned(ctx context.Context, reason updateplan.PruneReason) error {
	publish := func(event, message string) error {
		if err := p.Events.PublishOnce(ctx, p.plan, corev1.EventTypeNormal, event, message); err != nil {
			return fmt.Errorf("publishing that UpdatePlan %s is deleted: %w", p.plan.Name, err)
		}
		return nil
	}
	for chunk := range slices.Chunk(p.plan.Spec.AcceptedInsights, acceptancesPerEvent) {
		lines := make([]string, len(chunk))
		for i := range chunk {
			lines[i] = describeAcceptance(&chunk[i])
		}
		if err := publish("AcceptancesDeleted", strings.Join(lines, "; ")); err != nil {
			return err
		}
	}
	return publish("Pruned", fmt.Sprintf("the UpdatePlan of %s is deleted: %s; it had %d acceptances",
		p.plan.Spec.TargetRelease, reason, len(p.plan.Spec.AcceptedInsights)))
}

func describeAcceptance(of *updatev1beta1.AcceptedInsight) string {
	verb := "accepted"
	if !of.Accepted {
		verb = "not accepted"
	}
	line := text.Truncate(of.UpdateInformer, 60) + " " + text.Truncate(of.UID, 100) + " " + verb
	if of.AcceptedBy != "" {
		line += " by " + text.Sanitize(of.AcceptedBy, 60)
	}
	if of.AcceptedTime != nil {
		line += " at " + text.FormatTime(of.AcceptedTime.Time)
	}
	if of.Reason != "" {
		line += ": " + text.Sanitize(of.Reason, 60)
	}
	return line
}

func equalInsights(a, b *updatev1beta1.Insight) bool { return equality.Semantic.DeepEqual(a, b) }
