// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateplan

import (
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/informers"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

const (
	complete  = updateplan.ReasonComplete
	startable = updateplan.ReasonStartable
	current   = updateplan.ReasonCurrent
	waiting   = v1beta1.ReasonWaitingForInformers
	tooOld    = v1beta1.ReasonAnalysisTooOld
	rest      = v1beta1.ReasonUnacceptedInsights
)

// accept accepts the insights of the plan as the CLI does: by informer, uid, and time.
func (w *world) accept(informer string, uids ...string) {
	w.t.Helper()
	w.change(func(plan *v1beta1.UpdatePlan) {
		for _, uid := range uids {
			plan.Spec.AcceptedInsights = append(plan.Spec.AcceptedInsights, v1beta1.AcceptedInsight{
				UpdateInformer: informer, UID: uid, Accepted: true, AcceptedTime: &metav1.Time{Time: w.Now().Truncate(time.Second)},
			})
		}
	})
}

func (w *world) refresh(token string) {
	w.t.Helper()
	w.change(func(plan *v1beta1.UpdatePlan) {
		metav1.SetMetaDataAnnotation(&plan.ObjectMeta, v1beta1.RefreshAnnotation, token)
	})
}

func TestPlanLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(target)
	w.runFor(10 * time.Second)
	w.expect(complete, startable, current)
	if got := updateplan.Insights(&w.get(target).Status); len(got) != 0 {
		t.Errorf("there are insights of a cluster that is ready: %v", got)
	}

	// The cluster is followed.
	w.setOperator(configv1.ConditionTrue)
	w.runFor(10 * time.Second)
	w.expect(complete, rest, current)
	w.setOperator(configv1.ConditionFalse)
	w.runFor(10 * time.Second)
	w.expect(complete, startable, current)

	// After an hour, the plan is dormant.
	w.runFor(time.Hour)
	w.expect(complete, tooOld, current)
	w.requests = nil
	w.setOperator(configv1.ConditionTrue)
	w.runFor(20 * time.Hour)
	if len(w.requests) != 0 {
		t.Errorf("requests for a dormant plan: %v", w.requests)
	}
	w.expect(complete, tooOld, current)

	// Another analysis finds what has changed meanwhile.
	w.refresh("again")
	w.runFor(10 * time.Second)
	w.expect(complete, rest, current)
	w.accept(informers.NameReadiness, "operator/dns/OperatorDegraded")
	w.runFor(10 * time.Second)
	w.expect(complete, startable, current)
	plan := w.get(target)
	if got := plan.Status; got.LastRefresh != "again" || got.FromRelease != from || *got.Counts != (v1beta1.InsightCounts{Total: 1, Accepted: 1}) {
		t.Errorf("the status is %+v", got)
	}
	w.expectEvents("AnalysisComplete", "Startable", "Startable", "Startable", "InsightsAccepted")
}

func TestPlanFollowsWithoutWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setOperator(configv1.ConditionTrue)
	w.create(target)
	w.runFor(time.Minute)
	version := w.get(target).ResourceVersion
	w.runFor(50 * time.Minute)
	if got := w.get(target).ResourceVersion; got != version {
		t.Errorf("a plan in which nothing changed was written: %s, then %s", version, got)
	}
}

func TestPlanWaitsForInformers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.informer("one")
	w.informer("two")
	w.create(target)
	w.runFor(time.Minute)
	w.expect(waiting, waiting, current)
	w.answer("one", insight.Success, "a")
	w.runFor(time.Minute)
	w.expect(waiting, waiting, current)
	w.answer("two", insight.NotQueried)
	w.runFor(time.Minute)
	w.expect(complete, rest, current)
	if len(w.remote.asked) != 1 || w.remote.asked[0].Spec.TargetControlPlaneVersion != target || w.remote.asked[0].Spec.ControlPlaneVersion != from || w.remote.asked[0].Spec.InformerUpdate {
		t.Errorf("asked %+v", w.remote.asked)
	}
	w.accept("one", "a")
	w.runFor(time.Minute)
	w.expect(complete, startable, current)

	// One that is enabled later is missing until it has answered.
	w.informer("three")
	w.runFor(time.Minute)
	w.expect(waiting, v1beta1.ReasonInformerMissing, current)
	w.answer("three", insight.Success)
	w.runFor(time.Minute)
	w.expect(complete, startable, current)

	// An informer that fails reports that, and that is acceptable.
	w.refresh("1")
	w.answer("two", insight.Unreachable)
	w.runFor(time.Minute)
	w.expect(complete, rest, current)
	w.accept(v1beta1.StatusControllerInformer, "InformerUnreachable/two")
	w.runFor(time.Minute)
	w.expect(complete, startable, current)
	w.change(func(plan *v1beta1.UpdatePlan) {
		plan.Annotations[v1beta1.RefreshAnnotation], plan.Annotations[v1beta1.RefreshInformersAnnotation] = "2", ""
	})
	w.runFor(time.Minute)
	if n := len(w.remote.asked); n != 3 || !w.remote.asked[2].Spec.InformerUpdate {
		t.Errorf("asked %+v", w.remote.asked)
	}
}

// TestPlanAcceptance follows one risk that disappears and returns.
func TestPlanAcceptance(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		away  time.Duration
		start string
		stale string
		event string
	}{
		"returns within a day": {23 * time.Hour, startable, current, "Startable"},
		"returns after a day":  {25 * time.Hour, rest, v1beta1.ReasonInsightsChanged, "AcceptanceStale"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.setOperator(configv1.ConditionTrue)
			w.create(target)
			w.runFor(time.Minute)
			w.accept(informers.NameReadiness, "operator/dns/OperatorDegraded")
			w.runFor(time.Minute)
			w.expect(complete, startable, current)
			w.setOperator(configv1.ConditionFalse)
			w.runFor(time.Minute)
			w.expect(complete, startable, current)
			w.runFor(tc.away)
			w.setOperator(configv1.ConditionTrue)
			w.refresh("again")
			w.runFor(time.Minute)
			w.expect(complete, tc.start, tc.stale)
			w.expectEvents("AnalysisComplete", "Startable", "InsightsAccepted", tc.event)
			w.change(func(plan *v1beta1.UpdatePlan) { plan.Spec.AcceptedInsights[0].Accepted = false })
			w.runFor(time.Minute)
			w.expect(complete, rest, current)
		})
	}
}

// TestPlanOfAnotherRelease updates the cluster to a release in between: no acceptance holds any
// more.
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
			w.runFor(time.Minute)
			w.accept(informers.NameReadiness, "operator/dns/OperatorDegraded")
			if !tc.dated {
				w.change(func(plan *v1beta1.UpdatePlan) { plan.Spec.AcceptedInsights[0].AcceptedTime = nil })
			}
			w.runFor(time.Minute)
			w.expect(complete, startable, current)
			if tc.dormant {
				w.runFor(2 * time.Hour)
			}
			w.setVersion(func(v *configv1.ClusterVersion) {
				v.Status.History = append([]configv1.UpdateHistory{{Version: "4.14.9-rc.1", Image: "a@7", State: configv1.CompletedUpdate}}, v.Status.History...)
			})
			w.runFor(time.Minute)
			w.expect(complete, rest, v1beta1.ReasonFromReleaseChanged)
			w.runFor(2 * time.Hour)
			w.refresh("x")
			w.runFor(time.Minute)
			w.expect(complete, rest, v1beta1.ReasonFromReleaseChanged)
			w.change(func(plan *v1beta1.UpdatePlan) {
				plan.Spec.AcceptedInsights[0].AcceptedTime, plan.Spec.AcceptedInsights[0].Reason = &metav1.Time{Time: w.Now().Truncate(time.Second)}, "checked again"
			})
			w.runFor(time.Minute)
			w.expect(complete, startable, current)
		})
	}
}

// TestPlanAcceptedAhead accepts a risk that existed then, and that the plan had not reported.
func TestPlanAcceptedAhead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-0", Labels: map[string]string{"pool": "worker"}}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(w.Now())}},
	}}
	w.must(w.Set(node))
	w.runFor(time.Hour)
	w.must(w.user.Create(t.Context(), &v1beta1.UpdatePlan{ObjectMeta: metav1.ObjectMeta{Name: updateplan.Name(target)}, Spec: v1beta1.UpdatePlanSpec{
		TargetRelease: target, AcceptedInsights: []v1beta1.AcceptedInsight{{
			UpdateInformer: informers.NameReadiness, UID: "node/worker-0/NodeNotReady", Accepted: true, AcceptedTime: &metav1.Time{Time: w.Now().Add(-time.Minute).Truncate(time.Second)},
		}},
	}}))
	w.runFor(time.Minute)
	w.expect(complete, rest, v1beta1.ReasonInsightsChanged)
}

// TestPlanIsPruned checks each rule, and that an Event keeps the acceptances.
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
		"kept": {func(w *world) {
			w.change(func(p *v1beta1.UpdatePlan) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, v1beta1.KeepAnnotation, "") })
			install(configv1.CompletedUpdate)(w)
		}, 40 * day, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.create(target)
			w.runFor(time.Minute)
			w.accept("x", "one", "two", "three", "four")
			w.runFor(time.Minute)
			tc.change(w)
			w.runFor(tc.after)
			err := w.user.Get(t.Context(), client.ObjectKey{Name: updateplan.Name(target)}, &v1beta1.UpdatePlan{})
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

func TestPlansBeyondTheLimitArePruned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range updateplan.MaxPlans + 2 {
		w.create(fmt.Sprintf("4.15.%d", i))
		w.runFor(time.Minute)
	}
	var plans v1beta1.UpdatePlanList
	w.must(w.user.List(t.Context(), &plans))
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
	w.runFor(time.Minute)
	if got := w.get("4.13.0").Status.Conditions; !slices.ContainsFunc(got, func(c metav1.Condition) bool { return c.Reason == v1beta1.ReasonNotAnUpdate }) {
		t.Errorf("the conditions of an older release are %+v", got)
	}
	if err := w.user.Get(t.Context(), client.ObjectKey{Name: "update-plan-4.14.8"}, &v1beta1.UpdatePlan{}); !apierrors.IsNotFound(err) {
		t.Errorf("the plan of the installed release: %v", err)
	}
}

// TestPlanKilledAtEachWrite kills the controller before and after each of its writes. In the end
// the plan is as without that, no Event is lost, and at no time is it startable although it must
// not be.
func TestPlanKilledAtEachWrite(t *testing.T) {
	t.Parallel()
	life := func(t *testing.T, kill int, outcome simulation.Outcome) (writes int, status v1beta1.UpdatePlanStatus, events []string) {
		t.Helper()
		w := newWorld(t)
		w.plan = func(request simulation.Request) simulation.Fault {
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
			plan, is := change.New.(*v1beta1.UpdatePlan)
			if is && risky && updateplan.IsStartable(plan, w.Now()) {
				w.Fail(errors.New("the plan is startable with risks that are not accepted"))
			}
		})
		w.informer("one")
		w.setOperator(configv1.ConditionTrue)
		w.create(target)
		w.runFor(2 * time.Minute)
		w.answer("one", insight.Success, "a")
		w.runFor(2 * time.Minute)
		w.accept("one", "a")
		w.runFor(2 * time.Minute)
		risky = false
		w.accept(informers.NameReadiness, "operator/dns/OperatorDegraded")
		w.runFor(2 * time.Minute)
		w.expect(complete, startable, current)
		risky = true
		w.change(func(plan *v1beta1.UpdatePlan) { plan.Spec.AcceptedInsights[0].Accepted = false })
		w.runFor(2 * time.Minute)
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
	w.runFor(time.Minute)
	w.expect(complete, startable, current)
	restart := func() {
		w.plan = func(request simulation.Request) simulation.Fault {
			return simulation.Fault{Outcome: simulation.CrashBefore}
		}
		w.change(func(plan *v1beta1.UpdatePlan) { plan.Spec.UpdatePlanResourceVersion += "1" })
		w.runFor(30 * time.Second)
		w.plan = nil
		w.runFor(2 * time.Minute)
	}
	restart()
	w.expect(complete, startable, current)
	if len(w.remote.asked) != 1 {
		t.Errorf("the new process has asked %d times", len(w.remote.asked))
	}
	w.runFor(2 * time.Hour)
	restart()
	w.expect(complete, tooOld, current)
	if len(w.remote.asked) != 0 {
		t.Errorf("the new process has asked for a dormant plan")
	}
}

// TestPlanOfAnotherReleaseWithoutWrites changes the plan while its status cannot be written.
func TestPlanOfAnotherReleaseWithoutWrites(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*v1beta1.UpdatePlan){
		"spec changed":      func(plan *v1beta1.UpdatePlan) { plan.Spec.UpdatePlanResourceVersion += "1" },
		"refresh requested": func(plan *v1beta1.UpdatePlan) { plan.Annotations = map[string]string{v1beta1.RefreshAnnotation: "x"} },
	} {
		for _, dated := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dated %t", name, dated), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.setOperator(configv1.ConditionTrue)
				w.create(target)
				w.runFor(time.Minute)
				w.accept(informers.NameReadiness, "operator/dns/OperatorDegraded")
				if !dated {
					w.change(func(plan *v1beta1.UpdatePlan) { plan.Spec.AcceptedInsights[0].AcceptedTime = nil })
				}
				w.runFor(time.Minute)
				w.expect(complete, startable, current)
				w.plan = func(request simulation.Request) simulation.Fault {
					if request.IsWrite() {
						return simulation.Fault{Outcome: simulation.Conflict}
					}
					return simulation.Fault{}
				}
				w.setVersion(func(v *configv1.ClusterVersion) {
					v.Status.History = append([]configv1.UpdateHistory{{Version: "4.14.9-rc.1", Image: "a@7", State: configv1.CompletedUpdate}}, v.Status.History...)
				})
				w.runFor(20 * time.Second)
				w.change(change)
				w.runFor(20 * time.Second)
				w.plan = nil
				w.runFor(time.Minute)
				w.expect(complete, rest, v1beta1.ReasonFromReleaseChanged)
			})
		}
	}
}

// TestPlanFollowsFactsThatAreNotCached repairs etcd, of which the controller has no cache. An
// administrator who waits for the plan does not wait for long, and a plan that is startable costs
// few requests.
func TestPlanFollowsFactsThatAreNotCached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	etcd := func(available operatorv1.ConditionStatus) {
		t.Helper()
		w.must(w.Set(&operatorv1.Etcd{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Status: operatorv1.EtcdStatus{StaticPodOperatorStatus: operatorv1.StaticPodOperatorStatus{
			OperatorStatus: operatorv1.OperatorStatus{Conditions: []operatorv1.OperatorCondition{{Type: clusterstate.EtcdMembersAvailable, Status: available}}},
		}}}))
	}
	reads := func() (n int) {
		for _, request := range w.requests {
			if strings.Contains(request, "Etcd") {
				n++
			}
		}
		w.requests = nil
		return n
	}
	etcd(operatorv1.ConditionFalse)
	w.create(target)
	w.runFor(10 * time.Minute)
	w.expect(complete, rest, current)
	etcd(operatorv1.ConditionTrue)
	w.runFor(61 * time.Second)
	w.expect(complete, startable, current)
	reads()
	w.runFor(29 * time.Minute)
	if n := reads(); n < 2 || n > 3 {
		t.Errorf("%d reads in half an hour in which the update may be started", n)
	}

	// A change of the spec is judged by recent facts.
	etcd(operatorv1.ConditionFalse)
	w.change(func(plan *v1beta1.UpdatePlan) { plan.Spec.UpdatePlanResourceVersion += "1" })
	w.runFor(10 * time.Second)
	w.expect(complete, rest, current)
}

// TestPlanWithoutPodRequests repairs a pool while the requests of pods are unknown.
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
	w.must(w.Set(pool(corev1.ConditionTrue)))
	w.create(target)
	w.runFor(time.Minute)
	if !reported() {
		t.Fatal("a degraded pool is not reported")
	}
	w.must(w.Set(pool(corev1.ConditionFalse)))
	w.runFor(2 * time.Minute)
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
	w.runFor(time.Minute)
	w.expect(complete, rest, current)
	var one v1beta1.UpdateInformer
	w.must(w.user.Get(t.Context(), client.ObjectKey{Name: "one"}, &one))
	one.Spec.Enabled = new(false)
	w.must(w.user.Update(t.Context(), &one))
	w.runFor(3 * time.Minute)
	w.expect(complete, startable, current)
	status := &w.get(target).Status
	var got []string
	for _, of := range updateplan.Insights(status) {
		got = append(got, of.Informer+" "+of.Insight.UID)
	}
	if !slices.Equal(got, []string{v1beta1.StatusControllerInformer + " InformerDisabled/one"}) {
		t.Errorf("the insights are %v", got)
	}
	if r := status.RecentlyResolved; len(r) != 1 || r[0].Reason != v1beta1.ResolutionInformerDisabled {
		t.Errorf("resolved are %+v", r)
	}
}

// TestPlanOfADegradedInformer has the informer itself as a risk, whether it analyzes plans or not.
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
			w.runFor(time.Minute)
			w.expect(complete, rest, current)
			w.accept(v1beta1.StatusControllerInformer, "InformerDegraded/one")
			w.runFor(time.Minute)
			w.expect(complete, startable, current)
		})
	}
}

// TestPlanIgnoresInformersWithReservedNames waits for no informer that is never queried. It was
// created before validation refused its name.
func TestPlanIgnoresInformersWithReservedNames(t *testing.T) {
	t.Parallel()
	named := func(name string) client.Object {
		return &v1beta1.UpdateInformer{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	p := pass{Reconciler: &Reconciler{Client: simulation.NewFakeClient(t, named(v1beta1.BuiltInPrefix+"x"), named("one"))}}
	enabled, _, err := p.updateInformers(t.Context())
	if err != nil || !slices.Equal(enabled, []string{"one"}) {
		t.Errorf("the enabled informers are %v: %v", enabled, err)
	}
}

// TestPlanWithALongToken rests: the end of the token is within a character.
func TestPlanWithALongToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(target)
	w.runFor(time.Minute)
	w.refresh(strings.Repeat("x", 63) + "é")
	w.runFor(2 * time.Hour)
	w.expect(complete, tooOld, current)
	if got := w.get(target).Status.LastRefresh; got != strings.Repeat("x", 63) {
		t.Errorf("lastRefresh is %q", got)
	}
}

// TestInformersUpdateHourlyAtMost keeps the annotation and requests the analysis again.
func TestInformersUpdateHourlyAtMost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(target)
	w.runFor(time.Minute)
	for i, want := range []bool{true, false, false, true} {
		w.change(func(plan *v1beta1.UpdatePlan) {
			plan.Annotations = map[string]string{v1beta1.RefreshAnnotation: strconv.Itoa(i), v1beta1.RefreshInformersAnnotation: ""}
		})
		w.runFor(25 * time.Minute)
		if asked := w.remote.asked; len(asked) != i+2 || asked[i+1].Spec.InformerUpdate != want {
			t.Errorf("request %d: asked %+v", i, asked)
		}
	}
}

// TestPlanIsKeptWithoutEvents prunes a plan only once its acceptances are published.
func TestPlanIsKeptWithoutEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(target)
	w.runFor(time.Minute)
	w.accept("x", "one")
	w.runFor(time.Minute)
	w.eventError = errors.New("no Events")
	w.setVersion(func(v *configv1.ClusterVersion) {
		v.Status.History = append([]configv1.UpdateHistory{{Version: target, Image: "a@1", State: configv1.CompletedUpdate}}, v.Status.History...)
	})
	w.runFor(time.Minute)
	if got := w.get(target).Spec.AcceptedInsights; len(got) != 1 {
		t.Fatalf("the acceptances are %v", got)
	}
	// One that may not be deleted is not published as deleted.
	w.eventError = nil
	w.plan = func(request simulation.Request) simulation.Fault {
		if request.IsWrite() {
			return simulation.Fault{Outcome: simulation.Refuse}
		}
		return simulation.Fault{}
	}
	w.runFor(10 * time.Minute)
	if kept := strings.Join(w.events, "\n"); strings.Contains(kept, "is deleted") {
		t.Errorf("the events are\n%s", kept)
	}
	w.plan = nil
	w.runFor(time.Hour)
	err := w.user.Get(t.Context(), client.ObjectKey{Name: updateplan.Name(target)}, &v1beta1.UpdatePlan{})
	if kept := strings.Join(w.events, "\n"); !apierrors.IsNotFound(err) || !strings.Contains(kept, "x one accepted at") || !strings.Contains(kept, "is deleted") {
		t.Errorf("%v, and the events are\n%s", err, kept)
	}
}
