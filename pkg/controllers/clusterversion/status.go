// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterversion

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/objects"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/readiness"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Reasons of the condition Accepted.
const (
	reasonValid           = "Valid"
	reasonInvalidTemplate = "InvalidTemplate"
	reasonWrongClusterID  = "WrongClusterID"
	reasonNotTheOldest    = "AnotherClusterVersion"
)

// Reasons of the condition Synced.
const (
	reasonSynced       = "Synced"
	reasonNotAccepted  = "NotAccepted"
	reasonMissing      = "ClusterVersionMissing"
	reasonApplyFailed  = "ApplyFailed"
	reasonContested    = "Contested"
	reasonChannelInUse = "ChannelInUse"
	reasonNotRemoved   = "NotRemoved"
)

// Reasons of Events.
const (
	eventDrift    = "DriftDetected"
	eventRejected = "ParametersRejected"
)

// equal reports whether both have the same fields with the same values.
func (p parameters) equal(other parameters) bool {
	return len(p) == len(other) && reflect.DeepEqual(map[string]any(p), map[string]any(other))
}

// isContested reports whether the status shows that another client keeps changing the parameters.
func isContested(object *maintenancev1beta1.ClusterVersion) bool {
	synced := apimeta.FindStatusCondition(object.Status.Conditions, maintenancev1beta1.ConditionSynced)
	return synced != nil && synced.Reason == reasonContested
}

// publish writes the outcome to the status if it has changed, and publishes an Event if the spec is
// rejected.
func (s *scope) publish(ctx context.Context, o outcome) error {
	if o.rejected != "" {
		if err := s.publishRejection(ctx, o); err != nil {
			return err
		}
	}
	changed := s.object.DeepCopy()
	if err := s.setStatus(&changed.Status, o); err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(&s.object.Status, &changed.Status) {
		return nil
	}
	base := client.MergeFromWithOptions(s.object, client.MergeFromWithOptimisticLock{})
	if err := s.Client.Status().Patch(ctx, changed, base); err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
}

// setStatus applies the outcome to a status. Conditions and parameters that the outcome leaves open
// stay as they are.
func (s *scope) setStatus(status *maintenancev1beta1.ClusterVersionStatus, o outcome) error {
	status.ObservedGeneration = s.object.Generation
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c metav1.Condition) bool {
		return c.Type != maintenancev1beta1.ConditionAccepted && c.Type != maintenancev1beta1.ConditionSynced && !readiness.IsOwn(c.Type)
	})
	switch {
	case o.rejected != "":
		o.synced = reasonNotAccepted
		s.setCondition(status, maintenancev1beta1.ConditionAccepted, false, o.rejected, o.message)
	case o.accepted:
		s.setCondition(status, maintenancev1beta1.ConditionAccepted, true, reasonValid, "the parameters are valid")
	}
	switch o.synced {
	case "":
	case reasonSynced:
		s.setCondition(status, maintenancev1beta1.ConditionSynced, true, reasonSynced, s.plan.describe())
	default:
		s.setCondition(status, maintenancev1beta1.ConditionSynced, false, o.synced, o.message)
	}
	if synced := apimeta.FindStatusCondition(status.Conditions, maintenancev1beta1.ConditionSynced); synced != nil {
		readiness.Of(*synced, levelWhileNotSynced(synced.Reason)).Set(&status.Conditions, s.object.Generation, s.now)
	}
	if o.applied != nil {
		status.NotRemoved = s.state.notRemoved
	}
	previews, err := s.plan.previews()
	if err != nil {
		return err
	}
	if !slices.EqualFunc(previews, status.Overlays, samePreview) {
		status.Overlays = previews
	}
	if o.applied == nil {
		return nil
	}
	if !o.applied.equal(s.inEffect()) || len(status.Current.Spec.Raw) == 0 {
		if status.Current, err = o.applied.encode(); err != nil {
			return err
		}
	}
	status.OverlayApplied = nil
	if !s.state.overlay.IsZero() {
		status.OverlayApplied = new(metav1.NewTime(s.state.overlay))
	}
	return nil
}

// levelWhileNotSynced returns the readiness level of an object whose parameters are not in effect.
// The operator keeps trying, except if the spec is rejected or another client contests the
// parameters.
func levelWhileNotSynced(reason string) readiness.Level {
	if reason == reasonNotAccepted || reason == reasonContested {
		return readiness.Stalled
	}
	return readiness.Reconciling
}

func samePreview(a, b maintenancev1beta1.ClusterVersionOverlayPreview) bool {
	x, errX := decode(a.Preview.Spec)
	y, errY := decode(b.Preview.Spec)
	return a.From.Equal(&b.From) && errX == nil && errY == nil && x.equal(y)
}

// describe names the overlays that apply now and next.
func (p plan) describe() string {
	message := "the template is applied"
	if !p.applied.IsZero() {
		message += " with the overlay from " + text.FormatTime(p.applied)
	}
	if next := p.next(); !next.IsZero() {
		message += "; the next overlay applies from " + text.FormatTime(next)
	}
	return message
}

func (s *scope) setCondition(status *maintenancev1beta1.ClusterVersionStatus, name string, is bool, reason, message string) {
	condition := metav1.Condition{Type: name, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	if is {
		condition.Status = metav1.ConditionTrue
	}
	readiness.SetCondition(&status.Conditions, condition, s.object.Generation, s.now)
}

// publishDrift publishes an Event about parameters that another client has changed.
func (s *scope) publishDrift(ctx context.Context, live *unstructured.Unstructured, drift string) error {
	id := notificationID(string(s.object.UID), eventDrift, string(live.GetUID()), strconv.FormatInt(live.GetGeneration(), 10))
	err := s.publishEvent(ctx, id, eventDrift, drift+"; the parameters are applied to the ClusterVersion of OpenShift again")
	if err == nil {
		s.Events.Reset(string(s.object.UID)) // the next one has another ID
	}
	return err
}

// publishRejection publishes a single Event about a rejected spec.
func (s *scope) publishRejection(ctx context.Context, o outcome) error {
	id := notificationID(string(s.object.UID), eventRejected, strconv.FormatInt(s.object.Generation, 10), o.rejected, o.message)
	return s.publishEvent(ctx, id, eventRejected, o.message)
}

// publishEvent publishes an Event. If the API server rejects the Event, the error is logged, and
// the pass continues.
func (s *scope) publishEvent(ctx context.Context, id, reason, message string) error {
	return notify.TryPublish(ctx, s.Events, objects.Reference(s.object, maintenancev1beta1.GroupVersion.WithKind("ClusterVersion")),
		engine.Notification{ID: id, Type: corev1.EventTypeWarning, Reason: reason, Message: message})
}

// notificationID derives an ID from the parts.
func notificationID(parts ...string) string {
	return text.Hash(strings.Join(parts, "\n"), 8)
}
