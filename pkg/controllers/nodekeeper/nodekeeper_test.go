// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

func TestWholeDrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, budget("keep", "guarded"))
	w.addPod("plain")
	w.addPod("guarded")
	w.addPod("ending", func(p *pod) { p.hung = true })
	w.addPod("daemon", func(p *pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Controller: new(true)}}
	})
	w.fail = denies("evict shop/plain")

	w.runUntil(45*time.Minute - time.Second)
	if diff := cmp.Diff([]string{"patch Node"}, w.resetRequests()); diff != "" { // records the first sighting
		t.Errorf("requests before the first deadline (-want +got):\n%s", diff)
	}
	w.Advance(time.Second)
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		"list PodList", "get Node",
		"evict shop/ending",
		"evict shop/plain", "create Event", "create Event",
	}, w.resetRequests()); diff != "" {
		t.Errorf("requests at the first deadline (-want +got):\n%s", diff)
	}
	if got := w.remainingPods(); got != "daemon ending† guarded plain" {
		t.Errorf("pods after the first deadline: %s", got)
	}
	w.runUntil(47 * time.Minute)
	if got := w.remainingPods(); got != "daemon guarded plain" {
		t.Errorf("pods after the grace period: %s", got)
	}
	w.runUntil(2*time.Hour - time.Second)
	if got := w.remainingPods(); got != "daemon guarded plain" {
		t.Errorf("pods before the second deadline: %s", got)
	}
	w.runUntil(2*time.Hour + time.Minute)
	if got := w.remainingPods(); got != "daemon" {
		t.Errorf("pods after the second deadline: %s", got)
	}
	w.expectEvents("DrainBlocked Pod plain", "DrainBlocked Node worker-0", "DrainForced Pod ending", "DrainForced Node worker-0",
		"DrainForced Pod guarded", "DrainForced Pod plain", "DrainForced Node worker-0", "DrainForced Node worker-0")
	if diff := cmp.Diff(map[string]float64{
		"forced_drains_total PodDisruptionBudget": 1, "forced_drains_total Termination": 1, "forced_drains_total EvictionRefused": 1,
	}, w.series()); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}

	w.changeNode(uncordoned)
	w.resetRequests()
	w.runUntil(3 * time.Hour)
	if diff := cmp.Diff([]string{"patch Node"}, w.resetRequests()); diff != "" { // removes the sighting
		t.Errorf("requests after the drain (-want +got):\n%s", diff)
	}
}

// denies returns an admission webhook that denies requests with these prefixes.
func denies(what ...string) func(string) error {
	return func(request string) error {
		if slices.ContainsFunc(what, func(w string) bool { return strings.HasPrefix(request, w) }) {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("admission webhook\x1b[31m\n denied the request"))
		}
		return nil
	}
}

func TestIgnoredNodes(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world){
		"no active attempt": func(w *world) { w.attempts = nil },
		"cordoned by hand": func(w *world) {
			w.changeNode(func(n *corev1.Node) { n.Annotations = nil })
		},
		"cordoned by the machine API": func(w *world) {
			w.changeNode(func(n *corev1.Node) {
				n.Annotations = map[string]string{"machine.openshift.io/machine": "openshift-machine-api/worker-0"}
			})
		},
		"cordoned by the autoscaler": func(w *world) {
			w.changeNode(func(n *corev1.Node) {
				n.Annotations["machineconfiguration.openshift.io/desiredDrain"] = "uncordon-r-1"
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "ToBeDeletedByClusterAutoscaler", Effect: corev1.TaintEffectNoSchedule})
			})
		},
		"drained node": func(w *world) {
			w.changeNode(func(n *corev1.Node) {
				n.Annotations["machineconfiguration.openshift.io/lastAppliedDrain"] = "drain-r-2"
			})
		},
		"uncordoned node": func(w *world) { w.changeNode(uncordoned) },
		"deleted node": func(w *world) {
			w.Delete(draining())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.addPod("plain")
			change(w)
			w.runUntil(5 * time.Hour)
			if requests := w.resetRequests(); len(requests) > 0 || w.remainingPods() != "plain" {
				t.Errorf("requests %q, remaining pods %s", requests, w.remainingPods())
			}
		})
	}
}

func TestDrainStart(t *testing.T) {
	t.Parallel()
	taint := func(at time.Time) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.Taints[0].TimeAdded = &metav1.Time{Time: at} }
	}
	annotated := func(text string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Annotations[AnnotationDrainFirstSeen] = text }
	}
	var none []string // no Events in the first pass, at noon
	unknown := []string{"DrainTimeUnknown Node worker-0"}
	for name, tc := range map[string]struct {
		change    func(*corev1.Node)
		start     time.Time // of the upgrade
		want      time.Duration
		publishes []string
	}{
		"cordoned when the drain is first seen":            {taint(noon), time.Time{}, 45 * time.Minute, none},
		"cordoned a second before the drain is first seen": {taint(at(-time.Second)), time.Time{}, 45 * time.Minute, none},
		"cordoned an hour before its drain":                {taint(at(-time.Hour)), time.Time{}, 45 * time.Minute, none},
		"cordoned long before the upgrade":                 {taint(at(-1000 * time.Hour)), at(-5 * time.Minute), 45 * time.Minute, none},
		"the epoch as the time of the taint":               {taint(time.Unix(0, 0)), time.Time{}, 45 * time.Minute, none},
		"a clock that is somewhat ahead":                   {taint(at(30 * time.Second)), time.Time{}, 45*time.Minute + 30*time.Second, none},
		"a taint without a time":                           {withoutTime, time.Time{}, 45 * time.Minute, unknown},
		"a taint of the future":                            {taint(at(time.Hour)), time.Time{}, 45 * time.Minute, unknown},
		"seen by an earlier process": {func(n *corev1.Node) {
			taint(at(-20 * time.Minute))(n)
			annotated("2026-03-01T11:50:00.5Z drain-r-2")(n)
		}, time.Time{}, 35*time.Minute + 500*time.Millisecond, none},
		"seen by an earlier process before the taint": {annotated("2026-03-01T11:50:00Z drain-r-2"), time.Time{}, 45 * time.Minute, none},
		"a sighting before the upgrade": {func(n *corev1.Node) {
			taint(at(-1000 * time.Hour))(n)
			annotated("2025-03-01T11:50:00Z drain-r-2")(n)
		}, at(-5 * time.Minute), 40 * time.Minute, none},
		"the sighting of another drain": {func(n *corev1.Node) {
			taint(at(-20 * time.Minute))(n)
			annotated("2026-03-01T11:50:00Z drain-r-1")(n)
		}, time.Time{}, 45 * time.Minute, none},
		"a sighting of the future": {annotated("2027-03-01T11:50:00Z drain-r-2"), time.Time{}, 45 * time.Minute, none},
		"an empty sighting":        {annotated(""), time.Time{}, 45 * time.Minute, none},
		"an invalid sighting":      {annotated("\x1b" + strings.Repeat("x", 1<<18)), time.Time{}, 45 * time.Minute, none},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.addPod("plain", func(p *pod) { p.grace, p.shutdownTime = time.Hour, time.Hour })
			w.changeNode(tc.change)
			if !tc.start.IsZero() {
				w.attempts[0].StartTime = tc.start
			}
			if _, err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
			w.expectEvents(tc.publishes...)
			w.runUntil(15 * time.Minute)
			if got, want := w.explain(), "forced at "+at(tc.want).Format(time.RFC3339); !strings.HasSuffix(got, want) {
				t.Errorf("the message is %q, want %q", got, want)
			}
			w.Restart() // the sighting is recorded
			w.runUntil(tc.want - time.Millisecond)
			if got := w.remainingPods(); got != "plain" {
				t.Errorf("before the deadline remaining pods: %s", got)
			}
			w.runUntil(tc.want + time.Second)
			if got := w.remainingPods(); got != "plain†" {
				t.Errorf("after the deadline remaining pods: %s", got)
			}
			w.changeNode(uncordoned)
			w.runUntil(2 * time.Hour)
			if hasFirstSeen(w.node()) {
				t.Errorf("after the drain the annotation was not removed: %v", w.node().Annotations)
			}
		})
	}
}

// TestDrainStart_restarts restarts the process during the drain of a node that was cordoned before.
func TestDrainStart_restarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addPod("plain", func(p *pod) { p.grace, p.shutdownTime = time.Hour, time.Hour })
	w.changeNode(func(n *corev1.Node) { n.Spec.Taints[0].TimeAdded = &metav1.Time{Time: at(-5 * time.Hour)} })
	for minute := range 44 { // one pass each minute
		w.runUntil(time.Duration(minute) * time.Minute)
		w.Restart()
	}
	w.runUntil(45*time.Minute - time.Millisecond)
	if got := w.remainingPods(); got != "plain" || len(w.events()) > 0 {
		t.Errorf("before the deadline there is %s, published: %q", got, w.events())
	}
	w.runUntil(45*time.Minute + time.Second)
	if got := w.remainingPods(); got != "plain†" {
		t.Errorf("after the deadline remaining pods: %s", got)
	}
}

// TestDrainStart_nextDrain requests a second drain of a node without an uncordon in between.
func TestDrainStart_nextDrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, budget("a", "guarded"))
	w.addPod("guarded")
	w.runUntil(time.Hour)
	w.changeNode(func(n *corev1.Node) { n.Annotations["machineconfiguration.openshift.io/desiredDrain"] = "drain-r-3" })
	w.runUntil(3*time.Hour - time.Second)
	if got := w.remainingPods(); got != "guarded" {
		t.Errorf("before the deadline of the second drain remaining pods: %s", got)
	}
	w.runUntil(3*time.Hour + time.Minute)
	if got := w.remainingPods(); got != "" {
		t.Errorf("after the deadline of the second drain remaining pods: %s", got)
	}
}

// TestDrainStart_writes counts the patches of the node.
func TestDrainStart_writes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		lasts time.Duration
		want  int
	}{"a drain of nine minutes": {9 * time.Minute, 0}, "a drain of an hour": {time.Hour, 2}} {
		w := newWorld(t)
		w.runUntil(tc.lasts)
		w.changeNode(uncordoned)
		w.runUntil(5 * time.Hour)
		patches := slices.DeleteFunc(w.resetRequests(), func(what string) bool { return what != "patch Node" })
		if len(patches) != tc.want || hasFirstSeen(w.node()) {
			t.Errorf("%s: %d patches, annotations %v", name, len(patches), w.node().Annotations)
		}
	}
}

// TestNodeNotReady drains a node whose kubelet does not respond.
func TestNodeNotReady(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		conditions []corev1.NodeCondition
		pod        func(*pod)
		remaining  string
	}{
		"a pod that does not terminate": {[]corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}, func(p *pod) { p.hung = true }, "pod†"},
		"a node of unknown state":       {[]corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}, func(p *pod) { p.hung = true }, "pod†"},
		"a node without a condition":    {nil, func(p *pod) { p.hung = true }, "pod†"},
		"a pod without a grace period":  {nil, func(p *pod) { p.grace, p.hung = 0, true }, "pod"},
		"a protected one":               {nil, func(p *pod) { p.grace, p.hung, p.Labels = 0, true, map[string]string{"app": "guarded"} }, "pod"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, budget("a", "guarded"))
			w.addPod("pod", tc.pod)
			w.changeNode(func(n *corev1.Node) { n.Status.Conditions = tc.conditions })
			w.runUntil(10 * time.Hour)
			if got := w.remainingPods(); got != tc.remaining {
				t.Errorf("there is %s, want %s", got, tc.remaining)
			}
			if lists := w.resetRequests(); slices.Contains(lists, "delete shop/pod") {
				t.Errorf("requests: %q", lists)
			}
			w.expectEvents("DrainBlocked Pod pod", "DrainBlocked Node worker-0")
			if w.series()["node_drain_blocked "+nodeName] != 1 {
				t.Errorf("the series are %v", w.series())
			}
			w.changeNode(func(n *corev1.Node) {
				n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			})
			w.runUntil(10*time.Hour + 10*time.Minute)
			if got := w.remainingPods(); got != "" {
				t.Errorf("once the node is ready remaining pods: %s", got)
			}
		})
	}
}

func TestFirstSightingIsRemovedAfterTheUpgrade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.changeNode(withoutTime)
	w.runUntil(time.Minute)
	if !hasFirstSeen(w.node()) {
		t.Fatal("the first sighting was not recorded")
	}
	w.attempts = nil
	w.runUntil(2 * time.Minute)
	if hasFirstSeen(w.node()) {
		t.Error("the annotation was not removed")
	}
}

func TestProtectedPodIsHeldUntilItsDeadline(t *testing.T) {
	t.Parallel()
	for name, budgets := range map[string][]client.Object{
		"one budget":                    {budget("a", "pod")},
		"overlapping budgets":           {budget("a", "pod"), budget("b", "pod", "other")},
		"budget with an empty selector": {&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}}},
	} {
		for _, lags := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, lagging cache: %t", name, lags), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				if lags {
					w.Process.Lag("PodDisruptionBudget", 24*time.Hour)
				}
				w.Must(w.Add(budgets...))
				w.addPod("pod")
				w.runUntil(2*time.Hour - time.Second)
				if got := w.remainingPods(); got != "pod" {
					t.Errorf("before its time remaining pods: %s", got)
				}
				w.Process.Lag("PodDisruptionBudget", 0)
				w.runUntil(2*time.Hour + time.Minute)
				if got := w.remainingPods(); got != "" {
					t.Errorf("after its time remaining pods: %s", got)
				}
			})
		}
	}
}

func TestProtectedPodIsEvictedIfItsBudgetAllows(t *testing.T) {
	t.Parallel()
	generous := budget("a", "pod")
	generous.Status.DisruptionsAllowed = 1
	w := newWorld(t, generous)
	w.addPod("pod")
	w.runUntil(2*time.Hour + time.Second)
	if got := w.remainingPods(); got != "pod†" {
		t.Errorf("remaining pods: %s", got)
	}
	if events := w.events(); len(events) > 0 {
		t.Errorf("Events: %q", events)
	}
	if diff := cmp.Diff(map[string]float64{"node_drain_blocked worker-0": 1}, w.series()); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

func TestTimeoutOfZero(t *testing.T) {
	t.Parallel()
	w := newWorld(t, budget("a", "guarded"))
	w.attempts[0].PDBTimeout = 0
	w.addPod("plain")
	w.addPod("guarded")
	if _, err := w.reconcile(); err != nil || w.remainingPods() != "guarded† plain" {
		t.Errorf("remaining pods: %s (%v)", w.remainingPods(), err)
	}
}

// TestRefusedEvictionIsAGuard refuses the eviction of a pod that no PDB selects, in each possible
// way. The pod gets as much time as one that a PDB protects.
func TestRefusedEvictionIsAGuard(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]error{
		"webhook, too many requests":    apierrors.NewTooManyRequests("the virtual machine migrates", 0),
		"webhook, forbidden":            denies("evict")("evict"),
		"webhook that cannot be called": apierrors.NewInternalError(errors.New("failed calling webhook")),
		"webhook that does not answer":  context.DeadlineExceeded,
		"budget that the cache has not": apierrors.NewTooManyRequests("it would violate the pod's disruption budget", 0),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, pdbTimeout := range []time.Duration{2 * time.Hour, -1} {
				w := newWorld(t)
				w.attempts[0].PDBTimeout = pdbTimeout
				w.addPod("vm")
				w.addPod("plain")
				w.fail = func(what string) error {
					if what == "evict shop/vm" {
						return answer
					}
					return nil
				}
				w.runUntil(70 * time.Minute)
				w.Restart() // the in-memory state is lost
				w.runUntil(2*time.Hour - time.Second)
				if got := w.remainingPods(); got != "vm" {
					t.Errorf("before the time of guarded pods remaining pods: %s", got)
				}
				if diff := cmp.Diff(map[string]int{"DrainBlocked Pod vm": 1, "DrainBlocked Node worker-0": 1}, countByReason(w.events())); diff != "" {
					t.Errorf("Events (-want +got):\n%s", diff)
				}
				golden.Texts(t, pdbTimeout.String(), w.explain())
				w.runUntil(5 * time.Hour)
				if got, want := w.remainingPods(), map[bool]string{true: "", false: "vm"}[pdbTimeout > 0]; got != want {
					t.Errorf("after the time of guarded pods remaining pods: %q, want %q", got, want)
				}
			}
		})
	}
}

// A pod whose eviction is refused only temporarily leaves before the deadline of protected pods.
func TestRefusedEvictionIsRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addPod("vm")
	w.fail = denies("evict")
	w.runUntil(50 * time.Minute)
	w.fail = nil
	w.runUntil(52 * time.Minute)
	if got := w.remainingPods(); got != "" {
		t.Errorf("remaining pods: %s", got)
	}
	if diff := cmp.Diff(map[string]float64{}, w.series()); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

func countByReason(events []string) map[string]int {
	counts := map[string]int{}
	for _, e := range events {
		about, _, _ := strings.Cut(e, ":")
		counts[about]++
	}
	return counts
}

func TestWithoutTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, budget("a", "guarded"))
	w.attempts[0].PDBTimeout = -1
	w.addPod("guarded")
	w.runUntil(10 * time.Hour)
	if w.remainingPods() != "guarded" {
		t.Errorf("remaining pods: %s", w.remainingPods())
	}
}

func TestBlockedPodsAreReported(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pod     func(*pod)
		refuse  func(string) error
		counted float64 // forced because it has not terminated
	}{
		"a pod with finalizers": {
			pod: func(p *pod) { p.Finalizers = []string{"example.com/keep"} },
		},
		"a pod that neither ends nor has lost its finalizers": {
			pod:     func(p *pod) { p.Finalizers, p.hung = []string{"example.com/keep"}, true },
			counted: 1,
		},
		"a pod of the platform": {
			pod: func(p *pod) { p.Namespace = "openshift-shop" },
		},
		"a pod whose deletion is denied": {
			refuse: denies("evict", "delete"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.addPod("pod", func(p *pod) {
				if tc.pod != nil {
					tc.pod(p)
				}
			})
			w.fail = tc.refuse
			w.runUntil(5 * time.Hour)
			if w.remainingPods() == "" {
				t.Fatal("the pod was forced")
			}
			golden.Texts(t, "", w.events()...)
			cannot := slices.DeleteFunc(w.events(), func(e string) bool { return !strings.Contains(e, "cannot be forced: ") }) // others have more time
			if diff := cmp.Diff(map[string]int{"DrainBlocked Pod pod": 1, "DrainBlocked Node worker-0": 1}, countByReason(cannot)); diff != "" {
				t.Errorf("Events (-want +got):\n%s", diff)
			}
			want := map[string]float64{"node_drain_blocked worker-0": 1}
			if tc.counted > 0 {
				want["forced_drains_total Termination"] = tc.counted
			}
			if diff := cmp.Diff(want, w.series()); diff != "" {
				t.Errorf("metrics (-want +got):\n%s", diff)
			}
			for _, p := range w.pods() {
				if len(p.Finalizers) == 0 && tc.counted > 0 {
					t.Error("the finalizers were removed")
				}
			}
		})
	}
}

func TestSeriesAreRemoved(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*world){
		"drained node": func(w *world) {
			w.changeNode(func(n *corev1.Node) {
				n.Annotations["machineconfiguration.openshift.io/lastAppliedDrain"] = "drain-r-2"
			})
		},
		"uncordoned node": func(w *world) { w.changeNode(uncordoned) },
		"deleted node": func(w *world) {
			w.Delete(draining())
		},
		"no active attempt": func(w *world) { w.attempts = nil },
		"deleted pod": func(w *world) {
			for _, p := range w.pods() {
				w.deletePod(&p)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.addPod("pod", func(p *pod) { p.Namespace = "openshift-shop" })
			w.runUntil(time.Hour)
			if len(w.series()) != 1 {
				t.Fatalf("the series are %v", w.series())
			}
			end(w)
			w.runUntil(2 * time.Hour)
			if got := w.series(); len(got) > 0 {
				t.Errorf("the series are %v", got)
			}
		})
	}
}

func TestListsOfPodsAreThrottled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, budget("a", "guarded"))
	w.addPod("guarded")
	w.runUntil(45 * time.Minute)
	w.resetRequests()
	for range 1000 { // irrelevant events
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
	}
	w.runUntil(75 * time.Minute)
	lists := slices.DeleteFunc(w.resetRequests(), func(what string) bool { return what != "list PodList" })
	if len(lists) > 31 {
		t.Errorf("%d lists of pods in half an hour", len(lists))
	}
}

// The clock is ahead for a while. Afterwards, pods are forced as before.
func TestClockThatWasAhead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, budget("a", "guarded"))
	w.addPod("guarded")
	w.runUntil(50 * time.Minute)
	w.Process.Clock().Step(30 * time.Minute)
	w.RunFor(2 * time.Minute)
	w.Process.Clock().Step(-30 * time.Minute)
	w.addPod("plain")
	w.RunFor(6 * time.Minute)
	if got := w.remainingPods(); got != "guarded" {
		t.Errorf("remaining pods: %s", got)
	}
}

func TestChangedTimeouts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, budget("a", "guarded"))
	w.addPod("guarded")
	w.runUntil(46*time.Minute + time.Second)
	w.attempts[0].PDBTimeout = 46 * time.Minute
	if _, err := w.reconcile(); err != nil || w.remainingPods() != "guarded†" {
		t.Errorf("another PDBForceDrainTimeout: remaining pods: %s (%v)", w.remainingPods(), err)
	}

	w = newWorld(t)
	w.addPod("plain")
	if next, err := w.reconcile(); next != 5*time.Minute || err != nil {
		t.Errorf("the next reconcile is after %s (%v)", next, err)
	}
	w.config.TimeOut.Duration = time.Minute
	w.Advance(5 * time.Minute)
	if _, err := w.reconcile(); err != nil || w.remainingPods() != "plain†" {
		t.Errorf("another nodeDrain.timeOut: remaining pods: %s (%v)", w.remainingPods(), err)
	}
}

// TestStaleNode reconciles a stale node whose pods are up to date.
func TestStaleNode(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*corev1.Node){
		"uncordoned": uncordoned,
		"drained": func(n *corev1.Node) {
			n.Annotations["machineconfiguration.openshift.io/lastAppliedDrain"] = "drain-r-2"
		},
		"cordoned again": func(n *corev1.Node) {
			n.Spec.Taints[0].TimeAdded = &metav1.Time{Time: at(50 * time.Minute)}
		},
		"replaced": func(n *corev1.Node) { n.UID = "node-2" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.addPod("plain")
			w.drainFor(time.Hour)
			behind := w.node()
			w.changeNode(change)
			if _, err := w.reconciler.reconcileDrain(t.Context(), behind); err != nil || w.remainingPods() != "plain" || len(w.series()) > 0 {
				t.Errorf("there is %s, the series are %v (%v)", w.remainingPods(), w.series(), err)
			}
		})
	}
}

func TestStaleDeletedNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addPod("plain")
	w.drainFor(time.Hour)
	behind := w.node()
	w.Delete(draining())
	if _, err := w.reconciler.reconcileDrain(t.Context(), behind); err != nil || w.remainingPods() != "plain" {
		t.Errorf("remaining pods: %s (%v)", w.remainingPods(), err)
	}
}

// TestFailingReads fails each read in each way.
func TestFailingReads(t *testing.T) {
	t.Parallel()
	for how, failure := range map[string]error{
		"fails": apierrors.NewInternalError(errors.New("no")), "is throttled": apierrors.NewTooManyRequests("not now", 1), "is not answered": context.DeadlineExceeded,
	} {
		for _, what := range []string{
			"active attempts", "cached list PodDisruptionBudgetList",
			"list PodList", "get Node",
		} {
			t.Run(what+" "+how, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.addPod("plain")
				w.drainFor(45 * time.Minute)
				w.fail = func(request string) error {
					if request == what {
						return failure
					}
					return nil
				}
				if _, err := w.reconcile(); !errors.Is(err, failure) || w.remainingPods() != "plain" || len(w.events()) > 0 {
					t.Errorf("there is %s, Events %q (%v)", w.remainingPods(), w.events(), err)
				}
				w.fail = nil
				if _, err := w.reconcile(); err != nil || w.remainingPods() != "plain†" {
					t.Errorf("when it can find out again, remaining pods: %s (%v)", w.remainingPods(), err)
				}
			})
		}
	}
}

// TestSlowEvictions makes evictions slow and uncordons the node during one of them.
func TestSlowEvictions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		w.addPod(name, func(p *pod) { p.grace, p.shutdownTime = time.Hour, time.Hour })
	}
	w.fail = func(what string) error {
		if strings.HasPrefix(what, "evict") {
			w.Advance(evictionTimeout)
		}
		if what == "evict shop/c" {
			w.changeNode(uncordoned)
		}
		return nil
	}
	w.drainFor(45 * time.Minute)
	if _, err := w.reconcile(); err != nil || w.remainingPods() != "a† b† c† d e" {
		t.Errorf("remaining pods: %s (%v)", w.remainingPods(), err)
	}
}

func TestInvalidBudgetIsReported(t *testing.T) {
	t.Parallel()
	broken := budget("broken", "pod")
	broken.Spec.Selector.MatchExpressions[0].Operator = "Near"
	w := newWorld(t, broken)
	w.addPod("pod")
	w.runUntil(time.Hour)
	w.expectEvents("BudgetInvalid Node worker-0")
	if got := w.remainingPods(); got != "" {
		t.Errorf("remaining pods: %s", got)
	}
}

// TestForcesSurviveFaultsOfWrites fails each write in each way. Each forced pod is published and
// counted.
func TestForcesSurviveFaultsOfWrites(t *testing.T) {
	t.Parallel()
	scenario := func(t *testing.T, plan simulation.FaultPlan) *world {
		t.Helper()
		w := newWorld(t, budget("a", "guarded"))
		w.changeNode(withoutTime)
		w.addPod("guarded", func(p *pod) { p.hung = true })
		w.addPod("plain")
		w.addPod("kept", func(p *pod) { p.Namespace = "openshift-shop" })
		w.fail = denies("evict shop/plain")
		w.attempts[0].PDBTimeout = 50 * time.Minute
		w.plan = plan
		w.runUntil(time.Hour)
		w.changeNode(uncordoned)
		w.runUntil(2 * time.Hour)
		return w
	}
	log := &simulation.WriteLog{}
	usual := scenario(t, log.Plan)
	events := usual.events()
	if usual.writes < 12 || len(events) != 11 || usual.remainingPods() != "kept" {
		t.Fatalf("%d writes, remaining pods %s, Events:\n%s", usual.writes, usual.remainingPods(), strings.Join(events, "\n"))
	}
	for _, fault := range log.Faults() {
		t.Run(fault.Name, func(t *testing.T) {
			t.Parallel()
			w := scenario(t, fault.Plan)
			if w.remainingPods() != "kept" {
				t.Errorf("remaining pods: %s", w.remainingPods())
			}
			if hasFirstSeen(w.node()) {
				t.Error("the annotation was not removed")
			}
			if diff := cmp.Diff(countByObject(events), countByObject(w.events())); diff != "" {
				t.Errorf("Events (-want +got):\n%s", diff)
			}
			if got := w.series()["node_drain_blocked "+nodeName]; got != 0 {
				t.Error("the series was not removed")
			}
		})
	}
}

func TestFailureOfOnePodDoesNotBlockAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addPod("a")
	w.addPod("b")
	w.attempts[0].PDBTimeout = 45 * time.Minute
	w.fail = func(what string) error {
		if what == "delete shop/a" {
			return apierrors.NewInternalError(errors.New("no"))
		}
		return denies("evict")(what)
	}
	w.drainFor(45 * time.Minute)
	if _, err := w.reconcile(); err == nil || !strings.Contains(err.Error(), "deleting pod shop/a: ") {
		t.Errorf("got %v", err)
	}
	if w.remainingPods() != "a b†" {
		t.Errorf("remaining pods: %s", w.remainingPods())
	}
}

// TestFirstSightingIsNotOverwritten lets an operator with a stale cache see a drain for the first
// time.
func TestFirstSightingIsNotOverwritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.changeNode(withoutTime)
	behind := w.node()
	w.runUntil(0)
	first := w.node().Annotations[AnnotationDrainFirstSeen]
	w.Advance(time.Minute)
	if _, err := w.reconciler.reconcileDrain(t.Context(), behind); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
	if got := w.node().Annotations[AnnotationDrainFirstSeen]; got != first || first == "" {
		t.Errorf("the first sighting changed from %s to %s", first, got)
	}

	w = newWorld(t)
	w.changeNode(withoutTime)
	w.plan = func(simulation.Request) simulation.Fault { return simulation.Fault{Outcome: simulation.Conflict} }
	if next, err := w.reconcile(); next != time.Second || err != nil {
		t.Errorf("after a conflict the next reconcile is after %s (%v)", next, err)
	}
}

// countByObject counts Events by object. It ignores Events about the time of the drain, because
// they are published only if the process lives long enough.
func countByObject(events []string) map[string]int {
	counts := map[string]int{}
	for _, e := range events {
		if about, _, ok := strings.Cut(e, " node worker-0"); ok && !strings.HasPrefix(e, "DrainTimeUnknown") {
			counts[about]++
		}
	}
	return counts
}

func TestForceWithoutEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addPod("plain")
	w.attempts[0].PDBTimeout = 45 * time.Minute
	w.fail = denies("create Event", "evict")
	w.runUntil(46 * time.Minute)
	if w.remainingPods() != "" {
		t.Errorf("remaining pods: %s", w.remainingPods())
	}
}

func TestReplacedPodIsNotForced(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		budgets []client.Object
		events  int // published before the deletion
	}{
		"unprotected pod": {nil, 0},
		"protected pod":   {[]client.Object{budget("a", "pod")}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tc.budgets...)
			w.addPod("pod")
			w.fail = func(what string) error {
				if what == "evict shop/pod" { // which replaces it in the meantime
					w.addPod("pod", func(p *pod) { p.UID = "another" })
				}
				return nil
			}
			w.drainFor(2*time.Hour + time.Second)
			_, err := w.reconcile()
			if err != nil || w.remainingPods() != "pod" || w.series()["forced_drains_total PodDisruptionBudget"] != 0 || len(w.events()) != tc.events {
				t.Errorf("there is %s, the series are %v, Events %q (%v)", w.remainingPods(), w.series(), w.events(), err)
			}
		})
	}
}

func TestDrainChanged(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*corev1.Node)
		want   bool
	}{
		"heartbeat":          {change: func(n *corev1.Node) { n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady}} }},
		"another label":      {change: func(n *corev1.Node) { n.Labels = map[string]string{"a": "b"} }},
		"another annotation": {change: func(n *corev1.Node) { n.Annotations["a"] = "b" }},
		"another taint":      {change: func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "a"}) }},
		"drained": {change: func(n *corev1.Node) {
			n.Annotations["machineconfiguration.openshift.io/lastAppliedDrain"] = "drain-r-2"
		}, want: true},
		"uncordoned":         {change: uncordoned, want: true},
		"taint without time": {change: withoutTime, want: true},
		"first sighting":     {change: func(n *corev1.Node) { n.Annotations[AnnotationDrainFirstSeen] = "" }, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := draining()
			tc.change(after)
			if got := (drainChangedPredicate{}).Update(event.UpdateEvent{ObjectOld: draining(), ObjectNew: after}); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
	noted := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationDrainFirstSeen: "x"}}}
	for name, tc := range map[string]struct {
		got, want bool
	}{
		"a new node that is being drained": {drainChangedPredicate{}.Create(event.CreateEvent{Object: draining()}), true},
		"a node with a first sighting":     {drainChangedPredicate{}.Create(event.CreateEvent{Object: noted}), true},
		"another node":                     {drainChangedPredicate{}.Create(event.CreateEvent{Object: &corev1.Node{}}), false},
		"a deleted node":                   {drainChangedPredicate{}.Delete(event.DeleteEvent{Object: &corev1.Node{}}), true},
		"another kind":                     {drainChangedPredicate{}.Create(event.CreateEvent{}) && drainChangedPredicate{}.Update(event.UpdateEvent{}), true},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: got %t", name, tc.got)
		}
	}
}

func TestMapToDrainingNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "idle"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "noted", Annotations: map[string]string{AnnotationDrainFirstSeen: "x"}}})
	var got []string
	for _, request := range w.reconciler.mapToDrainingNodes(t.Context(), nil) {
		got = append(got, request.Name)
	}
	if diff := cmp.Diff([]string{"noted", nodeName}, got); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
}

func TestStateIsResetAfterTheDrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addPod("kept", func(p *pod) { p.Namespace = "openshift-shop" })
	forgotten := map[string]bool{}
	w.reconciler.Events = &forgetRecorder{w.reconciler.Events, forgotten}
	w.runUntil(time.Hour)
	w.changeNode(uncordoned)
	w.runUntil(2 * time.Hour)
	if diff := cmp.Diff(map[string]bool{"node-1": true, "uid-of-kept": true}, forgotten); diff != "" {
		t.Errorf("reset (-want +got):\n%s", diff)
	}
	if left := w.reconciler.drains.nodes; len(left) > 0 {
		t.Errorf("the state is kept: %v", left)
	}
}

// forgetRecorder records the UIDs that were reset.
type forgetRecorder struct {
	notify.EventPublisher

	forgotten map[string]bool
}

func (f *forgetRecorder) Reset(uid string) {
	f.forgotten[uid] = true
	f.EventPublisher.Reset(uid)
}
