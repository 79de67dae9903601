// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package prechecks_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/prechecks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

const (
	from   = "4.20.5"
	target = "4.20.6"
	name   = "update-plan-" + target
	risk   = "pdb/shop/api"
	uuid   = "0123456789abcdef0123456789abcdef"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func version(current string) *configv1.ClusterVersion {
	v := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	v.Status.Desired.Version = current
	v.Status.History = []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: current}}
	return v
}

// planOf returns a plan that was analyzed at noon and reports one risk.
func planOf(changes ...func(*updatev1beta1.UpdatePlan)) *updatev1beta1.UpdatePlan {
	plan := &updatev1beta1.UpdatePlan{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1, Annotations: map[string]string{updatev1beta1.RefreshAnnotation: "first"}},
		Spec:       updatev1beta1.UpdatePlanSpec{TargetRelease: target},
	}
	plan.Status.FromRelease, plan.Status.LastRefresh = from, "first"
	plan.Status.LastAnalysisTime = &metav1.Time{Time: noon}
	plan.Status.ControlPlane = &updatev1beta1.ControlPlaneStatus{}
	of := updatev1beta1.Insight{UID: risk, UUID: uuid, FirstObservedTime: metav1.NewTime(noon)}
	of.Impact.Level = updatev1beta1.LevelWarning
	plan.Status.ControlPlane.UpdateInformers = []updatev1beta1.InformerInsights{{Name: checks.InformerReadiness, Insights: []updatev1beta1.Insight{of}}}
	for _, change := range changes {
		change(plan)
	}
	updateplan.Settle(plan, updateplan.Insights(&plan.Status), updateplan.Analysis{Now: noon, Current: from})
	return plan
}

// accepted accepts the risk.
func accepted(plan *updatev1beta1.UpdatePlan) {
	plan.Spec.AcceptedInsights = []updatev1beta1.AcceptedInsight{{
		UpdateInformer: checks.InformerReadiness, UID: risk, Accepted: true, AcceptedTime: &metav1.Time{Time: noon},
	}}
}

// result is the result of a step.
type result struct {
	Passed bool
	Reason string
	// Writes lists the requests that the step sent.
	Writes string
}

func (r result) of(t *testing.T, do func(prechecks.PlanSteps) engine.UpgradeStep, objects []client.Object, after time.Duration, getError error) (result, string) {
	t.Helper()
	var writes []string
	c := interceptor.NewClient(simulation.NewFakeClient(t, objects...), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
			if _, is := obj.(*updatev1beta1.UpdatePlan); is && getError != nil {
				return getError
			}
			return c.Get(ctx, key, obj, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, options ...client.CreateOption) error {
			writes = append(writes, "create "+obj.GetName())
			return c.Create(ctx, obj, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, options ...client.PatchOption) error {
			writes = append(writes, "patch "+obj.GetName())
			return c.Patch(ctx, obj, patch, options...)
		},
	})
	plan := prechecks.PlanSteps{Client: c, Clock: testingclock.NewFakePassiveClock(noon.Add(after)), Target: clusterstate.Target{Version: target}, Required: true}
	got, err := do(plan)(t.Context(), engine.Run{Now: noon.Add(after)})
	if err != nil {
		return result{Reason: "error", Writes: strings.Join(writes, ", ")}, err.Error()
	}
	return result{Passed: got.Passed(), Reason: got.Reason(), Writes: strings.Join(writes, ", ")}, got.Message()
}

func TestPlan_steps(t *testing.T) {
	t.Parallel()
	noMatch := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "config.openshift.io", Kind: "UpdatePlan"}}
	pending := func(plan *updatev1beta1.UpdatePlan) { plan.Annotations[updatev1beta1.RefreshAnnotation] = "second" }
	notOffered := func(plan *updatev1beta1.UpdatePlan) {
		plan.Status.ControlPlane.UpdateInformers[0].Insights[0].UID = checks.UIDNotOffered
	}
	requested, inProgress := "AnalysisRequested", "AnalysisInProgress"
	for _, tc := range []struct {
		name                         string
		plan                         *updatev1beta1.UpdatePlan
		current                      string
		err                          error
		after                        time.Duration
		step, gate, keepAlive, check result
	}{
		{
			name: "does not exist", step: result{false, requested, "create " + name}, gate: result{false, requested, ""},
			keepAlive: result{false, requested, "create " + name}, check: result{false, requested, "create " + name},
		}, {
			name: "is not served", err: noMatch, step: result{Reason: "UpdateStatusControllerMissing"}, gate: result{Reason: "UpdateStatusControllerMissing"},
			keepAlive: result{Reason: "UpdateStatusControllerMissing"}, check: result{Reason: "UpdateStatusControllerMissing"},
		}, {
			name: "cannot be read", err: errors.New("forbidden"), step: result{Reason: "error"}, gate: result{Reason: "error"},
			keepAlive: result{Reason: "error"}, check: result{Reason: "error"},
		}, {
			name: "reports a risk", plan: planOf(), step: result{Reason: "PreChecksNotAccepted"}, gate: result{Reason: "PreChecksNotAccepted"},
			check: result{Reason: "PreChecksNotAccepted"},
		}, {
			name: "reports an accepted risk", plan: planOf(accepted), after: 29 * time.Minute,
			step: result{true, "Done", ""}, gate: result{true, "Done", ""}, check: result{true, "Done", ""},
		}, {
			name: "was analyzed 30 minutes ago", plan: planOf(accepted), after: 30 * time.Minute,
			step: result{false, requested, "patch " + name}, gate: result{true, "Done", ""}, keepAlive: result{false, requested, "patch " + name},
			check: result{true, "Done", ""},
		}, {
			name: "was analyzed an hour ago", plan: planOf(accepted), after: time.Hour,
			step: result{false, requested, "patch " + name}, gate: result{false, inProgress, ""}, keepAlive: result{false, requested, "patch " + name},
			check: result{true, "AnalysisOutdated", ""},
		}, {
			name: "was analyzed in the future", plan: planOf(accepted), after: -time.Hour,
			step: result{false, requested, "patch " + name}, gate: result{false, inProgress, ""}, keepAlive: result{false, requested, "patch " + name},
			check: result{true, "AnalysisOutdated", ""},
		}, {
			name: "waits for the controller", plan: planOf(accepted, pending), after: 2 * time.Hour,
			step: result{Reason: inProgress}, gate: result{Reason: inProgress}, check: result{Reason: inProgress},
		}, {
			name: "was never analyzed", plan: planOf(func(plan *updatev1beta1.UpdatePlan) { plan.Status = updatev1beta1.UpdatePlanStatus{} }), after: 2 * time.Hour,
			step: result{Reason: inProgress}, gate: result{Reason: inProgress}, check: result{Reason: inProgress},
		}, {
			name: "is being deleted", plan: planOf(accepted, func(plan *updatev1beta1.UpdatePlan) {
				plan.DeletionTimestamp, plan.Finalizers = &metav1.Time{Time: noon}, []string{"example.com/keep"}
			}),
			step: result{Reason: requested}, gate: result{Reason: requested}, keepAlive: result{Reason: requested}, check: result{Reason: requested},
		}, {
			name: "is about another release of the cluster", plan: planOf(accepted), current: "4.20.4",
			step: result{Reason: inProgress}, gate: result{Reason: inProgress}, keepAlive: result{Reason: inProgress}, check: result{Reason: inProgress},
		}, {
			name: "has another target", plan: planOf(func(plan *updatev1beta1.UpdatePlan) { plan.Spec.TargetRelease = "4.20.7" }),
			step: result{Reason: "InvalidPlan"}, gate: result{Reason: "InvalidPlan"}, check: result{Reason: "InvalidPlan"},
		}, {
			name: "only lacks the offer", plan: planOf(notOffered), step: result{Reason: "PreChecksNotAccepted"}, gate: result{Reason: "PreChecksNotAccepted"},
			check: result{true, "OfferUnknown", ""},
		}, {
			name: "is of an update that has begun", plan: planOf(), current: target, step: result{true, "UpdateHasBegun", ""}, gate: result{true, "UpdateHasBegun", ""},
			keepAlive: result{true, "UpdateHasBegun", ""}, check: result{true, "UpdateHasBegun", ""},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.current == "" {
				tc.current = from
			}
			objects := []client.Object{version(tc.current)}
			if tc.plan != nil {
				objects = append(objects, tc.plan)
			}
			for role, c := range map[string]struct {
				do   func(prechecks.PlanSteps) engine.UpgradeStep
				want result
			}{
				"step": {prechecks.PlanSteps.WaitUntilAccepted, tc.step}, "gate": {prechecks.PlanSteps.CheckAccepted, tc.gate},
				"keep-alive": {prechecks.PlanSteps.KeepAnalyzed, tc.keepAlive}, "pre-check": {prechecks.PlanSteps.PreCheck, tc.check},
			} {
				got, message := result{}.of(t, c.do, objects, tc.after, tc.err)
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s%s", role, diff, message)
				}
			}
		})
	}
}

// If a plan is deleted while the step waits, it is created again, without its earlier acceptances.
func TestPlan_is_deleted_while_the_step_waits(t *testing.T) {
	t.Parallel()
	c := simulation.NewFakeClient(t, version(from), planOf(accepted))
	plan := prechecks.PlanSteps{Client: c, Clock: testingclock.NewFakePassiveClock(noon), Target: clusterstate.Target{Version: target}, Required: true}
	pass := func() string {
		t.Helper()
		got, err := plan.WaitUntilAccepted()(t.Context(), engine.Run{Now: noon})
		if err != nil {
			t.Fatal(err)
		}
		return got.Reason()
	}
	reasons := []string{pass()}
	if err := c.Delete(t.Context(), &updatev1beta1.UpdatePlan{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	reasons = append(reasons, pass(), pass())
	if diff := cmp.Diff([]string{"Done", "AnalysisRequested", "AnalysisInProgress"}, reasons); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
	created := &updatev1beta1.UpdatePlan{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: name}, created); err != nil || len(created.Spec.AcceptedInsights) > 0 || len(plan.Accepted(t.Context())) > 0 {
		t.Errorf("accepted: %v, %v; %v", created.Spec.AcceptedInsights, plan.Accepted(t.Context()), err)
	}
}

// If clocks differ, each requested analysis is dated in the future or looks too old. The step does
// not immediately request another one.
func TestPlan_requests_one_analysis_while_clocks_differ(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ahead     time.Duration // how far the clock of the Update Status Controller is ahead
		message   string
		keepAlive bool
		later     string
	}{
		"analyzed in the future":                {ahead: 2 * time.Hour, message: "differ by about 2h0m5s", later: "AnalysisRequested"},
		"analyzed in the future, keep-alive":    {ahead: 2 * time.Hour, message: "differ by about 2h0m5s", later: "AnalysisRequested", keepAlive: true},
		"two minutes ahead":                     {ahead: 2 * time.Minute, message: "differ by about 2m5s", later: "Done"},
		"analyzed half an hour ago":             {ahead: -31 * time.Minute, message: "differ by about 30m55s", later: "AnalysisRequested"},
		"analyzed half an hour ago, keep-alive": {ahead: -31 * time.Minute, message: "differ by about 30m55s", later: "AnalysisRequested", keepAlive: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			patches := 0
			c := interceptor.NewClient(simulation.NewFakeClient(t, version(from), planOf(accepted)), interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, options ...client.PatchOption) error {
					patches++
					return c.Patch(ctx, obj, patch, options...)
				},
			})
			plan := prechecks.PlanSteps{Client: c, Target: clusterstate.Target{Version: target}, Required: true}
			do := plan.WaitUntilAccepted()
			if tc.keepAlive {
				do = plan.KeepAnalyzed()
			}
			start := noon.Add(24 * time.Hour)
			step := func(after time.Duration) engine.Result {
				got, err := do(t.Context(), engine.Run{Now: start.Add(after)})
				if err != nil {
					t.Fatal(err)
				}
				return got
			}
			step(0)
			analyze(t, c, start.Add(5*time.Second+tc.ahead))
			if got := step(6 * time.Second); got.Reason() != "ClocksDiffer" || !strings.Contains(got.Message(), tc.message) || patches != 1 {
				t.Errorf("%d requests; %s: %s", patches, got.Reason(), got.Message())
			}
			if got := step(5 * time.Minute); got.Reason() != tc.later {
				t.Errorf("later: %s: %s", got.Reason(), got.Message())
			}
		})
	}
}

// analyze completes the last requested analysis.
func analyze(t *testing.T, c client.Client, now time.Time) {
	t.Helper()
	plan := &updatev1beta1.UpdatePlan{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: name}, plan); err != nil {
		t.Fatal(err)
	}
	plan.Status.LastRefresh, plan.Status.LastAnalysisTime = plan.Annotations[updatev1beta1.RefreshAnnotation], &metav1.Time{Time: now}
	updateplan.Settle(plan, updateplan.Insights(&plan.Status), updateplan.Analysis{Now: now, Current: from})
	if err := c.Status().Update(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
}

func TestPlan_is_not_required(t *testing.T) {
	t.Parallel()
	plan := prechecks.PlanSteps{Client: simulation.NewFakeClient(t), Target: clusterstate.Target{Version: target}}
	for role, do := range map[string]engine.UpgradeStep{
		"step": plan.WaitUntilAccepted(), "gate": plan.CheckAccepted(), "keep-alive": plan.KeepAnalyzed(), "pre-check": plan.PreCheck(),
	} {
		if got, err := do(t.Context(), engine.Run{Now: noon}); err != nil || !got.Passed() || got.Reason() != "NotConfigured" {
			t.Errorf("%s: got %v, %v", role, got, err)
		}
	}
	if got := plan.Accepted(t.Context()); got != nil {
		t.Errorf("accepted: %v", got)
	}
}

func TestPlan_requests_nothing_while_the_step_is_blocked(t *testing.T) {
	t.Parallel()
	c := simulation.NewFakeClient(t, version(from))
	plan := prechecks.PlanSteps{Client: c, Target: clusterstate.Target{Version: target}, Required: true}
	if _, err := plan.KeepAnalyzed()(t.Context(), engine.Run{Now: noon, Blocked: true}); err != nil {
		t.Fatal(err)
	}
	var plans updatev1beta1.UpdatePlanList
	if err := c.List(t.Context(), &plans); err != nil || len(plans.Items) > 0 {
		t.Errorf("%d plans, %v", len(plans.Items), err)
	}
}

// The message of a step that waits for an administrator names the risk and how to accept it.
func TestPlan_message_names_the_remedy(t *testing.T) {
	t.Parallel()
	c := simulation.NewFakeClient(t, version(from), planOf())
	plan := prechecks.PlanSteps{Client: c, Target: clusterstate.Target{Version: target}, Required: true}
	got, err := plan.WaitUntilAccepted()(t.Context(), engine.Run{Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"builtin-readiness " + risk, "oc update pre-checks --version " + target + " --accept " + uuid + " --reason "} {
		if !strings.Contains(got.Message(), want) {
			t.Errorf("%q lacks %q", got.Message(), want)
		}
	}
}

func TestPlan_Accepted(t *testing.T) {
	t.Parallel()
	refused := func(plan *updatev1beta1.UpdatePlan) {
		plan.Spec.AcceptedInsights = append(plan.Spec.AcceptedInsights, updatev1beta1.AcceptedInsight{UpdateInformer: checks.InformerReadiness, UID: risk, UUID: uuid})
	}
	foreign := func(plan *updatev1beta1.UpdatePlan) { plan.Status.ControlPlane.UpdateInformers[0].Name = "shop" }
	for name, tc := range map[string]struct {
		plan    *updatev1beta1.UpdatePlan
		current string
		after   time.Duration
		want    map[string]bool
	}{
		"accepted":                      {plan: planOf(accepted), want: map[string]bool{risk: true}},
		"not accepted":                  {plan: planOf(), want: map[string]bool{}},
		"accepted and refused":          {plan: planOf(accepted, refused), want: map[string]bool{}},
		"of another informer":           {plan: planOf(accepted, foreign), want: map[string]bool{}},
		"of another release":            {plan: planOf(accepted), current: "4.20.4"},
		"analyzed an hour ago":          {plan: planOf(accepted), after: time.Hour},
		"of a plan that does not exist": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.current == "" {
				tc.current = from
			}
			objects := []client.Object{version(tc.current)}
			if tc.plan != nil {
				updateplan.Compact(tc.plan, checks.InformerReadiness) // as in the cache
				objects = append(objects, tc.plan)
			}
			plan := prechecks.PlanSteps{
				Client: simulation.NewFakeClient(t, objects...), Clock: testingclock.NewFakePassiveClock(noon.Add(tc.after)),
				Target: clusterstate.Target{Version: target}, Required: true,
			}
			if diff := cmp.Diff(tc.want, plan.Accepted(t.Context())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
