// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informersdk

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// heartbeatInterval is less than half of the five minutes after which a heartbeat is stale.
const heartbeatInterval = 2 * time.Minute

// InformerState is the state that an informer reports about itself.
type InformerState struct {
	// Reason is updatev1beta1.ReasonAsExpected (the default) if the informer works,
	// ReasonInformerUpdating while its software is being updated, or ReasonDegraded.
	Reason string
	// Message explains the reason to users.
	Message string
}

// Heartbeat publishes the Online condition of an UpdateInformer.
type Heartbeat struct {
	// Client writes the condition. It needs permission to get the UpdateInformer and to patch its
	// status.
	Client dynamic.Interface
	// Informer is the name of the UpdateInformer.
	Informer string
	// State returns the state of the informer. If it is nil, the informer always works as expected.
	State func(context.Context) InformerState
	// Clock defaults to the real clock.
	Clock clock.WithTicker
	// Log receives errors. By default, they are discarded.
	Log logr.Logger

	published *updatev1beta1.InformerCondition // as last read or written
}

// Run publishes the condition immediately and then every two minutes until the context ends.
func (h *Heartbeat) Run(ctx context.Context) {
	ticker := h.clock().NewTicker(heartbeatInterval)
	defer ticker.Stop()
	for {
		state := InformerState{}
		if h.State != nil {
			state = h.State(ctx)
		}
		if err := h.Publish(ctx, state); err != nil && h.Log.GetSink() != nil {
			h.Log.Error(err, "The condition Online was not published.")
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

func (h *Heartbeat) clock() clock.WithTicker {
	if h.Clock == nil {
		return clock.RealClock{}
	}
	return h.Clock
}

// Publish writes the condition with server-side apply. It is not safe for concurrent use.
func (h *Heartbeat) Publish(ctx context.Context, state InformerState) error {
	informers := h.Client.Resource(updatev1beta1.GroupVersion.WithResource("updateinformers"))
	if h.published == nil {
		current, err := informers.Get(ctx, h.Informer, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("getting UpdateInformer %s: %w", h.Informer, err)
		}
		if h.published, err = online(current); err != nil {
			return err
		}
	}
	next := h.next(state)
	condition, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&next)
	if err != nil {
		return fmt.Errorf("encoding the condition: %w", err)
	}
	applied := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": updatev1beta1.GroupVersion.String(), "kind": "UpdateInformer",
		"metadata": map[string]any{"name": h.Informer},
		"status":   map[string]any{"conditions": []any{condition}},
	}}
	if _, err := informers.ApplyStatus(ctx, h.Informer, applied, metav1.ApplyOptions{FieldManager: "update-informer", Force: true}); err != nil {
		return fmt.Errorf("applying the status of UpdateInformer %s: %w", h.Informer, err)
	}
	h.published = &next
	return nil
}

// next returns the condition for a state.
func (h *Heartbeat) next(state InformerState) updatev1beta1.InformerCondition {
	now := metav1.Time{Time: h.clock().Now().UTC().Truncate(time.Second)}
	next := updatev1beta1.InformerCondition{
		Type: updatev1beta1.ConditionOnline, Status: metav1.ConditionFalse,
		Reason: cmp.Or(state.Reason, updatev1beta1.ReasonAsExpected), Message: text.Sanitize(state.Message, maxMessageBytes),
		LastHeartbeatTime: &now, LastTransitionTime: now,
	}
	if next.Reason == updatev1beta1.ReasonAsExpected {
		next.Status = metav1.ConditionTrue
	}
	if h.published.Status == next.Status && !h.published.LastTransitionTime.IsZero() {
		next.LastTransitionTime = h.published.LastTransitionTime
	}
	return next
}

// online returns the Online condition of an UpdateInformer, or an empty condition.
func online(object *unstructured.Unstructured) (*updatev1beta1.InformerCondition, error) {
	var informer updatev1beta1.UpdateInformer
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &informer); err != nil {
		return nil, fmt.Errorf("decoding UpdateInformer %s: %w", object.GetName(), err)
	}
	for _, condition := range informer.Status.Conditions {
		if condition.Type == updatev1beta1.ConditionOnline {
			return &condition, nil
		}
	}
	return &updatev1beta1.InformerCondition{}, nil
}
