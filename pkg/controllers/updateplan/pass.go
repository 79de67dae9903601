// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateplan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

// pass is one pass over one plan.
type pass struct {
	*Reconciler

	plan *updatev1beta1.UpdatePlan
	// published is the status before the pass.
	published *updatev1beta1.UpdatePlanStatus
	state     *state
	now       time.Time

	version clusterstate.Version
	// current is the release of the cluster; empty if unknown.
	current string
	// pools holds the MachineConfigPools, unless they are unknown.
	pools        []clusterstate.Pool
	poolsUnknown bool
}

// run makes the pass. It returns the time of the next one; zero if none is planned.
func (p *pass) run(ctx context.Context) (time.Time, error) {
	if version, err := checks.ReadVersion(ctx, p.Client); err == nil { // otherwise the release is unknown
		p.version, p.current = version, version.Current.Version
	}
	var err error
	p.pools, err = clusterstate.ListPools(ctx, p.Client)
	p.poolsUnknown = err != nil && !meta.IsNoMatchError(err)
	gone, nextPrune, err := p.prune(ctx)
	if err != nil || gone {
		return time.Time{}, err
	}
	if updateplan.Validate(p.plan) != nil {
		p.rest()
		return nextPrune, p.write(ctx, updateplan.Insights(&p.plan.Status), updateplan.Analysis{Published: true})
	}
	switch {
	case p.isDue():
		p.begin()
	case p.state.round == nil || !p.isFollowed():
		p.rest()
		return nextPrune, p.write(ctx, updateplan.Insights(&p.plan.Status), updateplan.Analysis{Published: true})
	default:
		if age := p.now.Sub(p.state.lastPass); age >= 0 && age < debounce && p.plan.Generation == p.plan.Status.ObservedGeneration {
			return p.state.lastPass.Add(debounce), nil
		}
	}
	p.set(func(s *state) { s.lastPass = p.now })
	err = p.evaluate(ctx)
	return p.now.Add(p.untilNext()), err
}

// set changes the state of the plan. It locks the state, because mappers read it concurrently.
func (p *pass) set(change func(*state)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p.state)
}

// untilNext returns the delay until the next pass if nothing changes.
func (p *pass) untilNext() time.Duration {
	if !p.state.round.complete() {
		return followInterval
	}
	return min(followInterval, max(p.state.round.completedAt.Add(updateplan.MaxAge).Sub(p.now), time.Second))
}

// isDue reports whether an analysis must start: one was requested, the release of the cluster has
// changed, or the last one was interrupted. After a restart, the analysis of a followed plan is
// repeated, because the new process has no record of the informers' answers.
func (p *pass) isDue() bool {
	status := &p.plan.Status
	switch r := p.state.round; {
	case p.current == "":
		return false
	case r != nil:
		return r.fromRelease != p.current || r.token != updateplan.RefreshToken(p.plan)
	}
	return status.FromRelease != p.current || status.LastRefresh != updateplan.RefreshToken(p.plan) || p.isFollowed() ||
		!meta.IsStatusConditionTrue(status.Conditions, updatev1beta1.ConditionComplete)
}

// isFollowed reports whether the analysis is in progress or recent.
func (p *pass) isFollowed() bool {
	var at time.Time
	switch r, published := p.state.round, p.plan.Status.LastAnalysisTime; {
	case r != nil && !r.complete():
		return true
	case r != nil:
		at = r.completedAt
	case published != nil:
		at = published.Time
	}
	return updateplan.IsRecent(at, p.now)
}

// rest stops following the plan.
func (p *pass) rest() {
	if p.state.round == nil && p.state.insights.IsZero() {
		return
	}
	p.set(func(s *state) {
		*s = state{uid: s.uid, notOfferedSince: s.notOfferedSince, replaced: s.replaced}
	})
	p.Informers.ForgetPlan(client.ObjectKeyFromObject(p.plan))
}

// write updates the conditions, and writes the status if it has changed.
func (p *pass) write(ctx context.Context, all []updateplan.Reported, a updateplan.Analysis) error {
	a.Now, a.Current, a.NotAnUpdate = p.now, p.current, updateplan.NotAnUpdate(p.version, p.pools, p.plan.Spec.TargetRelease)
	updateplan.Settle(p.plan, all, a)
	if equality.Semantic.DeepEqual(p.published, &p.plan.Status) {
		return nil
	}
	if p.state.replaced.IsBehind(p.plan, p.now) {
		return errOutdated
	}
	base := p.plan.DeepCopy()
	base.Status = *p.published
	updated := p.plan.DeepCopy()
	p.publish(ctx)
	if err := p.Client.Status().Patch(ctx, updated, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the status of UpdatePlan %s: %w", p.plan.Name, err)
	}
	p.set(func(s *state) { s.replaced.Note(base, updated, p.now) })
	return nil
}

// errOutdated reports that the cache does not yet have the last write.
var errOutdated = errors.New("the cache is behind")

// publish publishes the Events for a write before the write itself. If the process is killed in
// between, both are repeated.
func (p *pass) publish(ctx context.Context) {
	before, after := p.published, &p.plan.Status
	becomes := func(name string) *metav1.Condition {
		c := meta.FindStatusCondition(after.Conditions, name)
		if c == nil || c.Status != metav1.ConditionTrue || meta.IsStatusConditionTrue(before.Conditions, name) {
			return nil
		}
		return c
	}
	if c := becomes(updatev1beta1.ConditionComplete); c != nil {
		p.Events.PublishChange(ctx, p.plan, before, corev1.EventTypeNormal, "AnalysisComplete",
			fmt.Sprintf("the update from %s to %s was analyzed: %s", after.FromRelease, p.plan.Spec.TargetRelease, describeCounts(after.Counts)))
	}
	if c := becomes(updatev1beta1.ConditionStartable); c != nil {
		p.Events.PublishChange(ctx, p.plan, before, corev1.EventTypeNormal, "Startable", c.Message)
	}
	if c := becomes(updatev1beta1.ConditionAcceptanceStale); c != nil {
		p.Events.PublishChange(ctx, p.plan, before, corev1.EventTypeWarning, "AcceptanceStale", c.Message)
	}
	if before.Counts != nil && after.Counts != nil && after.Counts.Accepted > before.Counts.Accepted && before.ObservedGeneration != after.ObservedGeneration {
		p.Events.PublishChange(ctx, p.plan, before, corev1.EventTypeNormal, "InsightsAccepted", describeCounts(after.Counts))
	}
}

func describeCounts(counts *updatev1beta1.InsightCounts) string {
	if counts == nil || counts.Total == 0 {
		return "nothing needs acceptance"
	}
	return fmt.Sprintf("%d of %d risks are accepted", counts.Accepted, counts.Total)
}

// updateInformers returns the sorted names of the enabled and the disabled update informers.
func (p *pass) updateInformers(ctx context.Context) (enabled, disabled []string, err error) {
	var list updatev1beta1.UpdateInformerList
	if err := p.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing the UpdateInformers: %w", err)
	}
	for i := range list.Items {
		switch {
		case insight.IsBuiltIn(list.Items[i].Name): // it is never queried
		case list.Items[i].IsEnabled():
			enabled = append(enabled, list.Items[i].Name)
		default:
			disabled = append(disabled, list.Items[i].Name)
		}
	}
	slices.Sort(enabled)
	slices.Sort(disabled)
	return enabled, disabled, nil
}
