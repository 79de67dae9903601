// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

// podLister is an API server that lists pods and counts requests. The pod "instant" has a grace period of 0.
type podLister struct {
	client.Reader
	pods     []metav1.PartialObjectMetadata
	err      error
	requests int
}

func (l *podLister) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	l.requests++
	switch page := list.(type) {
	case *metav1.PartialObjectMetadataList:
		page.Items = l.pods
	case *corev1.PodList:
		for _, pod := range l.pods {
			whole := corev1.Pod{ObjectMeta: pod.ObjectMeta}
			whole.Spec.TerminationGracePeriodSeconds = new(int64(30))
			if pod.Name == "instant" {
				whole.Spec.TerminationGracePeriodSeconds = new(int64(0))
			}
			page.Items = append(page.Items, whole)
		}
	default:
		return errors.New("only pods can be listed")
	}
	return l.err
}

func shopPod(name string, changes ...func(*metav1.PartialObjectMetadata)) metav1.PartialObjectMetadata {
	pod := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": name}}}
	for _, change := range changes {
		change(&pod)
	}
	return pod
}

func inNamespace(name string) func(*metav1.PartialObjectMetadata) {
	return func(p *metav1.PartialObjectMetadata) { p.Namespace = name }
}

func deletedAt(at time.Time, grace int64, finalizers ...string) func(*metav1.PartialObjectMetadata) {
	return func(p *metav1.PartialObjectMetadata) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds, p.Finalizers = new(metav1.NewTime(at)), &grace, finalizers
	}
}

func budgetFor(namespace, name, app string) client.Object {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
	}
}

// drainsOf returns Drains with timeouts of 20 minutes and, for pods with a budget, 2 hours.
func drainsOf(t *testing.T, live client.Reader, budgets ...client.Object) checks.Drains {
	t.Helper()
	return checks.Drains{
		Reader: simulation.NewFakeClient(t, budgets...), Live: live, TimeOut: 20 * time.Minute, PDBTimeout: 2 * time.Hour,
		IgnoreNamespaces: []string{"openshift-*"}, Explanations: &checks.DrainExplanations{},
	}
}

var drainingNode = clusterstate.Node{
	Name: "worker-0", Ready: true,
	Drain: clusterstate.Drain{Active: true, Since: noon, Request: "drain-rendered-worker-2"},
}

func TestDrains_Explain(t *testing.T) {
	t.Parallel()
	api, openshift := budgetFor("shop", "api", "api"), budgetFor("openshift-dns", "dns", "dns")
	daemonSet := func(p *metav1.PartialObjectMetadata) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "x", Controller: new(true)}}
	}
	for name, tc := range map[string]struct {
		pods    []metav1.PartialObjectMetadata
		change  func(*checks.Drains)
		err     error
		budgets []client.Object

		notReady bool
		after    time.Duration // since the start of the drain; 15 minutes if 0
	}{
		"no pod":                                {},
		"pods of a DaemonSet":                   {pods: []metav1.PartialObjectMetadata{shopPod("api", daemonSet)}, budgets: []client.Object{api}},
		"budget":                                {pods: []metav1.PartialObjectMetadata{shopPod("api")}, budgets: []client.Object{api}},
		"two budgets":                           {pods: []metav1.PartialObjectMetadata{shopPod("api")}, budgets: []client.Object{api, budgetFor("shop", "all", "api")}},
		"budget without a limit":                {pods: []metav1.PartialObjectMetadata{shopPod("api")}, budgets: []client.Object{api}, change: func(d *checks.Drains) { d.PDBTimeout = -1 }},
		"budget, ignored namespace":             {pods: []metav1.PartialObjectMetadata{shopPod("dns", inNamespace("openshift-dns"))}, budgets: []client.Object{openshift}},
		"no budget":                             {pods: []metav1.PartialObjectMetadata{shopPod("web")}, budgets: []client.Object{api}},
		"terminating pod":                       {pods: []metav1.PartialObjectMetadata{shopPod("api", deletedAt(noon.Add(5*time.Minute), 30))}, budgets: []client.Object{api}},
		"terminating pod, long":                 {pods: []metav1.PartialObjectMetadata{shopPod("api", deletedAt(noon.Add(time.Hour), 3600))}, budgets: []client.Object{api}},
		"pod with a finalizer":                  {pods: []metav1.PartialObjectMetadata{shopPod("web", deletedAt(noon, 0, "example.com/x"))}},
		"node that is not ready":                {pods: []metav1.PartialObjectMetadata{shopPod("api", deletedAt(noon, 30))}, notReady: true},
		"instant pod":                           {pods: []metav1.PartialObjectMetadata{shopPod("instant")}},
		"instant pod, node not ready":           {pods: []metav1.PartialObjectMetadata{shopPod("instant")}, notReady: true},
		"the firmest of three pods":             {pods: []metav1.PartialObjectMetadata{shopPod("a"), shopPod("api"), shopPod("z", deletedAt(noon, 30))}, budgets: []client.Object{api}},
		"deletion that is due":                  {pods: []metav1.PartialObjectMetadata{shopPod("api")}, budgets: []client.Object{api}, after: 2*time.Hour + 2*time.Minute},
		"refused deletion":                      {pods: []metav1.PartialObjectMetadata{shopPod("api")}, budgets: []client.Object{api}, after: 2*time.Hour + 3*time.Minute},
		"refused deletion of a terminating pod": {pods: []metav1.PartialObjectMetadata{shopPod("api", deletedAt(noon, 30))}, after: time.Hour},
		"refused deletion besides a later one":  {pods: []metav1.PartialObjectMetadata{shopPod("api", deletedAt(noon.Add(3*time.Hour), 3600)), shopPod("web")}, after: 3 * time.Hour},
		"refused eviction":                      {pods: []metav1.PartialObjectMetadata{shopPod("web")}, after: time.Hour},
		"refused eviction without a limit":      {pods: []metav1.PartialObjectMetadata{shopPod("web")}, after: time.Hour, change: func(d *checks.Drains) { d.PDBTimeout = -1 }},
		"pods that cannot be listed":            {err: errors.New("the API server is down")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			drains := drainsOf(t, &podLister{pods: tc.pods, err: tc.err}, tc.budgets...)
			if tc.change != nil {
				tc.change(&drains)
			}
			node := drainingNode
			node.Ready = !tc.notReady
			got := drains.Explain(t.Context(), node, noon.Add(-time.Hour), noon.Add(cmp.Or(tc.after, 15*time.Minute)))
			golden.Texts(t, "", got)
		})
	}
}

// A drain counts from the start of the upgrade at the earliest, as it does for forcing pods.
func TestDrains_Explain_deadline_counts_from_the_upgrade(t *testing.T) {
	t.Parallel()
	drains := drainsOf(t, &podLister{pods: []metav1.PartialObjectMetadata{shopPod("api")}}, budgetFor("shop", "api", "api"))
	want := "pod shop/api is held by PodDisruptionBudget shop/api, forced at 2026-03-01T15:00:00Z"
	if got := drains.Explain(t.Context(), drainingNode, noon.Add(time.Hour), noon.Add(2*time.Hour)); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestDrains_Explain_reads_are_bounded checks that pods are listed only for long drains and once every five
// minutes per drain.
func TestDrains_Explain_reads_are_bounded(t *testing.T) {
	t.Parallel()
	lister := &podLister{}
	drains := drainsOf(t, lister)
	other := drainingNode
	other.Drain.Request = "drain-rendered-worker-3"
	idle := drainingNode
	idle.Drain = clusterstate.Drain{}
	for _, step := range []struct {
		name string
		node clusterstate.Node
		at   time.Duration
		want int
	}{
		{"before ten minutes", drainingNode, 10*time.Minute - time.Second, 0},
		{"a node that is not being drained", idle, time.Hour, 0},
		{"after ten minutes", drainingNode, 10 * time.Minute, 1},
		{"a second later", drainingNode, 10*time.Minute + time.Second, 1},
		{"just before five minutes", drainingNode, 15*time.Minute - time.Second, 1},
		{"after five minutes", drainingNode, 15 * time.Minute, 2},
		{"another drain of the node", other, 15 * time.Minute, 3},
		{"a clock that was set back", other, 12 * time.Minute, 4},
	} {
		drains.Explain(t.Context(), step.node, noon, noon.Add(step.at))
		if lister.requests != step.want {
			t.Errorf("%s: %d requests, want %d", step.name, lister.requests, step.want)
		}
	}
}

// An explanation is valid until one of its inputs changes.
func TestDrains_Explain_reads_again(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		before, after time.Duration // since the start of the drain
		change        func(*checks.Drains, *podLister, *clusterstate.Node)
		isRead        bool // again
	}{
		"unchanged": {15 * time.Minute, 16 * time.Minute, func(*checks.Drains, *podLister, *clusterstate.Node) {}, false},
		"another timeout of budgets": {15 * time.Minute, 15 * time.Minute, func(d *checks.Drains, _ *podLister, _ *clusterstate.Node) {
			d.PDBTimeout = time.Hour
		}, true},
		"another ignored namespace": {15 * time.Minute, 15 * time.Minute, func(d *checks.Drains, _ *podLister, _ *clusterstate.Node) {
			d.IgnoreNamespaces = []string{"shop"}
		}, true},
		"node that is not ready any more": {15 * time.Minute, 15 * time.Minute, func(_ *checks.Drains, l *podLister, n *clusterstate.Node) {
			n.Ready, l.pods = false, []metav1.PartialObjectMetadata{shopPod("instant")}
		}, true},
		"passed deadline": {
			2*time.Hour - time.Minute, 2*time.Hour + 3*time.Minute, func(_ *checks.Drains, l *podLister, _ *clusterstate.Node) { l.pods = nil }, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lister := &podLister{pods: []metav1.PartialObjectMetadata{shopPod("api")}}
			drains := drainsOf(t, lister, budgetFor("shop", "api", "api"))
			node := drainingNode
			before := drains.Explain(t.Context(), node, noon, noon.Add(tc.before))
			tc.change(&drains, lister, &node)
			after := drains.Explain(t.Context(), node, noon, noon.Add(tc.after))
			golden.Texts(t, "", before, after)
			if isRead := lister.requests > 1; before == "" || isRead != tc.isRead {
				t.Errorf("%d requests: %q, %q", lister.requests, before, after)
			}
		})
	}
}

// A failed explanation is retried after a minute, not in every pass.
func TestDrains_Explain_after_an_error(t *testing.T) {
	t.Parallel()
	lister := &podLister{err: errors.New("the API server is down")}
	drains := drainsOf(t, lister)
	at := func(d time.Duration) time.Time { return noon.Add(15*time.Minute + d) }
	const unknown = "what holds it is unknown: listing the pods on node worker-0: the API server is down"
	for _, step := range []struct {
		after    time.Duration
		want     string
		requests int
	}{{0, unknown, 1}, {59 * time.Second, unknown, 1}, {time.Minute, "", 2}, {5 * time.Minute, "", 2}} {
		if got := drains.Explain(t.Context(), drainingNode, noon, at(step.after)); got != step.want || lister.requests != step.requests {
			t.Errorf("after %s: got %q, %d requests", step.after, got, lister.requests)
		}
		if got, want := drains.NextChange([]clusterstate.Node{drainingNode}, noon, at(step.after)), at(time.Minute); step.after < time.Minute && !got.Equal(want) {
			t.Errorf("after %s: the next change is at %s, want %s", step.after, got, want)
		}
		lister.err = nil
	}
}

func TestDrains_NextChange(t *testing.T) {
	t.Parallel()
	lister := &podLister{pods: []metav1.PartialObjectMetadata{shopPod("api")}}
	drains := drainsOf(t, lister, budgetFor("shop", "api", "api"))
	nodes := []clusterstate.Node{drainingNode, {Name: "worker-1"}}
	for _, step := range []struct {
		name     string
		at, want time.Duration // since the start of the drain; 0 for no change
	}{
		{"drain that is not long yet", time.Minute, 10 * time.Minute},
		{"explained drain", 10 * time.Minute, 0},
		{"deadline within five minutes", 2*time.Hour - time.Minute, 2*time.Hour + 3*time.Minute},
		{"refused deletion", 2*time.Hour + 3*time.Minute, 0},
	} {
		now := noon.Add(step.at)
		drains.Explain(t.Context(), drainingNode, noon, now)
		var want time.Time
		if step.want > 0 {
			want = noon.Add(step.want)
		}
		if got := drains.NextChange(nodes, noon, now); !got.Equal(want) {
			t.Errorf("%s: got %s, want %s", step.name, got, want)
		}
	}
	drains.Explanations = nil
	if got := drains.NextChange(nodes, noon, noon); !got.IsZero() {
		t.Errorf("without explanations: got %s", got)
	}
}

// An explanation is dropped once the node is no longer being drained.
func TestDrains_Left(t *testing.T) {
	t.Parallel()
	drains := drainsOf(t, &podLister{pods: []metav1.PartialObjectMetadata{shopPod("api")}})
	if left := drains.Left(drainingNode); len(left) > 0 {
		t.Errorf("before the drain is explained: %v", left)
	}
	drains.Explain(t.Context(), drainingNode, noon, noon.Add(15*time.Minute))
	if left := drains.Left(drainingNode); len(left) != 1 || left[0].Name != "api" {
		t.Errorf("during the drain: %v", left)
	}
	uncordoned := drainingNode
	uncordoned.Drain.Active = false
	if left := drains.Left(uncordoned); len(left) > 0 {
		t.Errorf("after the drain: %v", left)
	}
	drains.Explanations = nil
	if left := drains.Left(drainingNode); len(left) > 0 {
		t.Errorf("without explanations: %v", left)
	}
}
