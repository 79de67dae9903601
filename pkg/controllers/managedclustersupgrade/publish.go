// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/objects"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/readiness"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// recordStart records that clusters begin before the first one does: much of the spec cannot change from then on.
func (s *scope) recordStart(ctx context.Context) error {
	if s.Upgrade.Status.StartTime != nil {
		return nil
	}
	started := s.Upgrade.Status.DeepCopy()
	started.StartTime = &metav1.Time{Time: s.Now.Truncate(time.Second)}
	return s.writeStatus(ctx, started)
}

// publish publishes the status, at most once a second, and only if it has changed. It waits for a run whose creation may have
// failed: the status counts what has begun.
func (s *scope) publish(ctx context.Context) error {
	for _, r := range s.cache.clusters {
		if r.written != nil && r.written.unsure {
			s.wakeAt(s.Now.Add(retryDelay))
			return nil
		}
	}
	s.remember()
	next := admission.ComputeStatus(&s.Fleet, s.members, s.decision)
	if equality.Semantic.DeepEqual(next, s.Upgrade.Status) {
		s.writeEvents(ctx)
		s.noteCounted()
		return nil
	}
	if at := s.cache.published.Add(publishInterval); at.After(s.Now) && at.Sub(s.Now) <= publishInterval {
		s.wakeAt(at)
		return nil
	}
	s.publishTransitions(ctx, &next)
	if err := s.writeStatus(ctx, &next); err != nil {
		return err
	}
	s.cache.published = s.Now
	s.noteCounted()
	return nil
}

// noteCounted notes the clusters that the published status counts as begun.
func (s *scope) noteCounted() {
	for _, r := range s.cache.clusters {
		r.begun, r.ignored, r.detached, r.awaited = nil, false, false, false
	}
	for _, name := range s.decision.Ignored {
		s.cache.of(name).ignored = true
	}
	for i := range s.members {
		m := &s.members[i]
		r := s.cache.of(m.Name)
		if r.awaited = m.Awaited; m.State != rollout.NotStarted && !r.ignored {
			r.begun = begunOf(m)
		}
	}
}

func (s *scope) writeStatus(ctx context.Context, next *fleetv1beta1.ManagedClustersUpgradeStatus) error {
	return s.write(ctx, "writing the status of", true, func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Status = *next })
}

// delete deletes the runs of the upgrade, and then removes its finalizer. Each run undoes what is not
// delivered before it goes; clusters that are being upgraded continue.
func (s *scope) delete(ctx context.Context) error {
	if !controllerutil.ContainsFinalizer(s.Upgrade, fleetv1beta1.Finalizer) {
		return nil
	}
	if err := s.readRuns(ctx); err != nil {
		return err
	}
	if err := s.readRunsLive(ctx); err != nil {
		return err
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.Runs)) {
		run := s.Runs[name]
		if run.DeletionTimestamp != nil {
			continue
		}
		if err := client.IgnoreNotFound(s.client.Delete(ctx, run.DeepCopy(), client.Preconditions{UID: &run.UID})); err != nil {
			errs = append(errs, fmt.Errorf("deleting the ClusterUpgradeRun of cluster %s: %w", run.Namespace, err))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if len(s.Runs) > 0 {
		return s.publishStopped(ctx, fleetv1beta1.ReasonDeleting,
			"the ManagedClustersUpgrade is being deleted; waiting until its ClusterUpgradeRuns are gone")
	}
	works, err := listWorks(ctx, s.live, s.Upgrade.UID) // a hub whose cache was behind may have left one
	if err != nil {
		return err
	}
	if err := s.deleteWorks(ctx, works); err != nil {
		return err
	}
	if len(s.unrepaired) > 0 {
		return s.publishStopped(ctx, fleetv1beta1.ReasonDeleting, "the ManagedClustersUpgrade is being deleted; waiting until the agents apply "+
			"the restored deleteOption of their ManifestWorks: "+text.JoinNames(s.unrepaired))
	}
	return s.write(ctx, "removing the finalizer of", false, func(u *fleetv1beta1.ManagedClustersUpgrade) {
		controllerutil.RemoveFinalizer(u, fleetv1beta1.Finalizer)
	})
}

// readRunsLive reads the runs from the API server before the finalizer is removed: the cache may lack one, or its label.
func (s *scope) readRunsLive(ctx context.Context) error {
	if len(s.Runs) > 0 {
		return nil
	}
	var list fleetv1alpha1.ClusterUpgradeRunList
	if err := s.live.List(ctx, &list); err != nil {
		return fmt.Errorf("listing the ClusterUpgradeRuns: %w", err)
	}
	for i := range list.Items {
		if run := &list.Items[i]; admission.Owns(s.Upgrade, run) {
			s.Runs[run.Namespace] = run
			s.wakeAt(s.Now.Add(cacheTimeout))
		}
	}
	return nil
}

// publishStopped publishes that no cluster begins, and leaves the rest of the status as it is.
func (s *scope) publishStopped(ctx context.Context, reason, message string) error {
	next := s.Upgrade.Status.DeepCopy()
	readiness.SetCondition(&next.Conditions, metav1.Condition{
		Type: fleetv1beta1.ConditionAdmitting, Status: metav1.ConditionFalse, Reason: reason,
		Message: text.Truncate(message, admission.MaxConditionMessage),
	}, s.Upgrade.Generation, s.Now)
	if reason == fleetv1beta1.ReasonCannotObserve {
		unknown := readiness.Verdict{Level: readiness.Unknown, Reason: reason, Message: text.Truncate(message, admission.MaxConditionMessage)}
		unknown.Set(&next.Conditions, s.Upgrade.Generation, s.Now)
	}
	if equality.Semantic.DeepEqual(*next, s.Upgrade.Status) {
		return nil
	}
	s.publishTransitions(ctx, next)
	return s.writeStatus(ctx, next)
}

const component = "managed-upgrade-hub"

// initialReasons are not worth an Event.
var initialReasons = []string{
	fleetv1beta1.ReasonNothingApplied, fleetv1beta1.ReasonNothingInProgress, fleetv1beta1.ReasonClustersPending, fleetv1beta1.ReasonNoFailures,
	fleetv1beta1.ReasonClustersFailed, fleetv1beta1.ReasonFinished,
}

// warnings are reasons of the condition Admitting that a person must resolve.
var warnings = []string{
	fleetv1beta1.ReasonCanaryFailed, fleetv1beta1.ReasonCanaryNotAvailable, fleetv1beta1.ReasonMaxFailuresExceeded, fleetv1beta1.ReasonRecordsLost, fleetv1beta1.ReasonInvalidStrategy,
	fleetv1beta1.ReasonCanaryNotSelected, fleetv1beta1.ReasonNoCanary, fleetv1beta1.ReasonNoClustersSelected, fleetv1beta1.ReasonDependencyMissing,
	fleetv1beta1.ReasonCannotObserve, fleetv1beta1.ReasonNoOperatorImage,
}

const (
	eventRetry = time.Minute // when an Event is written again after an error
	maxEvents  = 50          // bounds how many Events wait to be written
)

// publishTransitions writes an Event for each transition to the next status before the status: after a crash in between, the
// same transitions have the same names, and exist already.
func (s *scope) publishTransitions(ctx context.Context, next *fleetv1beta1.ManagedClustersUpgradeStatus) {
	before := &s.Upgrade.Status
	conditions := readiness.WithSlow(before.Conditions)
	for i := range next.Conditions {
		after := &next.Conditions[i]
		if n, notable := transition(apimeta.FindStatusCondition(conditions, after.Type), after); notable {
			n.ID = transitionID(before, after)
			s.send(ctx, n, after)
			s.cache.events = append(s.cache.events, n)
		}
	}
	s.writeEvents(ctx)
}

// writeEvents writes the waiting Events in order. After an error, the rest is written later: they stop no rollout.
func (s *scope) writeEvents(ctx context.Context) {
	ref, m := s.objectReference(), s.cache
	m.events = m.events[max(0, len(m.events)-maxEvents):]
	for len(m.events) > 0 {
		if err := s.events.Create(ctx, ref, m.events[0]); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "writing an Event", "reason", m.events[0].Reason)
			s.wakeAt(s.Now.Add(eventRetry))
			return
		}
		m.events = m.events[1:]
	}
}

func (s *scope) objectReference() corev1.ObjectReference {
	return objects.Reference(s.Upgrade, fleetv1beta1.GroupVersion.WithKind("ManagedClustersUpgrade"))
}

// milestones are the conditions that announce a milestone once they are true.
var milestones = map[string]engine.Milestone{
	fleetv1beta1.ConditionInProgress: engine.MilestoneStarted,
	fleetv1beta1.ConditionComplete:   engine.MilestoneCompleted,
	fleetv1beta1.ConditionFailed:     engine.MilestoneFailed,
}

const repeatTime = 24 * time.Hour // bounds how long a milestone is sent again by a process that starts

// send queues a notification for the webhook. The ID of a milestone does not depend on when the condition is read.
func (s *scope) send(ctx context.Context, n engine.Notification, c *metav1.Condition) {
	if s.Webhook == nil {
		return
	}
	n.Attempt = s.attempt()
	if s.Upgrade.Spec.ClusterVersion != nil {
		n.Version = s.Upgrade.Spec.ClusterVersion.Version
	}
	if m := milestones[c.Type]; m != "" && c.Status == metav1.ConditionTrue {
		n.Milestone = m
		n.ID = engine.NotificationID(string(s.Upgrade.UID), text.FormatTime(c.LastTransitionTime.Time), c.Type, c.Reason)
	}
	_ = s.Webhook.Publish(ctx, s.objectReference(), n) // its metrics show the error
}

// repeatMilestones sends the milestones of the stored status again, once: the process before may have lost them.
func (s *scope) repeatMilestones(ctx context.Context) {
	if s.cache.repeated {
		return
	}
	s.cache.repeated = true
	for i := range s.Upgrade.Status.Conditions {
		c := &s.Upgrade.Status.Conditions[i]
		n, notable := transition(nil, c)
		if milestones[c.Type] != "" && c.Status == metav1.ConditionTrue && notable && s.Now.Sub(c.LastTransitionTime.Time) < repeatTime {
			s.send(ctx, n, c)
		}
	}
}

// transition returns the Event about a change of a condition, and whether there is one. before is nil for a new condition.
func transition(before, after *metav1.Condition) (engine.Notification, bool) {
	n := engine.Notification{Type: corev1.EventTypeNormal, Reason: after.Reason, Message: after.Message}
	if before != nil && before.Status == after.Status && before.Reason == after.Reason {
		return n, false
	}
	if before == nil && after.Reason == fleetv1beta1.ReasonOnTime || readiness.IsOwn(after.Type) || slices.Contains(initialReasons, after.Reason) {
		return n, false
	}
	switch after.Type {
	case fleetv1beta1.ConditionInProgress: // Complete reports its end
		return n, after.Status == metav1.ConditionTrue
	case fleetv1beta1.ConditionAdmitting:
		if slices.Contains(warnings, after.Reason) {
			n.Type = corev1.EventTypeWarning
		}
		return n, isStop(after.Reason) || before != nil && isStop(before.Reason)
	case fleetv1beta1.ConditionFailed, fleetv1beta1.ConditionSlow:
		if after.Status == metav1.ConditionTrue {
			n.Type = corev1.EventTypeWarning
		}
	case fleetv1beta1.ConditionSelected, fleetv1beta1.ConditionPreflightPassed:
		if after.Status == metav1.ConditionFalse {
			n.Type = corev1.EventTypeWarning
		}
	}
	return n, true
}

// isStop reports whether a reason of the condition Admitting says more than that clusters take their turns.
func isStop(reason string) bool {
	return reason != fleetv1beta1.ReasonOpen && reason != fleetv1beta1.ReasonNoFreeSlot && reason != fleetv1beta1.ReasonFinished
}

// transitionID identifies a transition by the status before it, unique to it, and by what the condition becomes.
func transitionID(before *fleetv1beta1.ManagedClustersUpgradeStatus, after *metav1.Condition) string {
	encoded, err := json.Marshal([]any{before, after.Type, after.Status, after.Reason})
	if err != nil {
		encoded = []byte(after.Type + after.Reason) // times, numbers, and texts can be encoded
	}
	return text.Hash(string(encoded), 8)
}
