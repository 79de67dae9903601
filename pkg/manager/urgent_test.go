// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

type queue = priorityqueue.PriorityQueue[reconcile.Request]

// A pending request moves to the front of the queue as soon as its object is urgent.
func TestUrgentRequests_come_first(t *testing.T) {
	t.Parallel()
	kind := manager.Kind{
		Object: &corev1.Node{},
		Requests: func(_ context.Context, obj client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
		},
		IsUrgent: func(obj client.Object) bool { return obj.GetLabels()["fails"] == "true" },
	}
	node := func(name, fails string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"fails": fails}}}
	}
	for name, tc := range map[string]struct {
		raise func(context.Context, queue)
		want  []string
	}{
		"none": {func(context.Context, queue) {}, []string{"a", "b", "c"}},
		"update": {func(ctx context.Context, q queue) {
			kind.Handler().Update(ctx, event.UpdateEvent{ObjectOld: node("c", ""), ObjectNew: node("c", "true")}, q)
		}, []string{"c", "a", "b"}},
		"create": {func(ctx context.Context, q queue) {
			kind.Handler().Create(ctx, event.CreateEvent{Object: node("d", "true"), IsInInitialList: true}, q)
		}, []string{"d", "a", "b", "c"}},
		"no longer": {func(ctx context.Context, q queue) {
			kind.Handler().Update(ctx, event.UpdateEvent{ObjectOld: node("c", "true"), ObjectNew: node("c", "")}, q)
		}, []string{"a", "b", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			waiting := priorityqueue.New[reconcile.Request](t.Name())
			defer waiting.ShutDown()
			for _, name := range []string{"a", "b", "c"} {
				kind.Handler().Create(t.Context(), event.CreateEvent{Object: node(name, "")}, waiting)
			}
			tc.raise(t.Context(), waiting)
			var got []string
			for range tc.want {
				request, _ := waiting.Get()
				got = append(got, request.Name)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
