// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateplan

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updatestatus"
)

// begin begins an analysis. It drops insights that were reported for another release of the
// cluster, because accepting them for that release does not accept them for this one. The release
// is taken from the status, because this process may know of an analysis that was never written.
func (p *pass) begin() {
	status, last := &p.plan.Status, p.state.round
	begun := &round{fromRelease: p.current, token: updateplan.RefreshToken(p.plan), generation: p.plan.Generation}
	begun.releaseChanged = status.FromRelease != "" && status.FromRelease != p.current
	if status.FromRelease == "" || status.LastRefresh != begun.token {
		begun.requestedAt = p.now
	}
	insights := p.state.insights
	if insights.IsZero() || last != nil && last.fromRelease != p.current {
		insights = insight.NewStore()
	}
	if status.FromRelease == p.current {
		insights.Restore(updatev1beta1.UpdateStatusStatus{
			ControlPlane: status.ControlPlane, WorkerPools: status.WorkerPools, RecentlyResolved: status.RecentlyResolved, ObservedTime: status.LastAnalysisTime,
		})
	}
	p.set(func(s *state) { s.round, s.insights = begun, insights })
}

// second truncates a time to the resolution of the API.
func second(t time.Time) *metav1.Time { return new(metav1.NewTime(t.UTC().Truncate(time.Second))) }

// ask requests the insights of the update informers, once for each analysis.
func (p *pass) ask(clusterID string) {
	r := p.state.round
	if r.asked {
		return
	}
	r.asked = true
	request := hooksv1alpha.UpdatePlanInsightsRequest{TypeMeta: metav1.TypeMeta{APIVersion: hooksv1alpha.APIVersion, Kind: hooksv1alpha.UpdatePlanInsightsRequestKind}}
	request.Spec = hooksv1alpha.RequestSpec{
		ClusterID: clusterID, ControlPlaneVersion: p.current, TargetControlPlaneVersion: p.plan.Spec.TargetRelease,
		InformerUpdate: p.suggestsInformerUpdate(),
	}
	p.Informers.AskPlan(client.ObjectKeyFromObject(p.plan), request)
}

// suggestsInformerUpdate reports whether the analysis suggests that the informers check for updates
// of their own software. It does if a user requested that, but at most once an hour across all
// plans.
func (p *pass) suggestsInformerUpdate() bool {
	_, requested := p.plan.Annotations[updatev1beta1.RefreshInformersAnnotation]
	if !requested || p.state.round.requestedAt.IsZero() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if age := p.now.Sub(p.suggestedAt); age >= 0 && age < suggestInterval {
		return false
	}
	p.suggestedAt = p.now
	return true
}

// evaluate applies the facts and the answers of the informers, and writes the status.
func (p *pass) evaluate(ctx context.Context) error {
	r := p.state.round
	enabled, disabled, err := p.updateInformers(ctx)
	if err != nil {
		return err
	}
	readers := checks.Readers{
		Reader: p.Client, Cached: true, Live: p.Live, Prometheus: p.Prometheus, Metrics: p.Metrics, LockNamespace: p.LockNamespace, Clock: p.Clock, Sources: p.limits,
	}
	if p.mustGather() {
		r.facts, r.gatheredAt = checks.GatherPlan(ctx, readers), p.now
	}
	facts := checks.Gather(ctx, checks.Plan, readers).With(r.facts)
	p.ask(facts.ClusterID)
	p.state.insights.Apply(p.readiness(facts), p.now)
	unpublished := p.published.FromRelease != p.current
	analysis := updateplan.Analysis{FromReleaseChanged: r.releaseChanged && (unpublished || r.generation == p.plan.Generation)}
	if waiting := p.applyAnswers(enabled, disabled); r.complete() {
		analysis.Missing = waiting
	} else if analysis.Waiting = waiting; len(waiting) == 0 {
		r.completedAt = p.now
	}
	p.state.insights.Settle(p.now)
	all := p.state.insights.Insights()
	p.report(all, facts)
	return p.write(ctx, updateplan.Flatten(all), analysis)
}

// mustGather reports whether the uncached facts are outdated. After a change of the spec, the facts
// must be recent, because the update may become startable.
func (p *pass) mustGather() bool {
	interval := gatherInterval
	switch {
	case p.plan.Generation != p.published.ObservedGeneration:
		interval = debounce
	case !meta.IsStatusConditionTrue(p.published.Conditions, updatev1beta1.ConditionStartable):
		interval = followInterval
	}
	age := p.now.Sub(p.state.round.gatheredAt)
	return age < 0 || age >= interval
}

// applyAnswers applies the answers of the update informers. It returns the names of enabled
// informers that have not answered.
func (p *pass) applyAnswers(enabled, disabled []string) (waiting []string) {
	waiting = slices.Clone(enabled)
	answers, _ := p.Informers.PlanAnswers(client.ObjectKeyFromObject(p.plan))
	for _, answer := range answers {
		if slices.Contains(enabled, answer.Informer) {
			waiting = slices.DeleteFunc(waiting, func(name string) bool { return name == answer.Informer })
			p.state.insights.Apply(answer, p.now)
		}
	}
	for _, name := range disabled {
		p.state.insights.Apply(insight.Answer{Informer: name, Result: insight.Disabled, Message: "the informer is disabled", At: p.now}, p.now)
	}
	p.state.insights.KeepOnly(slices.Concat(enabled, disabled), p.now)
	return waiting
}

// report sets all of the status except its conditions.
func (p *pass) report(all []updatev1beta1.InformerInsights, facts checks.Facts) {
	status, r := &p.plan.Status, p.state.round
	status.FromRelease, status.LastRefresh = r.fromRelease, r.token
	if !r.requestedAt.IsZero() {
		status.LastRequestedTime = second(r.requestedAt)
	}
	if r.complete() {
		status.LastAnalysisTime = second(r.completedAt)
	}
	pools := map[string]string{}
	for i := range facts.Nodes {
		node := &facts.Nodes[i]
		pools[node.Name] = clusterstate.PoolOf(facts.Pools, node)
	}
	updateplan.Arrange(status, all, func(node string) string { return pools[node] }, p.now)
	status.RecentlyResolved = p.state.insights.RecentlyResolved()
	updatestatus.FitPlan(status, p.published.ControlPlane, p.now)
	keepTimes(status, updateplan.Insights(p.published))
}

// capacityUIDs is the prefix of the UIDs of findings about the requests of pods. Like other
// findings, they involve pools.
const capacityUIDs = "capacity/"

// readiness returns the answer of the built-in informer. An insight counts as first observed when
// it is first reported for this plan, so an earlier acceptance does not apply to it.
func (p *pass) readiness(facts checks.Facts) insight.Answer {
	answer := insight.Answer{Informer: checks.InformerReadiness, Result: insight.Success, At: p.now, Live: true, Unread: facts.Unread(checks.Plan)}
	if !facts.Has(checks.SourceClusterVersion) {
		answer.Result = insight.Failure
	}
	if !facts.Has(checks.SourcePodRequests) {
		answer.UnreadUIDs = []string{capacityUIDs}
	}
	for _, finding := range checks.Readiness(facts, p.plan.Spec.TargetRelease) {
		finding.Since = time.Time{}
		answer.Insights = append(answer.Insights, insight.FromFinding(checks.InformerReadiness, finding, p.now))
	}
	return answer
}

// keepTimes restores the acquisition times of insights that are otherwise unchanged, so an
// unchanged plan is not written.
func keepTimes(status *updatev1beta1.UpdatePlanStatus, published []updateplan.Reported) {
	before := map[string]metav1.Time{}
	same := map[string]updatev1beta1.Insight{}
	for i := range published {
		of := published[i].Insight
		before[of.UUID] = of.AcquisitionTime
		of.AcquisitionTime = metav1.Time{}
		same[of.UUID] = of
	}
	for _, section := range status.Sections() {
		for _, informer := range section.UpdateInformers {
			for i := range informer.Insights {
				of := &informer.Insights[i]
				at := of.AcquisitionTime
				of.AcquisitionTime = metav1.Time{}
				if old, known := same[of.UUID]; known && equalInsights(&old, of) {
					at = before[of.UUID]
				}
				of.AcquisitionTime = at
			}
		}
	}
}
