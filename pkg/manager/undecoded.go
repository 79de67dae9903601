// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/objects"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/readiness"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// ReasonUndecodable is the reason of the Accepted condition of an object whose stored spec contains
// values that its fields cannot hold.
const ReasonUndecodable = "Undecodable"

// Undecodable is an object that is decoded leniently.
type Undecodable interface {
	client.Object
	// SpecProblem describes what was omitted from the spec, or returns an empty string.
	SpecProblem() string
}

// RefuseUndecodable reports whether the spec of an object cannot be decoded completely. In that
// case, it sets the Accepted condition to name the value that must change, and the controller must
// not act on the object; other objects are not affected. Objects that are being deleted are not
// refused, nor are objects whose finalizer shows that something is in progress.
func RefuseUndecodable(ctx context.Context, c client.Client, now time.Time, obj Undecodable) (bool, error) {
	problem := obj.SpecProblem()
	if problem == "" || obj.GetDeletionTimestamp() != nil || len(obj.GetFinalizers()) > 0 {
		return false, nil
	}
	conditions, err := conditionsOf(obj)
	if err != nil {
		return true, err
	}
	before := slices.Clone(conditions)
	refused := metav1.Condition{
		Type: history.ConditionAccepted, Status: metav1.ConditionFalse, Reason: ReasonUndecodable,
		Message: problem + "; the object was stored by another schema, and is ignored until the value is corrected",
	}
	readiness.SetAccepted(&conditions, refused, obj.GetGeneration(), now)
	if slices.Equal(before, conditions) {
		return true, nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": obj.GetResourceVersion()},
		"status":   map[string]any{"conditions": conditions},
	})
	if err != nil {
		return true, fmt.Errorf("encoding the conditions: %w", err)
	}
	target, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return true, fmt.Errorf("copying %T", obj)
	}
	err = c.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, patch))
	if IsRejected(err) { // validation rules for other values fail, although this write does not change those values
		return true, publishUndecodable(ctx, c, now, obj, problem)
	}
	if err != nil {
		return true, fmt.Errorf("reporting that an object does not decode: %w", err)
	}
	return true, nil
}

// conditionsOf returns the status conditions of an object of any kind.
func conditionsOf(obj client.Object) ([]metav1.Condition, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("reading the conditions: %w", err)
	}
	var known struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &known); err != nil {
		return nil, fmt.Errorf("reading the conditions: %w", err)
	}
	return known.Status.Conditions, nil
}

// publishUndecodable creates an Event for an object whose status the API server does not accept,
// once per generation. If the Event is rejected as well, the error only appears in the log.
func publishUndecodable(ctx context.Context, c client.Client, now time.Time, obj Undecodable, problem string) error {
	gvk, err := apiutil.GVKForObject(obj, c.Scheme())
	if err != nil {
		return err
	}
	namespace := cmp.Or(obj.GetNamespace(), metav1.NamespaceDefault)
	at := metav1.NewTime(now.Truncate(time.Second))
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: "undecodable." + text.Hash(fmt.Sprintf("%s/%d", obj.GetUID(), obj.GetGeneration()), 8)},
		InvolvedObject: objects.Reference(obj, gvk),
		Type:           corev1.EventTypeWarning, Reason: ReasonUndecodable, Message: problem + "; the object is ignored until the value is corrected",
		Source: corev1.EventSource{Component: "managed-upgrade-operator"}, Count: 1, FirstTimestamp: at, LastTimestamp: at,
	}
	ctrl.LoggerFrom(ctx).Info("an object does not decode, and its status cannot be written", "kind", gvk.Kind, "namespace", obj.GetNamespace(), "name", obj.GetName(), "problem", problem)
	err = c.Create(ctx, event)
	if IsRejected(err) || apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("publishing that an object does not decode: %w", err)
	}
	return nil
}
