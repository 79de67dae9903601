// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// storedNode returns a node with content in metadata, spec, and status.
func storedNode() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"zone": "1", "role": "worker"}},
		Spec:       corev1.NodeSpec{Unschedulable: true},
		Status:     corev1.NodeStatus{Phase: corev1.NodeRunning, Capacity: corev1.ResourceList{}},
	}
}

// TestWritesReachTheirPartOfTheObject compares how the store and the fake client handle requests.
func TestWritesReachTheirPartOfTheObject(t *testing.T) {
	t.Parallel()
	change := func(node *corev1.Node) {
		delete(node.Labels, "zone")
		node.Annotations = map[string]string{"new": "x"}
		node.Spec = corev1.NodeSpec{PodCIDR: "10.0.0.0/24"}
		node.Status = corev1.NodeStatus{Phase: corev1.NodePending, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady}}}
	}
	tests := map[string]func(context.Context, client.Client, *corev1.Node) error{
		"update": func(ctx context.Context, c client.Client, node *corev1.Node) error {
			change(node)
			return c.Update(ctx, node)
		},
		"update of the status": func(ctx context.Context, c client.Client, node *corev1.Node) error {
			change(node)
			return c.Status().Update(ctx, node)
		},
		"patch": func(ctx context.Context, c client.Client, node *corev1.Node) error {
			before := node.DeepCopy()
			change(node)
			return c.Patch(ctx, node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		},
		"patch of the status": func(ctx context.Context, c client.Client, node *corev1.Node) error {
			before := node.DeepCopy()
			change(node)
			return c.Status().Patch(ctx, node, client.MergeFrom(before))
		},
		"raw patch of an unstructured object": func(ctx context.Context, c client.Client, node *corev1.Node) error {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
			u.SetName(node.Name)
			return c.Patch(ctx, u, client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"labels": null, "annotations": {"a": "b", "c": null}}, "status": {"phase": null}}`)))
		},
		"strategic merge patch": func(ctx context.Context, c client.Client, node *corev1.Node) error {
			return c.Patch(ctx, node, client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec": {"taints": [{"key": "x"}]}}`)))
		},
	}
	for name, write := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := New(WorldOptions{})
			if err := w.Add(storedNode()); err != nil {
				t.Fatal(err)
			}
			fakeClient := fake.NewClientBuilder().WithScheme(NewScheme()).WithStatusSubresource(kindsWithStatus()...).WithObjects(storedNode()).Build()
			var results []*corev1.Node
			for _, c := range []client.Client{fakeClient, w.Client("test")} {
				var node corev1.Node
				if err := c.Get(t.Context(), client.ObjectKey{Name: "a"}, &node); err != nil {
					t.Fatal(err)
				}
				if err := write(t.Context(), c, &node); err != nil {
					t.Fatal(err)
				}
				stored := &corev1.Node{}
				if err := c.Get(t.Context(), client.ObjectKey{Name: "a"}, stored); err != nil {
					t.Fatal(err)
				}
				if name != "raw patch of an unstructured object" {
					results = append(results, &node)
				}
				results = append(results, stored)
			}
			ignored := cmpopts.IgnoreFields(metav1.ObjectMeta{}, "UID", "CreationTimestamp", "Generation", "ResourceVersion", "ManagedFields")
			for _, result := range results[1:] {
				if diff := cmp.Diff(results[0], result, ignored, cmpopts.IgnoreFields(corev1.Node{}, "TypeMeta"), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("the answers and the stored objects differ:\n%s", diff)
				}
			}
		})
	}
}

func TestWriteOfAnOldStateConflicts(t *testing.T) {
	t.Parallel()
	tests := map[string]func(context.Context, client.Client, *corev1.Node) error{
		"update": func(ctx context.Context, c client.Client, node *corev1.Node) error { return c.Update(ctx, node) },
		"update of the status": func(ctx context.Context, c client.Client, node *corev1.Node) error {
			return c.Status().Update(ctx, node)
		},
		"patch": func(ctx context.Context, c client.Client, node *corev1.Node) error {
			before := node.DeepCopy()
			node.Labels = nil
			return c.Patch(ctx, node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		},
	}
	for name, write := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := New(WorldOptions{})
			if err := w.Add(storedNode()); err != nil {
				t.Fatal(err)
			}
			c, old, node := w.Client("test"), &corev1.Node{}, &corev1.Node{}
			for _, n := range []*corev1.Node{old, node} {
				if err := c.Get(t.Context(), client.ObjectKey{Name: "a"}, n); err != nil {
					t.Fatal(err)
				}
			}
			node.Spec.PodCIDR = "10.0.0.0/24"
			if err := c.Update(t.Context(), node); err != nil {
				t.Fatal(err)
			}
			if err := write(t.Context(), c, old); !apierrors.IsConflict(err) {
				t.Errorf("got error %v", err)
			}
		})
	}
}

func TestLastFinalizerKeepsADeletedObject(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"update", "patch"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := New(WorldOptions{})
			c, node := w.Client("test"), storedNode()
			node.Finalizers = []string{"test/one", "test/two"}
			if err := c.Create(t.Context(), node); err != nil {
				t.Fatal(err)
			}
			if err := c.Delete(t.Context(), node); err != nil {
				t.Fatal(err)
			}
			if err := c.Get(t.Context(), client.ObjectKey{Name: "a"}, node); err != nil {
				t.Fatal(err)
			}
			for _, left := range [][]string{{"test/two"}, nil} {
				before := node.DeepCopy()
				node.Finalizers, node.DeletionTimestamp = left, nil
				var err error
				if how == "patch" {
					err = c.Patch(t.Context(), node, client.MergeFrom(before))
				} else {
					err = c.Update(t.Context(), node)
				}
				if err != nil || node.DeletionTimestamp == nil {
					t.Fatalf("with finalizers %q: deleted at %v, error %v", left, node.DeletionTimestamp, err)
				}
				err = c.Get(t.Context(), client.ObjectKey{Name: "a"}, &corev1.Node{})
				if exists := err == nil; exists != (len(left) > 0) {
					t.Errorf("with finalizers %q: %v", left, err)
				}
			}
		})
	}
}

func TestPodWithoutFinalizersStaysForItsGracePeriod(t *testing.T) {
	t.Parallel()
	w := New(WorldOptions{})
	w.EnableKubelets(func(*corev1.Pod) time.Duration { return 10 * time.Second })
	c := w.Client("test")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", Finalizers: []string{"test/one"}},
		Spec:       corev1.PodSpec{NodeName: "a"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if err := w.Add(pod); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`))
	if err := c.Patch(t.Context(), pod.DeepCopy(), patch); err != nil {
		t.Fatal(err)
	}
	for _, exists := range []bool{true, false} {
		if err := w.RunFor(9 * time.Second); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), &corev1.Pod{}); (err == nil) != exists {
			t.Errorf("after %s: %v", w.Now().Sub(Start), err)
		}
	}
}

func TestDeletedObjectAcceptsNoFinalizer(t *testing.T) {
	t.Parallel()
	w := New(WorldOptions{})
	c, node := w.Client("test"), storedNode()
	node.Finalizers = []string{"test/one", "test/two"}
	if err := c.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	for _, finalizers := range []string{`["test/one", "test/two", "test/new"]`, `["test/new"]`} {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": `+finalizers+`}}`))
		if err := c.Patch(t.Context(), node.DeepCopy(), patch); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "test/new") {
			t.Errorf("finalizers %s: %v", finalizers, err)
		}
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": ["test/two"]}}`))
	if err := c.Patch(t.Context(), node, patch); err != nil {
		t.Errorf("removing a finalizer: %v", err)
	}
}

// TestCreationAnswersWithTheStoredState creates an object in each form that clients use.
func TestCreationAnswersWithTheStoredState(t *testing.T) {
	t.Parallel()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	u.SetName("unstructured")
	for _, obj := range []client.Object{u, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "typed"}}} {
		t.Run(obj.GetName(), func(t *testing.T) {
			t.Parallel()
			c := New(WorldOptions{}).Client("test")
			if err := c.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			created := obj.GetCreationTimestamp()
			if obj.GetUID() == "" || obj.GetResourceVersion() == "" || created.IsZero() {
				t.Errorf("UID %q, resource version %q, created %v: want those that are stored", obj.GetUID(), obj.GetResourceVersion(), created)
			}
		})
	}
}

func TestSetReplacesSpecAndStatus(t *testing.T) {
	t.Parallel()
	w := New(WorldOptions{})
	if err := w.Set(storedNode()); !strings.Contains(errText(err), "not found") {
		t.Errorf("setting an object that is absent: %v", err)
	}
	if err := w.Add(storedNode()); err != nil {
		t.Fatal(err)
	}
	changed := storedNode()
	changed.Spec.Unschedulable, changed.Status.Phase = false, corev1.NodePending
	if err := w.Set(changed); err != nil {
		t.Fatal(err)
	}
	var stored corev1.Node
	if err := w.Client("test").Get(t.Context(), client.ObjectKey{Name: "a"}, &stored); err != nil {
		t.Fatal(err)
	}
	if stored.Spec.Unschedulable || stored.Status.Phase != corev1.NodePending || stored.Generation != 1 {
		t.Errorf("stored: %+v", stored)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestJumpKeepsTheDistanceOfWhatIsDue jumps ahead by a day when a reconcile is due in half a
// minute.
func TestJumpKeepsTheDistanceOfWhatIsDue(t *testing.T) {
	t.Parallel()
	w := New(WorldOptions{})
	var lives []*counter
	if err := w.Client("test").Create(t.Context(), configMap()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Start(counting(2, &lives)); err != nil {
		t.Fatal(err)
	}
	fired := time.Time{}
	w.After(time.Minute, func() { fired = w.Now() })
	if err := w.RunFor(30 * time.Second); err != nil {
		t.Fatal(err)
	}
	w.Jump(24 * time.Hour)
	if err := w.RunFor(30 * time.Second); err != nil {
		t.Fatal(err)
	}
	if got := count(t, w); got != "II" || !fired.Equal(Start.Add(24*time.Hour+time.Minute)) {
		t.Errorf("the count is %q, the timer fired at %s", got, fired)
	}
}

// TestMaxBurstEndsABusyLoop enqueues a request while it is being reconciled.
func TestMaxBurstEndsABusyLoop(t *testing.T) {
	t.Parallel()
	w := New(WorldOptions{MaxBurst: 10})
	reconciles := 0
	var process *Process
	program := &Program{Name: "busy", Controllers: func(Env) ([]manager.Controller, error) {
		return []manager.Controller{{Name: "busy", Reconciler: reconcile.Func(func(_ context.Context, request reconcile.Request) (reconcile.Result, error) {
			reconciles++
			process.Enqueue(request)
			return reconcile.Result{}, nil
		})}}, nil
	}}
	process, err := w.Start(program)
	if err != nil {
		t.Fatal(err)
	}
	process.Enqueue(reconcile.Request{})
	if err := w.RunFor(time.Second); err == nil || !strings.Contains(err.Error(), "busy loop") || reconciles != 11 {
		t.Errorf("%d reconciles, error %v", reconciles, err)
	}
}
