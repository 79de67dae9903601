// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateinformer_test

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
)

func service(namespace, name, ip string, port int32) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: ip, Ports: []corev1.ServicePort{{Port: port, Protocol: corev1.ProtocolTCP}}},
	}
}

func answering(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

// answer replaces the response handler of the informer.
func (w *world) answer(handler http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handler = handler
}

// update sets whether an update is pending and active.
func (w *world) update(pending, active bool) {
	w.t.Helper()
	status := func(b bool) metav1.ConditionStatus {
		if b {
			return metav1.ConditionTrue
		}
		return metav1.ConditionFalse
	}
	w.change(&updatev1beta1.UpdateStatus{ObjectMeta: metav1.ObjectMeta{Name: updatev1beta1.UpdateStatusName}}, func(object client.Object) {
		object.(*updatev1beta1.UpdateStatus).Status.ControlPlane = &updatev1beta1.ControlPlaneStatus{Section: updatev1beta1.Section{Conditions: []metav1.Condition{
			{Type: updatev1beta1.ConditionUpdatePending, Status: status(pending), Reason: "R", LastTransitionTime: metav1.NewTime(start)},
			{Type: updatev1beta1.ConditionUpdateActive, Status: status(active), Reason: "R", LastTransitionTime: metav1.NewTime(start)},
		}}}
	})
}

// change changes an object, including its status.
func (w *world) change(object client.Object, do func(client.Object)) {
	w.t.Helper()
	must(w.t, w.client.Get(w.t.Context(), client.ObjectKeyFromObject(object), object))
	before := object.GetGeneration()
	do(object)
	status, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		w.t.Fatalf("%T is not an object", object)
	}
	must(w.t, w.client.Update(w.t.Context(), object))
	switch status.(type) {
	case *updatev1beta1.UpdateStatus, *updatev1beta1.UpdateInformer:
		status.SetResourceVersion(object.GetResourceVersion())
		status.SetGeneration(max(before, object.GetGeneration()))
		must(w.t, w.client.Status().Update(w.t.Context(), status))
	}
}

// changeInformer changes the UpdateInformer.
func (w *world) changeInformer(do func(*updatev1beta1.UpdateInformer)) {
	w.t.Helper()
	w.change(&updatev1beta1.UpdateInformer{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, func(object client.Object) {
		informer, ok := object.(*updatev1beta1.UpdateInformer)
		if !ok {
			w.t.Fatalf("%T is no UpdateInformer", object)
		}
		do(informer)
		informer.Generation++
	})
}

// pass makes one pass and returns the delay until the next one.
func (w *world) pass() time.Duration {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), cmp.Or(w.patience, time.Minute))
	defer cancel()
	result, err := w.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Name: "shop"}})
	must(w.t, err)
	return result.RequeueAfter
}

// runFor advances the clock by d and makes each pass when it is due.
func (w *world) runFor(d time.Duration) {
	w.t.Helper()
	end := w.clock.Now().Add(d)
	for {
		next := w.pass()
		if next == 0 || w.clock.Now().Add(next).After(end) {
			w.clock.SetTime(end)
			return
		}
		w.clock.SetTime(w.clock.Now().Add(next))
	}
}
