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

// State holds what an informer reports about itself.
type State struct {
	// Reason is updatev1beta1.ReasonAsExpected if the informer works, ReasonInformerUpdating while its
	// software is updated, or ReasonDegraded; empty means AsExpected.
	Reason string
	// Message explains the reason to people.
	Message string
}

// Heartbeat publishes the condition Online of an UpdateInformer.
type Heartbeat struct {
	// Client writes the condition, with the right to get updateinformers, and to patch
	// updateinformers/status, of that name.
	Client dynamic.Interface
	// Informer is the name of the UpdateInformer.
	Informer string
	// State returns the state of the informer, or nil if it works as expected.
	State func(context.Context) State
	// Clock is where times come from; nil means the real clock.
	Clock clock.WithTicker
	// Log gets errors; zero means none.
	Log logr.Logger

	published *updatev1beta1.InformerCondition // as it was last seen or written
}

// Run publishes the condition at once and every two minutes, until the context ends.
func (h *Heartbeat) Run(ctx context.Context) {
	ticker := h.clock().NewTicker(heartbeatInterval)
	defer ticker.Stop()
	for {
		state := State{}
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

// Publish writes the condition by server-side apply. It must not be called concurrently.
func (h *Heartbeat) Publish(ctx context.Context, state State) error {
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

// next returns the condition about a state.
func (h *Heartbeat) next(state State) updatev1beta1.InformerCondition {
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

// online returns the condition Online of an UpdateInformer, or an empty one.
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
