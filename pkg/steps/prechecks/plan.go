// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package prechecks

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

// ReasonNotAccepted is the reason of a step that waits until an administrator accepts risks.
const ReasonNotAccepted = "PreChecksNotAccepted"

// refreshAfter is the maximum age of an analysis before another one is requested.
const refreshAfter = 30 * time.Minute

// requestInterval is the minimum time between two requests for an analysis. If clocks differ, even
// a completed analysis may not look recent.
const requestInterval = 5 * time.Minute

// PlanSteps makes the steps that need the UpdatePlan for the target of an upgrade.
type PlanSteps struct {
	// Client reads plans from the cache and writes to the API server.
	Client client.Client
	// Clock provides the time for evaluating acceptances outside of a pass. If nil, Accepted
	// returns none.
	Clock  clock.PassiveClock
	Target clusterstate.Target
	// Required reports whether the upgrade needs the plan. If it does not, every step is skipped.
	Required bool
}

// notRequired returns the result of all steps if the upgrade needs no plan.
func notRequired() engine.Result {
	return engine.Skip("NotConfigured", "preChecks.mode is Ignore: the upgrade needs no UpdatePlan")
}

// WaitUntilAccepted waits until an analysis of at most 30 minutes ago allows the update and each
// risk is accepted. It creates the plan, and requests another analysis if the last one is older.
func (p PlanSteps) WaitUntilAccepted() engine.UpgradeStep {
	return p.step(func(ctx context.Context, run engine.Run, plan *updatev1beta1.UpdatePlan) (engine.Result, error) {
		if requested, err := p.request(ctx, run.Now, plan); err != nil || !requested.IsZero() {
			return requested, err
		}
		return p.decide(plan, run.Now), nil
	})
}

// CheckAccepted is like WaitUntilAccepted, but for a gate: it requests nothing.
func (p PlanSteps) CheckAccepted() engine.UpgradeStep {
	return p.step(func(_ context.Context, run engine.Run, plan *updatev1beta1.UpdatePlan) (engine.Result, error) {
		if plan == nil {
			return engine.Wait("AnalysisRequested", "UpdatePlan %s does not exist", p.name()), nil
		}
		return p.decide(plan, run.Now), nil
	})
}

// KeepAnalyzed requests the analysis that CheckAccepted waits for, unless the step is blocked.
func (p PlanSteps) KeepAnalyzed() engine.UpgradeStep {
	return p.step(func(ctx context.Context, run engine.Run, plan *updatev1beta1.UpdatePlan) (engine.Result, error) {
		if run.Blocked {
			return engine.Done(""), nil
		}
		return p.request(ctx, run.Now, plan)
	})
}

// PreCheck is like WaitUntilAccepted, but ahead of time. It creates the plan, so risks can be
// accepted before the upgrade starts. It never requests another analysis.
func (p PlanSteps) PreCheck() engine.UpgradeStep {
	return p.step(func(ctx context.Context, run engine.Run, plan *updatev1beta1.UpdatePlan) (engine.Result, error) {
		if plan == nil {
			return p.create(ctx, run.Now)
		}
		rest := unaccepted(plan)
		switch analyzed := plan.Status.LastAnalysisTime; {
		case !updateplan.IsAnalyzed(plan) || analyzed == nil:
			return p.decide(plan, run.Now), nil
		case rest == 1 && isNotOffered(plan, run.Now):
			return engine.Skip("OfferUnknown", "UpdatePlan %s: the only finding is that the release is not offered yet; another step waits for that", plan.Name), nil
		case rest == 0 && !updateplan.IsRecent(analyzed.Time, run.Now):
			return engine.Skip("AnalysisOutdated", "UpdatePlan %s: analyzed at %s, no findings were left to accept; the update is analyzed again when the upgrade starts",
				plan.Name, text.FormatTime(analyzed.Time)), nil
		case rest > 0:
			return engine.Wait(ReasonNotAccepted, "%s", p.notAccepted(plan, run.Now)), nil
		}
		return p.decide(plan, run.Now), nil
	})
}

// unaccepted returns the number of unaccepted risks of a plan.
func unaccepted(plan *updatev1beta1.UpdatePlan) int {
	if plan.Status.Counts == nil {
		return 0
	}
	return int(plan.Status.Counts.Unaccepted)
}

// isNotOffered reports whether the most severe unaccepted risk is an unavailable version. An
// upgrade may set another channel before it waits for acceptance.
func isNotOffered(plan *updatev1beta1.UpdatePlan, now time.Time) bool {
	rest := updateplan.Unaccepted(updateplan.JudgePlan(plan, now))
	return len(rest) > 0 && rest[0].Informer == checks.InformerReadiness && rest[0].Insight.UID == checks.UIDNotOffered
}

// Accepted returns the UIDs of the findings of built-in checks that are accepted for this update.
// It returns none if the plan cannot be read.
func (p PlanSteps) Accepted(ctx context.Context) map[string]bool {
	if !p.Required || p.Clock == nil {
		return nil
	}
	plan, err := p.get(ctx)
	if err != nil || plan == nil {
		return nil
	}
	version, err := clusterstate.GetClusterVersion(ctx, p.Client)
	if err != nil {
		return nil
	}
	return updateplan.AcceptedUIDs(plan, checks.InformerReadiness, version.Current.Version, p.Clock.Now())
}

func (p PlanSteps) name() string { return updateplan.Name(p.Target.Version) }

// step returns a step that calls do with the plan, or with nil if the plan does not exist. The step
// is skipped if there is nothing left to decide.
func (p PlanSteps) step(do func(context.Context, engine.Run, *updatev1beta1.UpdatePlan) (engine.Result, error)) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		if !p.Required {
			return notRequired(), nil
		}
		version, err := clusterstate.GetClusterVersion(ctx, p.Client)
		if err != nil {
			return engine.Result{}, err
		}
		if version.Observe(p.Target).HasBegun() {
			return engine.Skip("UpdateHasBegun", "the cluster is at %s or being updated to it, so there is nothing left to accept", p.Target.Version), nil
		}
		plan, err := p.get(ctx)
		switch {
		case meta.IsNoMatchError(err):
			return engine.Wait("UpdateStatusControllerMissing",
				"preChecks.mode is Require, and the API server does not serve UpdatePlans: install the Update Status Controller from deploy/update-status"), nil
		case err != nil:
			return engine.Result{}, err
		case plan != nil && plan.DeletionTimestamp != nil:
			return engine.Wait("AnalysisRequested", "UpdatePlan %s is being deleted", plan.Name), nil
		case plan != nil && plan.Status.FromRelease != "" && plan.Status.FromRelease != version.Current.Version:
			return engine.Wait("AnalysisInProgress", "UpdatePlan %s is for an update from %s, but the cluster is at %s: %s",
				plan.Name, text.Excerpt(plan.Status.FromRelease), text.Excerpt(version.Current.Version), ifUnchanged), nil
		}
		return do(ctx, run, plan)
	}
}

// get returns the plan, or nil if it does not exist.
func (p PlanSteps) get(ctx context.Context) (*updatev1beta1.UpdatePlan, error) {
	plan := &updatev1beta1.UpdatePlan{}
	switch err := p.Client.Get(ctx, client.ObjectKey{Name: p.name()}, plan); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("getting UpdatePlan %s: %w", p.name(), err)
	}
	return plan, nil
}

// request requests an analysis, unless the last one is recent or in progress. It returns the zero
// Result if no request was necessary.
func (p PlanSteps) request(ctx context.Context, now time.Time, plan *updatev1beta1.UpdatePlan) (engine.Result, error) {
	if plan == nil {
		return p.create(ctx, now)
	}
	analyzed := plan.Status.LastAnalysisTime
	if !updateplan.IsAnalyzed(plan) || analyzed == nil { // an invalid plan is not analyzed either
		return engine.Result{}, nil
	}
	if age := now.Sub(analyzed.Time); updateplan.IsRecent(analyzed.Time, now) && age < refreshAfter {
		return engine.Result{}, nil
	}
	if requested, is := requestTime(plan, now); is {
		return engine.WaitFor(time.Minute, "ClocksDiffer",
			"the analysis of UpdatePlan %s that was requested at %s is dated %s: the clocks of the operator and of the Update Status Controller differ by about %s; synchronize the clocks of the nodes",
			plan.Name, text.FormatTime(requested), text.FormatTime(analyzed.Time), analyzed.Sub(requested).Abs().Round(time.Second)), nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": plan.ResourceVersion, "annotations": map[string]string{updatev1beta1.RefreshAnnotation: token(now)},
	}})
	if err != nil {
		return engine.Result{}, fmt.Errorf("encoding a request for an analysis: %w", err)
	}
	err = p.Client.Patch(ctx, plan.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	switch {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err): // the cache is stale
		return engine.WaitFor(time.Second, "AnalysisRequested", "UpdatePlan %s has changed", plan.Name), nil
	case err != nil:
		return engine.Result{}, fmt.Errorf("requesting an analysis of UpdatePlan %s: %w", plan.Name, err)
	}
	return engine.Wait("AnalysisRequested", "requested another analysis of UpdatePlan %s: the last one is from %s", plan.Name, text.FormatTime(analyzed.Time)), nil
}

// requestTime returns the time of the last request for an analysis, and whether it is too early for
// another one.
func requestTime(plan *updatev1beta1.UpdatePlan, now time.Time) (time.Time, bool) {
	requested, err := time.Parse(time.RFC3339Nano, plan.Annotations[updatev1beta1.RefreshAnnotation])
	age := now.Sub(requested)
	return requested, err == nil && age > -time.Minute && age < requestInterval
}

// create creates the plan. This requests its analysis.
func (p PlanSteps) create(ctx context.Context, now time.Time) (engine.Result, error) {
	plan := &updatev1beta1.UpdatePlan{
		ObjectMeta: metav1.ObjectMeta{Name: p.name(), Annotations: map[string]string{updatev1beta1.RefreshAnnotation: token(now)}},
		Spec:       updatev1beta1.UpdatePlanSpec{TargetRelease: p.Target.Version},
	}
	if err := p.Client.Create(ctx, plan); err != nil && !apierrors.IsAlreadyExists(err) { // the cache may be stale
		return engine.Result{}, fmt.Errorf("creating UpdatePlan %s: %w", plan.Name, err)
	}
	return engine.Wait("AnalysisRequested", "created UpdatePlan %s", plan.Name), nil
}

// token returns the token of a request for an analysis.
func token(now time.Time) string { return now.UTC().Format(time.RFC3339Nano) }

// ifUnchanged tells administrators what to do if an analysis does not start.
const ifUnchanged = "if this persists, check that the Update Status Controller is running"

// decide returns the result for a plan: whether it allows the update now.
func (p PlanSteps) decide(plan *updatev1beta1.UpdatePlan, now time.Time) engine.Result {
	if err := updateplan.Validate(plan); err != nil {
		return engine.Wait("InvalidPlan", "UpdatePlan %s: %v; delete it: oc delete updateplan %s", plan.Name, err, plan.Name)
	}
	startable := meta.FindStatusCondition(plan.Status.Conditions, updatev1beta1.ConditionStartable)
	switch {
	case !updateplan.HasBegun(plan):
		return engine.Wait("AnalysisInProgress", "the analysis of UpdatePlan %s has not begun: %s", plan.Name, ifUnchanged)
	case startable == nil || startable.ObservedGeneration != plan.Generation:
		return engine.Wait("AnalysisInProgress", "the status of UpdatePlan %s does not reflect its spec yet: %s", plan.Name, ifUnchanged)
	case startable.Status != metav1.ConditionTrue && startable.Reason == updatev1beta1.ReasonUnacceptedInsights:
		return engine.Wait(ReasonNotAccepted, "%s", p.notAccepted(plan, now))
	case startable.Status != metav1.ConditionTrue:
		return engine.Wait("PlanNotStartable", "UpdatePlan %s: %s", plan.Name, text.Sanitize(startable.Message, maxMessage))
	case !updateplan.IsStartable(plan, now):
		return engine.Wait("AnalysisInProgress", "the analysis of UpdatePlan %s is older than one hour: %s", plan.Name, ifUnchanged)
	}
	return engine.Done("%s", accepted(plan))
}

// accepted returns the message for a plan that allows the update.
func accepted(plan *updatev1beta1.UpdatePlan) string {
	message := fmt.Sprintf("UpdatePlan %s, analyzed at %s: ", plan.Name, text.FormatTime(plan.Status.LastAnalysisTime.Time))
	if counts := plan.Status.Counts; counts != nil && counts.Total > 0 {
		return message + fmt.Sprintf("%d of %d risks are accepted", counts.Accepted, counts.Total)
	}
	return message + "it reports no risk"
}

// maxMessage limits how much of a condition's message is repeated, in bytes.
const maxMessage = 512

// notAccepted returns the message about unaccepted risks: what they are, and how to accept them.
func (p PlanSteps) notAccepted(plan *updatev1beta1.UpdatePlan, now time.Time) string {
	rest := updateplan.Unaccepted(updateplan.JudgePlan(plan, now))
	message := "UpdatePlan " + plan.Name + " reports risks that are not accepted"
	if c := meta.FindStatusCondition(plan.Status.Conditions, updatev1beta1.ConditionStartable); c != nil && c.Reason == updatev1beta1.ReasonUnacceptedInsights {
		message = "UpdatePlan " + plan.Name + ": " + text.Sanitize(c.Message, maxMessage)
	}
	id := "UID"
	if len(rest) > 0 {
		id = rest[0].Insight.UUID // unlike a UID, it needs no quoting and is never ambiguous
	}
	return fmt.Sprintf("%s. Fix them, or list them with: oc update pre-checks --version %s, and accept each, the first one with: "+
		"oc update pre-checks --version %s --accept %s --reason TEXT", message, p.Target.Version, p.Target.Version, id)
}
