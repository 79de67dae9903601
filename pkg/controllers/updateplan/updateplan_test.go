// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateplan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

const (
	complete  = updateplan.ReasonComplete
	startable = updateplan.ReasonStartable
	current   = updateplan.ReasonCurrent
	waiting   = updatev1beta1.ReasonWaitingForInformers
	tooOld    = updatev1beta1.ReasonAnalysisTooOld
	rest      = updatev1beta1.ReasonUnacceptedInsights
)

// accept accepts insights of the plan by informer, UID, and time, as the CLI does.
func (w *world) accept(informer string, uids ...string) {
	w.TB.Helper()
	w.change(func(plan *updatev1beta1.UpdatePlan) {
		for _, uid := range uids {
			plan.Spec.AcceptedInsights = append(plan.Spec.AcceptedInsights, updatev1beta1.AcceptedInsight{
				UpdateInformer: informer, UID: uid, Accepted: true, AcceptedTime: &metav1.Time{Time: w.Now().Truncate(time.Second)},
			})
		}
	})
}

func (w *world) refresh(token string) {
	w.TB.Helper()
	w.change(func(plan *updatev1beta1.UpdatePlan) {
		metav1.SetMetaDataAnnotation(&plan.ObjectMeta, updatev1beta1.RefreshAnnotation, token)
	})
}

func TestPlanLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(target)
	w.RunFor(10 * time.Second)
	w.expect(complete, startable, current)
	if got := updateplan.Insights(&w.get(target).Status); len(got) != 0 {
		t.Errorf("there are insights of a cluster that is ready: %v", got)
	}

	// The plan follows the cluster.
	w.setOperator(configv1.ConditionTrue)
	w.RunFor(10 * time.Second)
	w.expect(complete, rest, current)
	w.setOperator(configv1.ConditionFalse)
	w.RunFor(10 * time.Second)
	w.expect(complete, startable, current)

	// After an hour, the plan is dormant.
	w.RunFor(time.Hour)
	w.expect(complete, tooOld, current)
	w.Requests = nil
	w.setOperator(configv1.ConditionTrue)
	w.RunFor(20 * time.Hour)
	if len(w.Requests) != 0 {
		t.Errorf("requests for a dormant plan: %v", w.Requests)
	}
	w.expect(complete, tooOld, current)

	// Another analysis finds the changes since then.
	w.refresh("again")
	w.RunFor(10 * time.Second)
	w.expect(complete, rest, current)
	w.accept(checks.InformerReadiness, "operator/dns/OperatorDegraded")
	w.RunFor(10 * time.Second)
	w.expect(complete, startable, current)
	plan := w.get(target)
	if got := plan.Status; got.LastRefresh != "again" || got.FromRelease != from || *got.Counts != (updatev1beta1.InsightCounts{Total: 1, Accepted: 1}) {
		t.Errorf("the status is %+v", got)
	}
	w.expectEvents("AnalysisComplete", "Startable", "Startable", "Startable", "InsightsAccepted")
}

func TestPlanFollowsWithoutWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setOperator(configv1.ConditionTrue)
	w.create(target)
	w.RunFor(time.Minute)
	version := w.get(target).ResourceVersion
	w.RunFor(50 * time.Minute)
	if got := w.get(target).ResourceVersion; got != version {
		t.Errorf("a plan in which nothing changed was written: %s, then %s", version, got)
	}
}

// TestPlanBeyondTheSizeLimitIsWrittenOnce follows a plan whose status lacks descriptions because it would be too large,
// including the description of a finding that each pass makes again.
func TestPlanBeyondTheSizeLimitIsWrittenOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	degraded := operator("dns", configv1.ConditionTrue)
	degraded.Status.Conditions[1].Reason = "Broken"
	w.Must(w.Set(degraded))
	var uids []string
	for i := range 64 {
		uids = append(uids, fmt.Sprintf("uid-%d", i))
	}
	for _, name := range []string{"one", "two", "three", "four"} {
		w.informer(name)
		w.answer(name, insight.Success, uids...)
		for i := range uids {
			impact := &w.remote.answers[name].Insights[i].Impact
			impact.Level, impact.Description = updatev1beta1.LevelCritical, strings.Repeat("long ", 800)
		}
	}
	w.create(target)
	w.RunFor(time.Minute)
	plan := w.get(target)
	truncated := func(of updateplan.Reported) bool { return of.Insight.UID == updatev1beta1.ReasonTruncated+"/status" }
	if !slices.ContainsFunc(updateplan.Insights(&plan.Status), truncated) {
		t.Fatal("the status is not truncated")
	}
	w.RunFor(50 * time.Minute)
	if got := w.get(target).ResourceVersion; got != plan.ResourceVersion {
		t.Errorf("a plan in which nothing changed was written: %s, then %s", plan.ResourceVersion, got)
	}
}

func TestPlanWaitsForInformers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.informer("one")
	w.informer("two")
	w.create(target)
	w.RunFor(time.Minute)
	w.expect(waiting, waiting, current)
	w.answer("one", insight.Success, "a")
	w.RunFor(time.Minute)
	w.expect(waiting, waiting, current)
	w.answer("two", insight.NotQueried)
	w.RunFor(time.Minute)
	w.expect(complete, rest, current)
	if len(w.remote.asked) != 1 || w.remote.asked[0].Spec.TargetControlPlaneVersion != target || w.remote.asked[0].Spec.ControlPlaneVersion != from || w.remote.asked[0].Spec.InformerUpdate {
		t.Errorf("asked %+v", w.remote.asked)
	}
	w.accept("one", "a")
	w.RunFor(time.Minute)
	w.expect(complete, startable, current)

	// An informer enabled later counts as missing until it has answered.
	w.informer("three")
	w.RunFor(time.Minute)
	w.expect(waiting, updatev1beta1.ReasonInformerMissing, current)
	w.answer("three", insight.Success)
	w.RunFor(time.Minute)
	w.expect(complete, startable, current)

	// The failure of an informer is reported, and can be accepted.
	w.refresh("1")
	w.answer("two", insight.Unreachable)
	w.RunFor(time.Minute)
	w.expect(complete, rest, current)
	w.accept(updatev1beta1.StatusControllerInformer, "InformerUnreachable/two")
	w.RunFor(time.Minute)
	w.expect(complete, startable, current)
	w.change(func(plan *updatev1beta1.UpdatePlan) {
		plan.Annotations[updatev1beta1.RefreshAnnotation], plan.Annotations[updatev1beta1.RefreshInformersAnnotation] = "2", ""
	})
	w.RunFor(time.Minute)
	if n := len(w.remote.asked); n != 3 || !w.remote.asked[2].Spec.InformerUpdate {
		t.Errorf("asked %+v", w.remote.asked)
	}
}

// TestPlanAcceptance checks the acceptance of a risk that disappears and returns.
func TestPlanAcceptance(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		away  time.Duration
		start string
		stale string
		event string
	}{
		"returns within a day": {23 * time.Hour, startable, current, "Startable"},
		"returns after a day":  {25 * time.Hour, rest, updatev1beta1.ReasonInsightsChanged, "AcceptanceStale"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.setOperator(configv1.ConditionTrue)
			w.create(target)
			w.RunFor(time.Minute)
			w.accept(checks.InformerReadiness, "operator/dns/OperatorDegraded")
			w.RunFor(time.Minute)
			w.expect(complete, startable, current)
			w.setOperator(configv1.ConditionFalse)
			w.RunFor(time.Minute)
			w.expect(complete, startable, current)
			w.RunFor(tc.away)
			w.setOperator(configv1.ConditionTrue)
			w.refresh("again")
			w.RunFor(time.Minute)
			w.expect(complete, tc.start, tc.stale)
			w.expectEvents("AnalysisComplete", "Startable", "InsightsAccepted", tc.event)
			w.change(func(plan *updatev1beta1.UpdatePlan) { plan.Spec.AcceptedInsights[0].Accepted = false })
			w.RunFor(time.Minute)
			w.expect(complete, rest, current)
		})
	}
}

// TestPlanReviewed covers an accepted risk that has become more severe since its review. The update
// is startable after another review.
func TestPlanReviewed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setOperator(configv1.ConditionTrue)
	w.create(target)
	w.RunFor(time.Minute)
	w.accept(checks.InformerReadiness, "operator/dns/OperatorDegraded")
	for _, tc := range []struct {
		level updatev1beta1.Level // the reviewed level; empty for the current one
		start string
	}{{updatev1beta1.LevelInfo, updatev1beta1.ReasonInsightsChanged}, {"", startable}, {updatev1beta1.LevelCritical, startable}} {
		w.change(func(plan *updatev1beta1.UpdatePlan) {
			uuid, level, _ := strings.Cut(updateplan.Reviewed(plan), "=")
			metav1.SetMetaDataAnnotation(&plan.ObjectMeta, updatev1beta1.ReviewedAnnotation, uuid+"="+cmp.Or(string(tc.level), level))
		})
		w.RunFor(time.Minute)
		w.expect(complete, tc.start, current)
	}
}

// TestPlanOfAnotherRelease updates the cluster to an intermediate release. No acceptance remains
// valid.
func TestPlanOfAnotherRelease(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ dated, dormant bool }{
		"dated, dormant": {true, true}, "undated, dormant": {false, true}, "dated, followed": {true, false}, "undated, followed": {false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.setOperator(configv1.ConditionTrue)
			w.create(target)
			w.RunFor(time.Minute)
			w.accept(checks.InformerReadiness, "operator/dns/OperatorDegraded")
			if !tc.dated {
				w.change(func(plan *updatev1beta1.UpdatePlan) { plan.Spec.AcceptedInsights[0].AcceptedTime = nil })
			}
			w.RunFor(time.Minute)
			w.expect(complete, startable, current)
			if tc.dormant {
				w.RunFor(2 * time.Hour)
			}
			w.setVersion(func(v *configv1.ClusterVersion) {
				v.Status.History = append([]configv1.UpdateHistory{{Version: "4.14.9-rc.1", Image: "a@7", State: configv1.CompletedUpdate}}, v.Status.History...)
			})
			w.RunFor(time.Minute)
			w.expect(complete, rest, updatev1beta1.ReasonFromReleaseChanged)
			w.RunFor(2 * time.Hour)
			w.refresh("x")
			w.RunFor(time.Minute)
			w.expect(complete, rest, updatev1beta1.ReasonFromReleaseChanged)
			w.change(func(plan *updatev1beta1.UpdatePlan) {
				plan.Spec.AcceptedInsights[0].AcceptedTime, plan.Spec.AcceptedInsights[0].Reason = &metav1.Time{Time: w.Now().Truncate(time.Second)}, "checked again"
			})
			w.RunFor(time.Minute)
			w.expect(complete, startable, current)
		})
	}
}

// TestPlanAcceptedAhead accepts a risk that existed at that time but had not been reported by the
// plan.
func TestPlanAcceptedAhead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-0", Labels: map[string]string{"pool": "worker"}}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(w.Now())}},
	}}
	w.Must(w.Set(node))
	w.RunFor(time.Hour)
	w.Must(w.User.Create(t.Context(), &updatev1beta1.UpdatePlan{ObjectMeta: metav1.ObjectMeta{Name: updateplan.Name(target)}, Spec: updatev1beta1.UpdatePlanSpec{
		TargetRelease: target, AcceptedInsights: []updatev1beta1.AcceptedInsight{{
			UpdateInformer: checks.InformerReadiness, UID: "node/worker-0/NodeNotReady", Accepted: true, AcceptedTime: &metav1.Time{Time: w.Now().Add(-time.Minute).Truncate(time.Second)},
		}},
	}}))
	w.RunFor(time.Minute)
	w.expect(complete, rest, updatev1beta1.ReasonInsightsChanged)
}

// TestPlanIsPruned checks each rule, and that an Event preserves the acceptances.
func TestPlanIsPruned(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	install := func(state configv1.UpdateState) func(*world) {
		return func(w *world) {
			w.setVersion(func(v *configv1.ClusterVersion) {
				v.Status.History = append([]configv1.UpdateHistory{{Version: target, Image: "a@1", State: state}}, v.Status.History...)
				v.Status.AvailableUpdates = nil
			})
		}
	}
	retract := func(w *world) { w.setVersion(func(v *configv1.ClusterVersion) { v.Status.AvailableUpdates = nil }) }
	for name, tc := range map[string]struct {
		change func(*world)
		after  time.Duration
		gone   bool
	}{
		"installed":                {install(configv1.CompletedUpdate), time.Minute, true},
		"being installed":          {install(configv1.PartialUpdate), 40 * day, false},
		"not offered":              {retract, 7*day + time.Minute, true},
		"not offered for six days": {retract, 6 * day, false},
		"not requested":            {func(*world) {}, 30*day + time.Minute, true},
		"offered":                  {func(*world) {}, 29 * day, false},
		"installed, and a pool of worker nodes is paused": {func(w *world) {
			w.pauseWorkers(1)
			install(configv1.CompletedUpdate)(w)
		}, 20 * day, false},
		"installed, and a pool without nodes is paused": {func(w *world) {
			w.pauseWorkers(0)
			install(configv1.CompletedUpdate)(w)
		}, time.Minute, true},
		"kept": {func(w *world) {
			w.change(func(p *updatev1beta1.UpdatePlan) {
				metav1.SetMetaDataAnnotation(&p.ObjectMeta, updatev1beta1.KeepAnnotation, "")
			})
			install(configv1.CompletedUpdate)(w)
		}, 40 * day, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.create(target)
			w.RunFor(time.Minute)
			w.accept("x", "one", "two", "three", "four")
			w.RunFor(time.Minute)
			tc.change(w)
			w.RunFor(tc.after)
			err := w.User.Get(t.Context(), client.ObjectKey{Name: updateplan.Name(target)}, &updatev1beta1.UpdatePlan{})
			if apierrors.IsNotFound(err) != tc.gone {
				t.Fatalf("after %s: %v", tc.after, err)
			}
			kept := strings.Join(w.events, "\n")
			if mentions := strings.Contains(kept, "x one accepted at") && strings.Contains(kept, "x four accepted at"); mentions != tc.gone {
				t.Errorf("the events are\n%s", kept)
			}
		})
	}
}

// pauseWorkers pauses the pool of worker nodes. Some of its nodes are outdated.
func (w *world) pauseWorkers(outdated int32) {
	w.TB.Helper()
	pool := &mcfgv1.MachineConfigPool{}
	w.Must(w.User.Get(w.TB.Context(), client.ObjectKey{Name: "worker"}, pool))
	pool.Spec.Paused, pool.Status.MachineCount, pool.Status.ObservedGeneration = true, outdated, 100
	w.Must(w.Set(pool))
}

// TestPlanOfPausedWorkers analyzes the update of the worker nodes when the control plane is already
// at the release, until the pool is unpaused.
func TestPlanOfPausedWorkers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(target)
	w.RunFor(time.Minute)
	w.pauseWorkers(1)
	w.setVersion(func(v *configv1.ClusterVersion) {
		v.Status.History = append([]configv1.UpdateHistory{{Version: target, Image: "a@1", State: configv1.CompletedUpdate}}, v.Status.History...)
		v.Status.AvailableUpdates = nil
	})
	w.RunFor(time.Minute)
	w.expect(complete, startable, current)
	plan := w.get(target)
	if c := meta.FindStatusCondition(plan.Status.Conditions, updatev1beta1.ConditionStartable); plan.Status.FromRelease != target || !strings.HasPrefix(c.Message, "the update of worker nodes to "+target) {
		t.Errorf("from %s: %+v", plan.Status.FromRelease, c)
	}
	if releases := updateplan.StartableReleases([]updatev1beta1.UpdatePlan{*plan}, target, w.Now()); len(releases) > 0 {
		t.Errorf("the start gate lets an update to the installed release pass: %+v", releases)
	}
	pool := &mcfgv1.MachineConfigPool{}
	w.Must(w.User.Get(t.Context(), client.ObjectKey{Name: "worker"}, pool))
	pool.Spec.Paused = false
	w.Must(w.Set(pool))
	w.RunFor(time.Hour)
	if err := w.User.Get(t.Context(), client.ObjectKey{Name: updateplan.Name(target)}, &updatev1beta1.UpdatePlan{}); !apierrors.IsNotFound(err) {
		t.Errorf("the plan is kept: %v", err)
	}
}

func TestPlansBeyondTheLimitArePruned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range updateplan.MaxPlans + 2 {
		w.create(fmt.Sprintf("4.15.%d", i))
		w.RunFor(time.Minute)
	}
	plans := simulation.List(w.Harness, &updatev1beta1.UpdatePlanList{})
	var names []string
	for i := range plans.Items {
		names = append(names, plans.Items[i].Name)
	}
	if len(names) != updateplan.MaxPlans || slices.Contains(names, "update-plan-4.15.0") || slices.Contains(names, "update-plan-4.15.1") {
		t.Errorf("the plans are %v", names)
	}
}

func TestPlanThatIsInvalid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("4.14.8")
	w.create("4.13.0")
	w.RunFor(time.Minute)
	if got := w.get("4.13.0").Status.Conditions; !slices.ContainsFunc(got, func(c metav1.Condition) bool { return c.Reason == updatev1beta1.ReasonNotAnUpdate }) {
		t.Errorf("the conditions of an older release are %+v", got)
	}
	if err := w.User.Get(t.Context(), client.ObjectKey{Name: "update-plan-4.14.8"}, &updatev1beta1.UpdatePlan{}); !apierrors.IsNotFound(err) {
		t.Errorf("the plan of the installed release: %v", err)
	}
}

// TestPlanKilledAtEachWrite kills the controller before and after each of its writes. The final
// plan is the same as without crashes, no Event is lost, and the plan is never startable when it
// must not be.
func TestPlanKilledAtEachWrite(t *testing.T) {
	t.Parallel()
	life := func(t *testing.T, kill int, outcome simulation.Outcome) (writes int, status updatev1beta1.UpdatePlanStatus, events []string) {
		t.Helper()
		w := newWorld(t)
		w.Plan = func(request simulation.Request) simulation.Fault {
			if request.IsWrite() {
				writes++
				if writes == kill {
					return simulation.Fault{Outcome: outcome}
				}
			}
			return simulation.Fault{}
		}
		risky := true
		w.Observe(func(change simulation.Change) {
			plan, is := change.New.(*updatev1beta1.UpdatePlan)
			if is && risky && updateplan.IsStartable(plan, w.Now()) {
				w.Fail(errors.New("the plan is startable with risks that are not accepted"))
			}
		})
		w.informer("one")
		w.setOperator(configv1.ConditionTrue)
		w.create(target)
		w.RunFor(2 * time.Minute)
		w.answer("one", insight.Success, "a")
		w.RunFor(2 * time.Minute)
		w.accept("one", "a")
		w.RunFor(2 * time.Minute)
		risky = false
		w.accept(checks.InformerReadiness, "operator/dns/OperatorDegraded")
		w.RunFor(2 * time.Minute)
		w.expect(complete, startable, current)
		risky = true
		w.change(func(plan *updatev1beta1.UpdatePlan) { plan.Spec.AcceptedInsights[0].Accepted = false })
		w.RunFor(2 * time.Minute)
		w.expect(complete, rest, current)
		return writes, w.get(target).Status, w.events
	}
	writes, want, wantEvents := life(t, 0, simulation.Serve)
	if writes < 4 {
		t.Fatalf("only %d writes", writes)
	}
	for kill := 1; kill <= writes; kill++ {
		for _, outcome := range []simulation.Outcome{simulation.CrashBefore, simulation.CrashAfter, simulation.LoseAnswer} {
			t.Run(fmt.Sprintf("write %d, outcome %d", kill, outcome), func(t *testing.T) {
				t.Parallel()
				_, got, events := life(t, kill, outcome)
				for _, event := range wantEvents {
					event, _, _ = strings.Cut(event, " until ")
					if !slices.ContainsFunc(events, func(e string) bool { return strings.HasPrefix(e, event) }) {
						t.Errorf("the Event %q is lost: %q", event, events)
					}
				}
				if *got.Counts != *want.Counts || got.FromRelease != want.FromRelease || len(updateplan.Insights(&got)) != len(updateplan.Insights(&want)) {
					t.Errorf("the status is %+v, want %+v", got, want)
				}
			})
		}
	}
}

// TestPlanSurvivesARestart restarts the controller while a plan is dormant, and while it is
// followed.
func TestPlanSurvivesARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.informer("one")
	w.create(target)
	w.answer("one", insight.Success)
	w.RunFor(time.Minute)
	w.expect(complete, startable, current)
	restart := func() {
		w.Plan = func(request simulation.Request) simulation.Fault {
			return simulation.Fault{Outcome: simulation.CrashBefore}
		}
		w.change(func(plan *updatev1beta1.UpdatePlan) { plan.Spec.UpdatePlanResourceVersion += "1" })
		w.RunFor(30 * time.Second)
		w.Plan = nil
		w.RunFor(2 * time.Minute)
	}
	restart()
	w.expect(complete, startable, current)
	if len(w.remote.asked) != 1 {
		t.Errorf("the new process has asked %d times", len(w.remote.asked))
	}
	w.RunFor(2 * time.Hour)
	restart()
	w.expect(complete, tooOld, current)
	if len(w.remote.asked) != 0 {
		t.Errorf("the new process has asked for a dormant plan")
	}
}

// TestPlanOfAnotherReleaseWithoutWrites changes the plan while its status cannot be written.
func TestPlanOfAnotherReleaseWithoutWrites(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*updatev1beta1.UpdatePlan){
		"spec changed": func(plan *updatev1beta1.UpdatePlan) { plan.Spec.UpdatePlanResourceVersion += "1" },
		"refresh requested": func(plan *updatev1beta1.UpdatePlan) {
			plan.Annotations = map[string]string{updatev1beta1.RefreshAnnotation: "x"}
		},
	} {
		for _, dated := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dated %t", name, dated), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.setOperator(configv1.ConditionTrue)
				w.create(target)
				w.RunFor(time.Minute)
				w.accept(checks.InformerReadiness, "operator/dns/OperatorDegraded")
				if !dated {
					w.change(func(plan *updatev1beta1.UpdatePlan) { plan.Spec.AcceptedInsights[0].AcceptedTime = nil })
				}
				w.RunFor(time.Minute)
				w.expect(complete, startable, current)
				w.Plan = simulation.Fault{Outcome: simulation.Conflict}.If(simulation.Request.IsWrite)
				w.setVersion(func(v *configv1.ClusterVersion) {
					v.Status.History = append([]configv1.UpdateHistory{{Version: "4.14.9-rc.1", Image: "a@7", State: configv1.CompletedUpdate}}, v.Status.History...)
				})
				w.RunFor(20 * time.Second)
				w.change(change)
				w.RunFor(20 * time.Second)
				w.Plan = nil
				w.RunFor(time.Minute)
				w.expect(complete, rest, updatev1beta1.ReasonFromReleaseChanged)
			})
		}
	}
}

// TestPlanFollowsFactsThatAreNotCached repairs etcd, whose state is not cached. An administrator
// does not wait long for the plan to notice, and a startable plan costs few requests.
func TestPlanFollowsFactsThatAreNotCached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	etcd := func(available operatorv1.ConditionStatus) {
		t.Helper()
		w.Must(w.Set(&operatorv1.Etcd{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Status: operatorv1.EtcdStatus{StaticPodOperatorStatus: operatorv1.StaticPodOperatorStatus{
			OperatorStatus: operatorv1.OperatorStatus{Conditions: []operatorv1.OperatorCondition{{Type: clusterstate.EtcdMembersAvailable, Status: available}}},
		}}}))
	}
	reads := func() (n int) {
		for _, request := range w.Requests {
			if strings.Contains(request, "Etcd") {
				n++
			}
		}
		w.Requests = nil
		return n
	}
	etcd(operatorv1.ConditionFalse)
	w.create(target)
	w.RunFor(10 * time.Minute)
	w.expect(complete, rest, current)
	etcd(operatorv1.ConditionTrue)
	w.RunFor(61 * time.Second)
	w.expect(complete, startable, current)
	reads()
	w.RunFor(29 * time.Minute)
	if n := reads(); n < 2 || n > 3 {
		t.Errorf("%d reads in half an hour in which the update may be started", n)
	}

	// A change of the spec is evaluated with recent facts.
	etcd(operatorv1.ConditionFalse)
	w.change(func(plan *updatev1beta1.UpdatePlan) { plan.Spec.UpdatePlanResourceVersion += "1" })
	w.RunFor(10 * time.Second)
	w.expect(complete, rest, current)
}

// TestPlanWithoutPodRequests repairs a pool while the resource requests of pods are unknown.
func TestPlanWithoutPodRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.metricsError = errors.New("no metrics")
	pool := func(degraded corev1.ConditionStatus) *mcfgv1.MachineConfigPool {
		return &mcfgv1.MachineConfigPool{
			ObjectMeta: metav1.ObjectMeta{Name: "worker"},
			Spec:       mcfgv1.MachineConfigPoolSpec{NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "worker"}}},
			Status: mcfgv1.MachineConfigPoolStatus{Conditions: []mcfgv1.MachineConfigPoolCondition{
				{Type: mcfgv1.MachineConfigPoolDegraded, Status: degraded, Reason: "X"},
			}},
		}
	}
	reported := func() bool {
		return slices.ContainsFunc(updateplan.Insights(&w.get(target).Status), func(of updateplan.Reported) bool { return strings.HasPrefix(of.Insight.UID, "pool/") })
	}
	w.Must(w.Set(pool(corev1.ConditionTrue)))
	w.create(target)
	w.RunFor(time.Minute)
	if !reported() {
		t.Fatal("a degraded pool is not reported")
	}
	w.Must(w.Set(pool(corev1.ConditionFalse)))
	w.RunFor(2 * time.Minute)
	if reported() {
		t.Error("a repaired pool is still reported")
	}
}

func TestPlanOfADisabledInformer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.informer("one")
	w.create(target)
	w.answer("one", insight.Success, "a")
	w.RunFor(time.Minute)
	w.expect(complete, rest, current)
	one := simulation.Get(w.Harness, client.ObjectKey{Name: "one"}, &updatev1beta1.UpdateInformer{})
	one.Spec.Enabled = new(false)
	w.Update(one)
	w.RunFor(3 * time.Minute)
	w.expect(complete, startable, current)
	status := &w.get(target).Status
	var got []string
	for _, of := range updateplan.Insights(status) {
		got = append(got, of.Informer+" "+of.Insight.UID)
	}
	if !slices.Equal(got, []string{updatev1beta1.StatusControllerInformer + " InformerDisabled/one"}) {
		t.Errorf("the insights are %v", got)
	}
	if r := status.RecentlyResolved; len(r) != 1 || r[0].Reason != updatev1beta1.ResolutionInformerDisabled {
		t.Errorf("resolved are %+v", r)
	}
}

// TestPlanOfADegradedInformer expects the informer itself as a risk, whether or not it analyzes
// plans.
func TestPlanOfADegradedInformer(t *testing.T) {
	t.Parallel()
	for _, result := range []insight.Result{insight.Success, insight.NotQueried} {
		t.Run(string(result), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.informer("one")
			w.create(target)
			w.answer("one", result)
			w.remote.answers["one"].Degraded = "its disk is full"
			w.RunFor(time.Minute)
			w.expect(complete, rest, current)
			w.accept(updatev1beta1.StatusControllerInformer, "InformerDegraded/one")
			w.RunFor(time.Minute)
			w.expect(complete, startable, current)
		})
	}
}

// TestPlanIgnoresInformersWithReservedNames does not wait for an informer with a reserved name,
// because such an informer is never queried. It is older than the validation of its name.
func TestPlanIgnoresInformersWithReservedNames(t *testing.T) {
	t.Parallel()
	named := func(name string) client.Object {
		return &updatev1beta1.UpdateInformer{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	p := pass{Reconciler: &Reconciler{Client: simulation.NewFakeClient(t, named(updatev1beta1.BuiltInPrefix+"x"), named("one"))}}
	enabled, _, err := p.updateInformers(t.Context())
	if err != nil || !slices.Equal(enabled, []string{"one"}) {
		t.Errorf("the enabled informers are %v: %v", enabled, err)
	}
}

// TestPlanWithALongToken expects no repeated analysis if the token is cut within a character.
func TestPlanWithALongToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(target)
	w.RunFor(time.Minute)
	w.refresh(strings.Repeat("x", 63) + "é")
	w.RunFor(2 * time.Hour)
	w.expect(complete, tooOld, current)
	if got := w.get(target).Status.LastRefresh; got != strings.Repeat("x", 63) {
		t.Errorf("lastRefresh is %q", got)
	}
}

// TestInformersUpdateHourlyAtMost keeps the annotation and requests another analysis.
func TestInformersUpdateHourlyAtMost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(target)
	w.RunFor(time.Minute)
	for i, want := range []bool{true, false, false, true} {
		w.change(func(plan *updatev1beta1.UpdatePlan) {
			plan.Annotations = map[string]string{updatev1beta1.RefreshAnnotation: strconv.Itoa(i), updatev1beta1.RefreshInformersAnnotation: ""}
		})
		w.RunFor(25 * time.Minute)
		if asked := w.remote.asked; len(asked) != i+2 || asked[i+1].Spec.InformerUpdate != want {
			t.Errorf("request %d: asked %+v", i, asked)
		}
	}
}

// TestPlanIsKeptWithoutEvents expects that a plan is pruned only after its acceptances are
// published.
func TestPlanIsKeptWithoutEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(target)
	w.RunFor(time.Minute)
	w.accept("x", "one")
	w.RunFor(time.Minute)
	w.eventError = errors.New("no Events")
	w.setVersion(func(v *configv1.ClusterVersion) {
		v.Status.History = append([]configv1.UpdateHistory{{Version: target, Image: "a@1", State: configv1.CompletedUpdate}}, v.Status.History...)
	})
	w.RunFor(time.Minute)
	if got := w.get(target).Spec.AcceptedInsights; len(got) != 1 {
		t.Fatalf("the acceptances are %v", got)
	}
	// No Event reports a deletion that the API server denies.
	w.eventError = nil
	w.Plan = simulation.Fault{Outcome: simulation.Refuse}.If(simulation.Request.IsWrite)
	w.RunFor(10 * time.Minute)
	if kept := strings.Join(w.events, "\n"); strings.Contains(kept, "is deleted") {
		t.Errorf("the events are\n%s", kept)
	}
	w.Plan = nil
	w.RunFor(time.Hour)
	err := w.User.Get(t.Context(), client.ObjectKey{Name: updateplan.Name(target)}, &updatev1beta1.UpdatePlan{})
	if kept := strings.Join(w.events, "\n"); !apierrors.IsNotFound(err) || !strings.Contains(kept, "x one accepted at") || !strings.Contains(kept, "is deleted") {
		t.Errorf("%v, and the events are\n%s", err, kept)
	}
}
