// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/readiness"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// The reasons in the summary of an attempt, apart from the reasons of its steps.
const (
	reasonScheduled     = "Scheduled"
	reasonPaused        = "Paused"
	reasonHeld          = "Held"
	reasonWindowMissed  = "WindowMissed"
	reasonCannotObserve = "CannotObserve"
	reasonUnknownType   = "UnknownType"
	reasonInvalidTime   = "InvalidTime"
	reasonValid         = "Valid"
	reasonUpgraded      = "Upgraded"
	reasonOnTime        = "OnTime"
	reasonNothingFound  = "NothingFound"
	reasonNotConfigured = "NotConfigured" // of a step with nothing to do
	reasonStatusInvalid = "StatusInvalid"
	reasonNotPaused     = "NotPaused"

	reasonConfigurationInvalid = "ConfigurationInvalid"
)

// ReasonClusterLocked is the reason of an upgrade that waits for the lock of the cluster.
const ReasonClusterLocked = "ClusterLocked"

// condition is a condition without its times. It is absent if its status is empty.
type condition struct {
	status          metav1.ConditionStatus
	reason, message string
}

// outcome is why an attempt has not started yet, or how it ended.
type outcome struct{ reason, message string }

// valid is the condition Accepted of an attempt that can run.
var valid = condition{metav1.ConditionTrue, reasonValid, "the version and the type are valid"}

// summary holds the parts of an attempt that its status shows.
type summary struct {
	phase          history.Phase
	accepted       condition
	progressing    condition
	succeeded      condition
	slow           condition
	paused         condition
	precheck       condition
	outcome        outcome
	nextTransition time.Time // when the attempt changes by itself, or zero
	recheckAt      time.Time // when an earlier pass is due, or zero
	finished       bool
	early          bool // whether the time of the attempt has not come
	held           bool // whether it waits for a person or a time of the spec
}

// requeueAt returns when the next pass is due.
func (s summary) requeueAt() time.Time {
	if !s.recheckAt.IsZero() && (s.nextTransition.IsZero() || s.recheckAt.Before(s.nextTransition)) {
		return s.recheckAt
	}
	return s.nextTransition
}

// summarize returns the summary of an attempt that has started.
func (s *scope[T]) summarize(record history.Record) summary {
	e := engine.Summarize(s.plan.Book, record, s.Clock.Now(), s.constraints())
	result := summary{
		phase:          history.PhaseUpgrading,
		accepted:       condition{metav1.ConditionTrue, reasonValid, "the version and the type are valid, and no other upgrade is in progress"},
		slow:           condition{metav1.ConditionFalse, reasonOnTime, "no step is slow"},
		nextTransition: e.Deadline,
		finished:       e.Finished(),
	}
	if len(s.plan.Book.PauseReasons) > 0 {
		result.paused = condition{metav1.ConditionFalse, reasonNotPaused, "the upgrade is not paused"}
	}
	switch e.Outcome {
	case "":
		s.summarizeOpen(&result, record, e)
	case engine.OutcomeUpgraded:
		result.phase = history.PhaseUpgraded
		if result.outcome = upgradedOutcome(record); s.plan.Book.CommitStep() == nil {
			result.outcome.message = "all steps of the runbook are done"
		}
		result.progressing = condition{metav1.ConditionFalse, result.outcome.reason, result.outcome.message}
		result.succeeded = condition{metav1.ConditionTrue, result.outcome.reason, result.outcome.message}
	case engine.OutcomeFailed, engine.OutcomeCancelled, engine.OutcomeSkipped:
		s.summarizeFailure(&result, e)
	}
	if c := e.Current; c != nil {
		s.summarizeStep(&result, e, *c)
	}
	return result
}

// upgradedOutcome returns the outcome of an attempt that has succeeded.
func upgradedOutcome(record history.Record) outcome {
	if record.Version == "" {
		return outcome{engine.ReasonNoUpdate, "there was no version to upgrade to; the hooks have run"}
	}
	switch record.PrecedingVersion {
	case "", record.Version: // it was lost, or recorded after the update had begun
		return outcome{reasonUpgraded, "upgraded to " + record.Version}
	}
	return outcome{reasonUpgraded, "upgraded from " + record.PrecedingVersion + " to " + record.Version}
}

// summarizeOpen summarizes an attempt that waits for the lock, or a paused one.
func (s *scope[T]) summarizeOpen(result *summary, record history.Record, e engine.Summary) {
	switch {
	case s.plan.waitsForLock(record):
		result.phase, result.accepted, result.precheck = history.PhasePending, valid, s.prechecked
		if s.plan.InvalidReason != "" {
			result.accepted = condition{metav1.ConditionFalse, sanitizeReason(s.plan.InvalidReason), s.plan.InvalidMessage}
		}
		if result.early = s.now.Before(s.upgradeAt); result.early {
			result.phase = s.waitingPhase(s.prechecked)
			result.nextTransition = engine.Earliest(s.upgradeAt, result.nextTransition)
		}
	case e.Paused:
		result.phase = history.PhasePaused
		result.paused = condition{metav1.ConditionTrue, sanitizeReason(e.Current.Reason), e.Current.Message}
	}
}

// summarizeFailure shows the step that failed, and why.
func (s *scope[T]) summarizeFailure(result *summary, e engine.Summary) {
	cause := e.Failure.Type + ": " + e.Failure.Message
	reason := sanitizeReason(e.Failure.Reason)
	result.phase = history.PhaseFailed
	if e.Outcome == engine.OutcomeSkipped {
		result.phase = history.PhaseSkipped
	}
	result.outcome = outcome{reason, cause}
	result.progressing = condition{metav1.ConditionFalse, sanitizeReason(e.Failure.Type), endedAs(result.phase) + ": " + cause}
	result.succeeded = condition{metav1.ConditionFalse, reason, cause}
	if e.Finished() { // until then, the API server rejects another time
		result.progressing.message, result.succeeded.message = s.withRetry(result.progressing.message), s.withRetry(cause)
	}
}

// endedAs describes an attempt that ended without success.
func endedAs(phase history.Phase) string {
	if phase == history.PhaseSkipped {
		return "skipped"
	}
	return "failed"
}

// summarizeStep shows the current step: what it waits for, until when, and whether it is slow.
func (s *scope[T]) summarizeStep(result *summary, e engine.Summary, c history.StepCondition) {
	message := c.Message
	if result.precheck.status == metav1.ConditionFalse {
		message = joinPreCheck(result.precheck, message)
	}
	if !e.Deadline.IsZero() {
		message += " (until " + text.FormatTime(e.Deadline) + ")"
	}
	if e.Committed && s.holdReason() != "" {
		message += " (" + s.holdReason() + ": no effect once the upgrade has commenced)"
	}
	if e.Slow {
		since := "started at " + text.FormatTime(c.StartTime.Time)
		if c.ProgressTime != nil {
			since = "has made no progress since " + text.FormatTime(c.ProgressTime.Time)
		}
		slow := fmt.Sprintf("%s %s and is slow: %s", c.Type, since, c.Message)
		result.slow = condition{metav1.ConditionTrue, sanitizeReason(c.Type), slow}
		message = "slow since " + text.FormatTime(e.SlowAt) + ": " + message
	}
	if e.Failure != nil {
		message = endedAs(result.phase) + ": " + e.Failure.Type + ": " + e.Failure.Message + "; cleaning up: " + message
	}
	result.progressing = condition{metav1.ConditionTrue, sanitizeReason(c.Type), message}
	result.held = e.Failure == nil && (e.Paused || c.Status == metav1.ConditionFalse && (c.Reason == engine.ReasonPaused || c.Reason == reasonHeld))
	if c.Status == metav1.ConditionUnknown {
		result.progressing = condition{metav1.ConditionUnknown, reasonCannotObserve, c.Type + ": " + message}
		if result.phase == history.PhaseUpgrading || result.phase == history.PhasePending || result.phase == history.PhaseNew {
			result.phase = history.PhaseUnknown
		}
	}
}

// finishedSummary returns the summary of a finished attempt, based on its record. Only Accepted depends on the
// cluster.
func (s *scope[T]) finishedSummary(ctx context.Context) summary {
	record := s.record
	done := s.recordedOutcome(record)
	result := summary{phase: record.Phase, finished: true, outcome: done, accepted: s.acceptedAfter(ctx)}
	if record.StartTime != nil {
		result.slow = condition{metav1.ConditionFalse, reasonOnTime, "no step is slow"}
	}
	status, message := metav1.ConditionTrue, done.message
	step := done.reason
	ended := record.Phase == history.PhaseFailed || record.Phase == history.PhaseSkipped
	if ended {
		status, message = metav1.ConditionFalse, s.withRetry(message)
		if failed := failedStep(record); failed != "" {
			step = sanitizeReason(failed)
		}
	}
	result.succeeded = condition{status, done.reason, message}
	if ended && record.StartTime != nil {
		message = endedAs(record.Phase) + ": " + message
	}
	if result.accepted.status == metav1.ConditionFalse && record.Phase == history.PhaseUpgraded {
		message += "; " + result.accepted.message
	}
	result.progressing = condition{metav1.ConditionFalse, step, message}
	return result
}

// recordedOutcome returns how a finished attempt ended. Earlier releases recorded only the steps.
func (s *scope[T]) recordedOutcome(record history.Record) outcome {
	if record.Reason != "" {
		return outcome{sanitizeReason(record.Reason), record.Message}
	}
	if record.Phase == history.PhaseUpgraded {
		return upgradedOutcome(record)
	}
	name := failedStep(record)
	for _, c := range record.Conditions {
		if c.Type == name {
			return outcome{sanitizeReason(c.Reason), c.Type + ": " + c.Message}
		}
	}
	return outcome{"StepFailed", s.describe() + " failed; its record does not show why"}
}

// acceptedAfter returns the condition Accepted of a finished attempt. It changes only with the spec: later
// changes of the cluster do not make an old spec invalid.
func (s *scope[T]) acceptedAfter(ctx context.Context) condition {
	status := s.Kind.Status(s.obj)
	old := meta.FindStatusCondition(*status.Conditions, history.ConditionAccepted)
	if old != nil && (s.deleted() || old.ObservedGeneration == s.obj.GetGeneration()) {
		return condition{old.Status, old.Reason, old.Message}
	}
	if !s.plan.Known {
		return condition{metav1.ConditionFalse, reasonUnknownType, s.plan.Unknown}
	}
	seen, err := s.plan.observe(ctx, s.record)
	closed, admissionErr := s.plan.Book.Admitted(ctx, s.Clock, engine.Run{Now: s.now})
	switch {
	case err != nil, admissionErr != nil:
		return condition{metav1.ConditionUnknown, reasonCannotObserve, "the cluster cannot be read"}
	case closed.Failed() && closed.Reason() != engine.ReasonAlreadyAtVersion:
		return condition{metav1.ConditionFalse, sanitizeReason(closed.Reason()), closed.Message()}
	case s.record.Phase == history.PhaseUpgraded && seen.Version != "" && seen.Version != s.record.Version:
		return condition{
			metav1.ConditionFalse, "AlreadyUpgraded",
			fmt.Sprintf("%s was reached before and %s is installed now; to upgrade again, delete and create the %s",
				s.record.Version, seen.Version, s.Kind.GroupVersionKind().Kind),
		}
	}
	return valid
}

// updateStatus writes the status if it has changed. Afterwards, s.record is the stored record. If the object is
// too large, updateStatus drops the replaced records, and then the older half of the others, until it fits. A
// status that the API server still rejects ends the attempt.
func (s *scope[T]) updateStatus(ctx context.Context, record history.Record, status summary) error {
	s.publishStatus(ctx) // an earlier process may have saved it without publishing it
	err := s.writeStatus(ctx, record, status)
	for keep := len(s.Kind.Status(s.obj).records()) / 2; keep > 0 && manager.IsTooLarge(err); keep /= 2 {
		s.maxRecords = keep
		err = s.writeStatus(ctx, record, status)
	}
	switch {
	case apierrors.IsInvalid(err) || manager.IsTooLarge(err):
		return s.endInvalid(ctx, "status", err)
	case err != nil:
		return err
	}
	s.publishStatus(ctx)
	return nil
}

// contestInterval is the shortest interval between two writes of a status that another process has replaced.
const contestInterval = time.Minute

// shownStatus is the status of an attempt as this process last wrote it.
type shownStatus struct {
	generation int64
	attempt    string
	phase      history.Phase
	conditions [7]condition
	readiness  readiness.Verdict
	at         time.Time
}

// showStatus updates a status after at most its summary has changed. If it does not write the status now, it
// returns when to try again: two processes that disagree, because of their caches or their checks, must not
// overwrite each other all the time.
func (s *scope[T]) showStatus(ctx context.Context, record history.Record, sum summary) (time.Time, error) {
	want := shownStatus{
		s.obj.GetGeneration(), s.record.Version + " " + s.record.Key(), sum.phase,
		[...]condition{sum.accepted, sum.progressing, sum.succeeded, sum.slow, sum.paused, sum.precheck, s.degraded()},
		sum.readiness(),
		time.Time{},
	}
	last := s.memory.shown
	want.at = last.at
	retry := last.at.Add(contestInterval)
	stored := meta.FindStatusCondition(*s.Kind.Status(s.obj).Conditions, history.ConditionProgressing)
	if last == want && s.now.Before(retry) && !s.now.Before(last.at) && stored != nil && stored.ObservedGeneration == s.obj.GetGeneration() &&
		!equality.Semantic.DeepEqual(s.obj, s.withStatus(record, sum)) {
		return retry, nil
	}
	before := s.obj.GetResourceVersion()
	err := s.updateStatus(ctx, record, sum)
	if err == nil && s.obj.GetResourceVersion() != before {
		want.at = s.now
		s.memory.shown = want
	}
	return time.Time{}, err
}

// withStatus returns the object with that status.
func (s *scope[T]) withStatus(record history.Record, sum summary) T {
	record.NotifiedTime = s.record.NotifiedTime // unknown to the engine
	after := s.copy()
	s.buildStatus(s.Kind.Status(after), record, sum)
	if kind, ok := s.Kind.(StatusCompleter[T]); ok {
		built := slices.Clone(*s.Kind.Status(after).Conditions)
		kind.CompleteStatus(after)
		keepTransitions(*s.Kind.Status(s.obj).Conditions, built, *s.Kind.Status(after).Conditions)
	}
	return after
}

// keepTransitions sets the time of each condition whose status, or reason if it is Progressing, was changed, in built, and
// then changed back to what it was before.
func keepTransitions(before, built, after []metav1.Condition) {
	for i := range after {
		c := &after[i]
		old, between := meta.FindStatusCondition(before, c.Type), meta.FindStatusCondition(built, c.Type)
		changed := between == nil || between.Status != c.Status || between.Reason != c.Reason
		if old != nil && changed && isSameTransition(old, c) {
			c.LastTransitionTime = old.LastTransitionTime
		}
	}
}

// isSameTransition reports whether a condition keeps the time of its last transition: its status must be the same and,
// for Progressing, whose reason is the step, also its reason.
func isSameTransition(old, c *metav1.Condition) bool {
	return old.Status == c.Status && (c.Type != history.ConditionProgressing || old.Reason == c.Reason)
}

func (s *scope[T]) writeStatus(ctx context.Context, record history.Record, status summary) error {
	after := s.withStatus(record, status)
	if !equality.Semantic.DeepEqual(s.obj, after) {
		newest := &(*s.Kind.Status(after).History)[0]
		switch {
		case s.record.Finished(): // recordDelivery changes it
		case newest.Finished() && newest.StartTime == nil: // no finalizer shows that it is not published yet
			newest.NotifiedTime = undelivered(*newest)
		default:
			slowness := s.slowness(*s.Kind.Status(after).Conditions, *newest)
			newest.NotifiedTime = new(s.Notifier.NotifiedTime(s.objectReference(), *newest, slowness...))
		}
		if err := s.store.patchStatus(ctx, s.obj, after); err != nil {
			return fmt.Errorf("saving the status: %w", err)
		}
		s.rejected.delete(client.ObjectKeyFromObject(s.obj))
	}
	stored := *(*s.Kind.Status(after).History)[0].DeepCopy()
	s.observeEnd(stored)
	s.obj, s.record = after, stored
	return nil
}

// observeEnd counts an attempt that has succeeded or failed, once.
func (s *scope[T]) observeEnd(stored history.Record) {
	if stored.Phase == s.record.Phase || stored.Phase != history.PhaseFailed && stored.Phase != history.PhaseUpgraded && stored.Phase != history.PhaseSkipped {
		return
	}
	var took time.Duration
	if stored.StartTime != nil {
		began := stored.StartTime.Time
		if s.plan.lockStep() != "" && s.upgradeAt.After(began) { // it has only waited until then
			began = s.upgradeAt
		}
		took = s.Clock.Now().Sub(began)
	}
	s.Metrics.ObserveEnd(s.Kind.GroupVersionKind().GroupKind(), s.plan.Type, stored.Phase, stored.Reason, took)
}

// endInvalid ends an attempt whose status or finalizer the API server would reject again, or it would hold the
// lock forever. It withdraws the request of the attempt, because nothing would watch the update. This pass has
// written the entire status that the error is about.
func (s *scope[T]) endInvalid(ctx context.Context, rejected string, cause error) error {
	if err := errors.Join(s.plan.Book.Withdraw(ctx, engine.WithdrawalOf(s.record, s.Clock.Now())), s.abandon(ctx)); err != nil {
		return err
	}
	s.ended = true
	minimal := newRecord(s.record.Version, s.upgradeAt)
	minimal.Attempt = max(1, s.record.Attempt)
	minimal.StartTime, minimal.CompleteTime = clampTime(s.record.StartTime), toMetaTime(s.Clock.Now())
	status := s.pendingStatus("", "", time.Time{})
	s.fail(status, reasonStatusInvalid, fmt.Sprintf("the API server rejected the %s, so the upgrade is no longer managed: %v", rejected, cause))
	s.maxRecords, *s.Kind.Status(s.obj).History = 1, nil
	if err := s.writeStatus(ctx, minimal, *status); err != nil {
		s.rejected.set(client.ObjectKeyFromObject(s.obj), rejection{s.obj.GetUID(), s.obj.GetGeneration(), s.Clock.Now()})
		return errors.Join(err, s.release(ctx))
	}
	return nil
}

// rejection is an object whose status the API server always rejects.
type rejection struct {
	uid        types.UID
	generation int64
	at         time.Time
}

// rejectedUntil returns when to try again to write a rejected status, or zero for now. Until then, the object
// neither holds the lock nor does anything.
func (s *scope[T]) rejectedUntil() time.Time {
	if !s.isRejected(s.obj) || s.deleted() {
		return time.Time{}
	}
	return s.retryAt(s.rejected.get(client.ObjectKeyFromObject(s.obj)).at)
}

// isRejected reports whether the API server has rejected every status of this object so far.
func (r *Reconciler[T]) isRejected(obj T) bool {
	last := r.rejected.get(client.ObjectKeyFromObject(obj))
	return last.uid == obj.GetUID() && last.generation == obj.GetGeneration()
}

// buildStatus writes the record and its summary into a status.
func (s *scope[T]) buildStatus(status Status, record history.Record, sum summary) {
	now := s.Clock.Now()
	*status.ObservedGeneration = s.obj.GetGeneration()
	*status.NextTime = nil
	if !sum.nextTransition.IsZero() {
		*status.NextTime = clampTime(toMetaTime(sum.nextTransition))
	}
	s.completeRecord(&record, sum, now)
	former := status.records()
	*status.History = sanitizeHistory(upsertRecord(*status.History, former, record, s.Kind.HistoryKey(), cmp.Or(s.maxRecords, s.Kind.HistoryKey().Limit())))
	if status.Replaced != nil {
		*status.Replaced = nil
		if s.maxRecords == 0 {
			*status.Replaced = sanitizeHistory(replacedRecords(*status.History, former, now))
		}
	}

	*status.Conditions = readiness.WithSlow(ownConditions(*status.Conditions, status.KindConditions))
	for _, c := range []struct {
		name string
		condition
	}{
		{history.ConditionAccepted, sum.accepted},
		{history.ConditionProgressing, sum.progressing},
		{history.ConditionSucceeded, sum.succeeded},
		{history.ConditionSlow, sum.slow},
		{history.ConditionPaused, sum.paused},
		{history.ConditionPreCheckPassed, sum.precheck},
		{history.ConditionDegraded, s.degraded()},
	} {
		setCondition(status.Conditions, c.name, c.condition, s.obj.GetGeneration(), now)
	}
	sum.readiness().Set(status.Conditions, s.obj.GetGeneration(), now)
}

// completeRecord adds to the record what the engine does not maintain.
func (s *scope[T]) completeRecord(record *history.Record, sum summary, now time.Time) {
	if record.CompleteTime == nil || record.Reason == "" {
		record.Reason, record.Message = sum.outcome.reason, text.Truncate(sum.outcome.message, maxRecordMessage)
	}
	record.Phase = sum.phase
	if sum.finished && record.CompleteTime == nil {
		record.CompleteTime = toMetaTime(now)
	}
	for _, c := range record.Conditions {
		switch {
		case c.Milestone == engine.MilestoneWorkersUpgraded:
			record.WorkerStartTime, record.WorkerCompleteTime = c.StartTime, c.CompleteTime
		case record.CommenceTime == nil && c.CompleteTime != nil && c.Type == s.commitStep() && s.isCommitted(*record):
			record.CommenceTime = c.CompleteTime
		}
	}
}

// commitStep returns the name of the step that commits; empty if the runbook is unknown.
func (s *scope[T]) commitStep() string {
	if commit := s.plan.Book.CommitStep(); commit != nil {
		return commit.Name
	}
	return ""
}

// isCommitted reports whether the record holds that the point of no return is passed.
func (s *scope[T]) isCommitted(record history.Record) bool {
	return engine.Summarize(s.plan.Book, record, s.now, engine.Constraints{}).Committed
}

// isPastCommit reports whether a hold can no longer have an effect: the upgrade has commenced, or there was nothing to
// commence.
func (s *scope[T]) isPastCommit() bool {
	return s.record.CommenceTime != nil || s.plan.Book.IsPast(s.record, s.commitStep())
}

// failure returns the step that aborted the attempt, or nil.
func (s *scope[T]) failure() *history.StepCondition {
	return engine.Summarize(s.plan.Book, s.record, s.now, s.constraints()).Failure
}

// outcome returns the outcome of the attempt, or an empty one.
func (s *scope[T]) outcome() engine.Outcome {
	return engine.Summarize(s.plan.Book, s.record, s.now, s.constraints()).Outcome
}

// describe returns the attempt for messages.
func (s *scope[T]) describe() string {
	if s.record.Version == "" {
		return "the upgrade"
	}
	return "the upgrade to " + s.record.Version
}

// degraded returns the condition that shows that the operator uses another configuration than the
// current one.
func (s *scope[T]) degraded() condition {
	if s.plan.ConfigError == "" {
		return condition{}
	}
	return condition{metav1.ConditionTrue, reasonConfigurationInvalid, "the operator configuration is invalid; using the last valid one: " + s.plan.ConfigError}
}

// setCondition sets or removes a condition.
func setCondition(all *[]metav1.Condition, name string, c condition, generation int64, now time.Time) {
	set := metav1.Condition{Type: name, Status: c.status, Reason: c.reason, Message: c.message}
	if old := meta.FindStatusCondition(*all, name); old != nil && !isSameTransition(old, &set) {
		old.LastTransitionTime = metav1.Time{} // to replace it
	}
	readiness.SetCondition(all, set, generation, now)
}

// sanitizeReason returns a reason that a condition may have.
func sanitizeReason(reason string) string { return readiness.Reason(reason, "StepFailed") }

func toMetaTime(t time.Time) *metav1.Time {
	at := metav1.NewTime(t.Truncate(time.Second))
	return &at
}
