// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeschedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/objects"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/readiness"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

const (
	// published is the number of starts that the status lists.
	published = 5
	// maxSlotMessage limits the message of a slot, in bytes.
	maxSlotMessage = 1000
	// maxMessage limits the message of a condition, in bytes.
	maxMessage = 4000
	// maxSuspendedBy limits the description of what suspends a start, in bytes.
	maxSuspendedBy = 500
)

// reconcile makes the pass.
func (s *scope) reconcile(ctx context.Context) error {
	err := s.handle(ctx)
	if errors.Is(err, errBehind) {
		return err
	}
	if err != nil && s.waiting.reason == "" {
		return err // the result of this pass is incomplete
	}
	if err := s.publishStatus(ctx); err != nil {
		return err
	}
	s.setMetrics()
	return errors.Join(err, s.deleteEndedJobs(ctx))
}

// handle handles a request or a slot, if there is one.
func (s *scope) handle(ctx context.Context) error {
	s.observeClock()
	if requested, err := s.handleRunNow(ctx); requested || err != nil {
		return err
	}
	if reported := s.notAccepted(); reported.reason != "" {
		id := reported.reason + " " + strconv.FormatInt(s.cfg.Generation, 10)
		if err := s.publish(ctx, id, corev1.EventTypeWarning, reported.reason, reported.message); err != nil || s.problem.reason != "" {
			return err
		}
	}
	s.observeSchedule()
	if changed := s.observeUpdates(); changed {
		return nil
	}
	return s.handleSlots(ctx)
}

// notAccepted returns the reason why the spec is not accepted; zero if it is.
func (s *scope) notAccepted() condition {
	if s.problem.reason != "" {
		return s.problem
	}
	return s.pools
}

// publish publishes an Event about the UpgradeConfig. If the API server rejects the Event, for
// example because the namespace is being deleted, the error is logged and the pass continues.
func (s *scope) publish(ctx context.Context, id, eventType, reason, message string) error {
	n := engine.Notification{ID: engine.NotificationID(string(s.cfg.UID), id, reason, ""), Type: eventType, Reason: reason, Message: message}
	return notify.TryPublish(ctx, s.Events, objects.Reference(s.cfg, maintenancev1beta1.GroupVersion.WithKind(kindName.Kind)), n)
}

// publishStatus writes the status if it has changed.
func (s *scope) publishStatus(ctx context.Context) error {
	s.status.ObservedGeneration = s.cfg.Generation
	if s.problem.reason != "" {
		s.status.NextPossibleSchedules = s.stillDue()
		s.setConditions(metav1.ConditionFalse, s.problem, metav1.ConditionFalse, s.problem)
	} else {
		s.status.NextPossibleSchedules = s.upcoming()
		accepted, why := metav1.ConditionTrue, condition{"Valid", "the schedule and the template are valid"}
		if s.pools.reason != "" {
			accepted, why = metav1.ConditionFalse, s.pools
		}
		status, scheduled := s.summarize()
		s.setConditions(accepted, why, status, scheduled)
	}
	if equality.Semantic.DeepEqual(s.cfg.Status, s.status) {
		return nil
	}
	updated := s.cfg.DeepCopy()
	updated.Status = s.status
	patch := client.MergeFromWithOptions(s.cfg, client.MergeFromWithOptimisticLock{})
	if err := s.client.Status().Patch(ctx, updated, patch); err != nil {
		return fmt.Errorf("writing the status of UpgradeConfig %s: %w", s.cfg.Name, err)
	}
	var replaced manager.Replaced
	replaced.Note(s.cfg, updated, s.now)
	s.replaced[client.ObjectKeyFromObject(s.cfg)] = replaced
	return nil
}

// setConditions sets the two conditions and removes all others.
func (s *scope) setConditions(accepted metav1.ConditionStatus, why condition, scheduled metav1.ConditionStatus, what condition) {
	var conditions []metav1.Condition
	for _, c := range s.status.Conditions {
		if c.Type == maintenancev1beta1.ConditionAccepted || c.Type == maintenancev1beta1.ConditionScheduled || readiness.IsOwn(c.Type) {
			conditions = append(conditions, c)
		}
	}
	set := func(name string, status metav1.ConditionStatus, c condition) {
		next := metav1.Condition{Type: name, Status: status, Reason: c.reason, Message: text.Truncate(c.message, maxMessage)}
		readiness.SetCondition(&conditions, next, s.cfg.Generation, s.now)
	}
	set(maintenancev1beta1.ConditionAccepted, accepted, why)
	set(maintenancev1beta1.ConditionScheduled, scheduled, what)
	readiness.Of(conditions[slices.IndexFunc(conditions, func(c metav1.Condition) bool { return c.Type == maintenancev1beta1.ConditionAccepted })], readiness.Stalled).
		Set(&conditions, s.cfg.Generation, s.now)
	s.status.Conditions = conditions
}

// upcoming returns the next starts, with what suspends each. A waiting start comes first, so it
// counts as published if the schedule changes before it has passed.
func (s *scope) upcoming() []maintenancev1beta1.NextPossibleSchedule {
	var all []maintenancev1beta1.NextPossibleSchedule
	base := s.now
	if s.waiting.reason != "" && !s.due.After(s.now) {
		base = s.due.Add(-time.Nanosecond)
	}
	for len(all) < published {
		start, found := s.nextOpen(base)
		if !found {
			break
		}
		by := s.suspendedBy(start)
		all = append(all, maintenancev1beta1.NextPossibleSchedule{Time: metav1.NewTime(start.UTC()), SuspendedBy: text.Truncate(by, maxSuspendedBy)})
		if s.onUpdate() && (by == "" || !s.usesCron()) {
			break // the version is served at that start
		}
		base = start
	}
	if len(all) > 0 {
		s.wakeAt(all[0].Time.Time)
	}
	return all
}

// stillDue returns the published start that is waiting. It stays published while the spec is
// invalid, so it is served once the spec is corrected.
func (s *scope) stillDue() []maintenancev1beta1.NextPossibleSchedule {
	handled := s.handledUntil()
	for _, p := range s.cfg.Status.NextPossibleSchedules {
		if p.Time.After(handled) && s.isDue(p.Time.Time) {
			return []maintenancev1beta1.NextPossibleSchedule{p}
		}
	}
	return nil
}

// isDue reports whether a start has come and an UpgradeJob may still be created for it.
func (s *scope) isDue(start time.Time) bool {
	return !start.After(s.now) && s.now.Before(start.Add(s.delay))
}

// nextUnsuspended returns the next start that nothing suspends.
func (s *scope) nextUnsuspended() (time.Time, bool) {
	if maintenance.IsSuspended(s.cfg) || s.problem.reason != "" {
		return time.Time{}, false
	}
	base := s.now
	for range len(s.windows) + 1 {
		start, found := s.nextOpen(base)
		if !found {
			return time.Time{}, false
		}
		by, suspended := s.window(start, s.slotKey(start))
		if !suspended {
			return start, true
		}
		base = by.End.Add(-time.Nanosecond)
	}
	return time.Time{}, false
}

// summarize returns the status, the reason, and the message of the condition Scheduled.
func (s *scope) summarize() (metav1.ConditionStatus, condition) {
	status, summary := s.summarizeNext()
	if last := s.status.LastSlot; last != nil && last.Time != nil && last.Result != ResultJobCreated && s.waiting.reason == "" {
		summary.message += fmt.Sprintf("; the start at %s had no UpgradeJob: %s: %s", text.FormatTime(last.Time.Time), last.Result, last.Message)
	}
	return status, summary
}

func (s *scope) summarizeNext() (metav1.ConditionStatus, condition) {
	if s.waiting.reason != "" {
		return metav1.ConditionFalse, s.waiting
	}
	upcoming := s.status.NextPossibleSchedules
	if len(upcoming) == 0 {
		return metav1.ConditionFalse, condition{ResultNoUpdate, s.noPending()}
	}
	next, found := s.nextUnsuspended()
	first := upcoming[0]
	switch {
	case !found:
		return metav1.ConditionFalse, condition{ResultSuspended, fmt.Sprintf("the start at %s is suspended by %s", text.FormatTime(first.Time.Time), first.SuspendedBy)}
	case first.SuspendedBy != "":
		return metav1.ConditionTrue, condition{"Scheduled", fmt.Sprintf("the next upgrade starts at %s; the start at %s is suspended by %s", text.FormatTime(next), text.FormatTime(first.Time.Time), first.SuspendedBy)}
	}
	return metav1.ConditionTrue, condition{"Scheduled", "the next upgrade starts at " + text.FormatTime(next)}
}

// noPending explains why the rhythm UpdateAvailable has no next start.
func (s *scope) noPending() string {
	switch {
	case s.newest.Release.Version != "":
		return fmt.Sprintf("waits for a version later than %s, which already has an UpgradeJob", text.Excerpt(s.status.LastScheduledVersion))
	case s.unknown != "":
		return "waits until the available updates are known: " + s.unknown
	}
	return "waits for an update: " + s.noUpdate()
}

// setMetrics sets the metrics to the state after the pass.
func (s *scope) setMetrics() {
	m := metrics.Schedule{Kind: kindName, Namespace: s.cfg.Namespace, Name: s.cfg.Name, Accepted: s.notAccepted().reason == ""}
	m.Next, _ = s.nextUnsuspended()
	if upcoming := s.status.NextPossibleSchedules; len(upcoming) > 0 {
		m.Suspended = upcoming[0].SuspendedBy != ""
	}
	if last := s.status.LastSlot; last != nil && last.Time != nil {
		m.LastSlot, m.LastResult = last.Time.Time, last.Result
	}
	s.Metrics.SetSchedule(m)
	if s.handled.slots > 0 {
		s.Metrics.AddSlots(kindName, s.cfg.Namespace, s.cfg.Name, s.handled.result, s.handled.slots)
	}
}
