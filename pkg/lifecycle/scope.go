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

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// scope is the state of one pass over one object.
//
// The order is: acquire the lock and set the finalizer, run the steps, publish the result, release the lock,
// remove the finalizer.
type scope[T client.Object] struct {
	*Reconciler[T]

	memory      *memory
	obj         T              // as it is stored
	record      history.Record // of the attempt of this pass
	request     AttemptRequest // of the spec
	runbookType string         // of the attempt
	plan        AttemptPlan
	upgradeAt   time.Time // of the attempt, or zero without a valid time
	held        bool      // whether the object had the lock at the start of the pass
	claimed     bool      // whether only the Lease proves that the attempt started
	hold        string    // why no attempt may commence on the cluster, or empty
	ended       bool      // whether the API server has rejected the status, so nothing more may be done
	maxRecords  int       // how many records fit into the status, or zero for the limit of the history
	holdErr     error     // error from reading the hold
	prechecked  condition // what would block an attempt without the lock, or zero if unknown
	recheckAt   time.Time // when the next pre-check is due
	obsolete    string    // why the attempt must be cleaned up although it may start, or empty
	now         time.Time
	log         logr.Logger

	continues  lock.Attempt // the note of a deleted object whose upgrade goes on, or zero
	continuing lock.Attempt // what the cached Lease noted about an earlier object at the start of the pass, or zero

	leaseVersion string // of the Lease before the steps ran, or empty

	lock *lock.Lock
}

func (r *Reconciler[T]) newScope(obj T, log logr.Logger) *scope[T] {
	s := &scope[T]{
		Reconciler: r, memory: r.memoryOf(obj), obj: obj, request: r.Kind.Request(obj), now: r.Clock.Now(), log: log,
		lock: r.lockOf(obj),
	}
	s.setAttempt(currentRecord(r.Kind.Status(obj), s.request, r.Kind.HistoryKey()), s.request.RunbookType)
	return s
}

// setAttempt sets the attempt of the pass.
func (s *scope[T]) setAttempt(record history.Record, runbookType string) {
	s.record, s.runbookType, s.upgradeAt = record, runbookType, s.request.At
	if record.Key() != "" && record.Key() != newRecord("", s.request.At).Key() { // the fraction of a second comes from the spec
		s.upgradeAt = record.UpgradeAt.Time
	}
	if s.request.Due && s.now.Before(s.upgradeAt) {
		s.upgradeAt = s.now
	}
	s.setPlan(s.record)
	switch {
	case record.Finished():
	case record.StartTime == nil: // whatever another client has written, no step has begun
		s.record.Conditions = nil
	default:
		s.record.Conditions = fitSteps(record.Conditions, s.plan.Book)
	}
}

// reconcile does what can be done now, and returns when the next pass is due, or zero for never.
func (s *scope[T]) reconcile(ctx context.Context) (time.Time, error) {
	if retry := s.rejectedUntil(); !retry.IsZero() {
		return retry, nil
	}
	if err := s.lock.ReleaseOrphaned(ctx, s.holder(s.obj)); err != nil {
		return time.Time{}, err
	}
	s.hold, s.holdErr = s.Kind.Hold(ctx)
	if err := s.recoverClaim(ctx); err != nil {
		return time.Time{}, err
	}
	if ended := s.unreleased(); ended != nil {
		s.setAttempt(*ended, s.request.RunbookType)
	}
	retry, err := s.publishFormer(ctx)
	if err != nil {
		return time.Time{}, err
	}
	next, err := s.advance(ctx)
	return engine.Earliest(next, retry), err
}

// advance does what can be done about the attempt now.
func (s *scope[T]) advance(ctx context.Context) (time.Time, error) {
	switch {
	case s.record.Finished():
		retry, err := s.showStatus(ctx, s.record, s.finishedSummary(ctx))
		if err != nil {
			return time.Time{}, err
		}
		next, err := s.finish(ctx)
		return engine.Earliest(retry, next), err
	case s.deleted():
		return s.cancel(ctx)
	case !s.record.InProgress() && s.obsolete == "":
		if status := s.pendingReason(ctx); status != nil {
			return s.reportPending(ctx, *status)
		}
	}
	return s.startOrResume(ctx)
}

// recoverClaim determines whether the Lease proves that an attempt started without a record: the status was
// lost, or replaced by another client. It queries the API server only if the cached Lease contradicts the
// finalizer or the record.
func (s *scope[T]) recoverClaim(ctx context.Context) error {
	if adopted, err := s.adoptContinuing(ctx); err != nil || adopted {
		return err
	}
	attempt, held, err := s.lock.Held(ctx, s.holder(s.obj))
	if err != nil {
		return err
	}
	recorded := s.record.InProgress() || s.record.Finished()
	if !s.record.InProgress() && held != s.hasFinalizer() || recorded && held && s.unrecorded(attempt) || held && s.isRequestLost(attempt) {
		if attempt, held, err = s.liveClaim(ctx, claim{attempt: attempt, held: held}); err != nil {
			return err
		}
	}
	s.held = held
	switch {
	case !held:
	case s.unrecorded(attempt):
		s.resumeClaim(attempt, recorded)
	case s.isInProgress(attempt):
		if attempt.Type != "" && attempt.Type != s.runbookType { // the record does not hold it
			s.setAttempt(s.record, attempt.Type)
		}
		s.recoverNotes(attempt)
	}
	if s.isObsolete() {
		s.obsolete = "the record of this attempt was lost, and the spec requests something else by now"
	}
	return nil
}

// isObsolete reports whether the spec requests another attempt than the started one. The API server rejects
// such a spec while there is a record, so the record was lost. An attempt that has commenced according to its
// record goes on, because the CRDs of earlier releases accept such a spec. An object with a record per attempt
// may request the next attempt at the same version while one is in progress.
func (s *scope[T]) isObsolete() bool {
	if s.record.CommenceTime != nil || !s.claimed && !s.record.InProgress() {
		return false
	}
	desired := newRecord(s.request.Version, s.request.At)
	return s.record.Version != desired.Version ||
		s.Kind.HistoryKey() == ByVersion && (s.record.Key() != desired.Key() || s.runbookType != s.request.RunbookType)
}

// resumeClaim resumes the attempt of the Lease. Recorded reports whether the record belongs to another attempt.
func (s *scope[T]) resumeClaim(attempt lock.Attempt, recorded bool) {
	s.claimed = true
	if attempt.Key != "" && (recorded || !attempt.Is(s.attempt(s.record))) {
		lost := lostRecord(attempt)
		byAttempt := s.Kind.HistoryKey() == ByAttempt
		if byAttempt {
			lost.Attempt = cmp.Or(attempt.Number, nextNumber(*s.Kind.Status(s.obj).History))
		}
		if (byAttempt || s.request.StartRequested) && lost.UpgradeAt != nil && lost.Key() != newRecord("", s.request.At).Key() { // only the status showed when a retry was requested
			s.request.At = lost.UpgradeAt.Time
		}
		s.setAttempt(lost, attempt.Type)
	}
	s.record = engine.ResumeAfter(s.plan.Book, s.record, s.plan.lockStep(), s.now)
	s.recoverNotes(attempt)
}

// setPlan sets the plan of the attempt. It depends on the record.
func (s *scope[T]) setPlan(record history.Record) {
	s.plan = s.Kind.Plan(s.obj, record, s.runbookType, s.lockStep)
}

// unrecorded reports whether the history shows the attempt of the Lease neither as in progress nor as finished.
// The Lease of an earlier release may belong to any attempt.
func (s *scope[T]) unrecorded(attempt lock.Attempt) bool {
	switch {
	case attempt.Key == "":
		return !s.record.InProgress() && !s.record.Finished()
	case s.isInProgress(attempt):
		return false
	}
	return !history.AttemptFinished(*s.Kind.Status(s.obj).History, attempt.Version, attempt.Key)
}

// isInProgress reports whether the attempt of the Lease is in progress according to the record.
func (s *scope[T]) isInProgress(attempt lock.Attempt) bool {
	return s.record.InProgress() && attempt.Version == s.record.Version && attempt.Key == s.record.Key()
}

// isRequestLost reports whether the Lease, but not the record, notes a request of the attempt in progress: the
// record was replaced, because save removes the note before the record of a withdrawn request.
func (s *scope[T]) isRequestLost(attempt lock.Attempt) bool {
	return attempt.Requested && s.record.RequestTime == nil && s.isInProgress(attempt)
}

// reportPending shows why the attempt has not started, or why it never will.
func (s *scope[T]) reportPending(ctx context.Context, status summary) (time.Time, error) {
	if status.finished {
		if err := errors.Join(s.confirm(ctx), s.confirmContinuing(ctx)); err != nil {
			return time.Time{}, err
		}
	}
	s.publishPrecheck(ctx) // an earlier process may have saved it without publishing it
	retry, err := s.showStatus(ctx, s.record, status)
	if err != nil {
		return time.Time{}, err
	}
	s.publishPrecheck(ctx)
	switch {
	case s.record.Finished():
		return s.finish(ctx)
	case s.claimed: // it may have started: the lock stays
		return engine.Earliest(retry, status.requeueAt()), nil
	}
	return engine.Earliest(retry, status.requeueAt()), s.release(ctx)
}

// confirm returns errStaleCache if the cache is behind the API server: an attempt must not end because of an
// earlier state of the cluster.
func (s *scope[T]) confirm(ctx context.Context) error {
	current, err := s.Kind.CacheIsCurrent(ctx)
	if err != nil {
		return err
	}
	if !current {
		return errStaleCache
	}
	return nil
}

// startOrResume starts or continues the attempt.
func (s *scope[T]) startOrResume(ctx context.Context) (time.Time, error) {
	if !s.plan.Known {
		return time.Time{}, s.updateStatus(ctx, s.record, *s.unknownTypeStatus())
	}
	if s.plan.lockStep() == "" || s.claimed || s.plan.holdsLock(s.record) {
		other, err := s.acquire(ctx)
		if err != nil {
			return time.Time{}, err
		}
		if other != nil {
			status := s.lockedStatus(other.String())
			next := status.nextTransition
			if !next.After(s.now) {
				next = time.Time{}
			}
			return next, s.updateStatus(ctx, s.record, *status)
		}
	}
	if err := s.confirmContinuing(ctx); err != nil {
		return time.Time{}, err
	}
	switch err := s.setFinalizer(ctx, true); {
	case manager.IsTooLarge(err):
		return time.Time{}, s.endInvalid(ctx, "finalizer", err)
	case err != nil:
		return time.Time{}, err
	}
	return s.runEngine(ctx)
}

// runEngine runs the steps that are ready.
func (s *scope[T]) runEngine(ctx context.Context) (time.Time, error) {
	s.publishSteps(ctx) // an earlier process may have saved them without publishing them
	start := s.observePreceding(ctx, s.record)
	s.prechecked, s.recheckAt = s.precheckWhileUnlocked(ctx)
	recorded := slices.Equal(start.Channels, s.record.Channels) && ptr.Equal(start.PrecedingChannel, s.record.PrecedingChannel)
	if s.record.InProgress() && !recorded { // recorded before the channel is set
		if err := s.updateStatus(ctx, start, s.summarize(start)); err != nil {
			return time.Time{}, err
		}
		if s.ended {
			return s.finish(ctx)
		}
	}
	var err error
	if s.leaseVersion, err = s.lock.ResourceVersion(ctx); err != nil {
		return time.Time{}, err
	}
	e := &engine.Engine{
		Clock: s.Clock, Save: s.save, Renew: s.renewRequest, OnTransition: s.onTransition,
		SavedAt: s.memory.saved, UnrequestedAt: s.memory.unrequested,
		Heartbeat: s.plan.Heartbeat, MessageInterval: s.plan.MessageInterval,
	}
	record, next, err := e.Pass(ctx, s.plan.Book, start, s.constraints())
	if s.record.Finished() { // the status was rejected
		return s.finish(ctx)
	}
	if err != nil {
		return time.Time{}, err
	}
	record.CompleteTime = s.record.CompleteTime // the engine does not maintain it
	retry, err := s.showStatus(ctx, record, s.summarize(record))
	if err != nil {
		return time.Time{}, err
	}
	if s.record.Finished() {
		return s.finish(ctx)
	}
	if s.plan.waitsForLock(s.record) {
		s.publishPrecheck(ctx)
	}
	next = engine.Earliest(next, retry)
	if !s.plan.holdsLock(s.record) && s.recheckAt.After(s.now) {
		next = engine.Earliest(next, s.recheckAt)
	}
	if s.now.Before(s.upgradeAt) && s.upgradeAt.Before(next) {
		next = s.upgradeAt
	}
	return next, nil
}

// constraints returns the window, the hold, and the cancellation of this pass. The steps before the lock are
// not held, but the step that acquires it is. An attempt that started before its window opens is held, because
// its record was forged.
func (s *scope[T]) constraints() engine.Constraints {
	c := engine.Constraints{NotBefore: s.upgradeAt, CommitBy: s.windowEnd()}
	holdsLock := s.plan.lockStep() == "" || s.plan.holdsLock(s.record)
	switch {
	case !holdsLock:
	case s.holdErr != nil: // fail closed
		c.Hold = "whether an upgrade may commence is unknown: " + s.holdErr.Error()
	case s.holdReason() != "":
		c.Hold = s.holdReason()
	case s.now.Before(s.upgradeAt) && s.startedBeforeWindow():
		c.Hold = "the window opens at " + text.FormatTime(s.upgradeAt)
	}
	switch {
	case s.deleted():
		c.Cancel = "the " + s.Kind.GroupVersionKind().Kind + " was deleted before the upgrade had commenced"
	case s.obsolete != "":
		c.Cancel = s.obsolete
	case s.request.Cancelled != "":
		c.Cancel = s.request.Cancelled
	case s.request.Withdrawn != "":
		c.Cancel = s.request.Withdrawn
	}
	return c
}

// holdReason explains why the attempt must not commence now, or returns an empty string.
func (s *scope[T]) holdReason() string {
	if s.hold != "" {
		return s.hold
	}
	return s.request.Paused
}

// errStatusRejected reports that the attempt has ended because the API server rejects its status.
var errStatusRejected = errors.New("the API server rejects the status")

// save stores the record for the engine.
func (s *scope[T]) save(ctx context.Context, record history.Record) error {
	record = s.observePreceding(ctx, record)
	if (record.RequestTime == nil) != (s.record.RequestTime == nil) {
		if record.RequestTime == nil {
			s.memory.unrequested = s.Clock.Now()
		}
		if err := s.noteRequest(ctx, record.RequestTime); err != nil {
			return err
		}
	}
	s.setPlan(record) // the status shows the deadlines of what is saved
	if err := s.updateStatus(ctx, record, s.summarize(record)); err != nil {
		return err
	}
	if s.ended {
		return errStatusRejected
	}
	s.memory.saved = s.Clock.Now()
	s.publishSteps(ctx)
	return nil
}

// observePreceding records the installed version, the channel, and the requested channels until the upgrade
// commences. If they cannot be read, the record stays.
func (s *scope[T]) observePreceding(ctx context.Context, record history.Record) history.Record {
	if record.CommenceTime != nil || s.plan.lockStep() != "" && !s.plan.holdsLock(record) {
		return record
	}
	seen, err := s.plan.observe(ctx, record)
	if err != nil {
		return record
	}
	if seen.Version != "" && seen.Version != record.Version {
		record.PrecedingVersion = seen.Version
	}
	if seen.Channel != nil {
		record.PrecedingChannel = seen.Channel
	}
	record.Channels = addChannel(record.Channels, seen.RequestedChannel)
	return record
}

// finish ends an attempt: it publishes the result, releases the lock, and removes the finalizer. The lock waits
// for the publication for at most publishTimeout. An undelivered result is published from the record later, by
// any process. finish returns when.
func (s *scope[T]) finish(ctx context.Context) (time.Time, error) {
	pending := isResultPending(s.record, s.now)
	if !pending && (!s.hasFinalizer() || s.record.StartTime == nil) {
		return time.Time{}, s.release(ctx)
	}
	if retry := s.retryAt(s.memory.republished); pending && !s.endedWithin(publishTimeout) && !retry.IsZero() {
		return retry, s.releaseLock(ctx)
	}
	err := s.publishResult(ctx)
	if err == nil {
		if pending {
			if err := s.recordDelivery(ctx, true); err != nil {
				return time.Time{}, err
			}
		}
		return time.Time{}, s.release(ctx)
	}
	if !pending && s.endedWithin(republishTimeout) { // whatever is requested now, or should the process end
		if err := s.recordDelivery(ctx, false); err != nil {
			return time.Time{}, err
		}
	}
	if s.endedWithin(publishTimeout) {
		return s.publishUntil(s.record.CompleteTime.Add(publishTimeout), err)
	}
	s.log.Error(err, "publishing the result, will be retried")
	s.memory.republished = s.now
	return s.now.Add(maxRequeue), s.releaseLock(ctx)
}

// release releases the lock, removes the finalizer, and forgets what was published.
func (s *scope[T]) release(ctx context.Context) error {
	if s.hasFinalizer() {
		s.Notifier.Reset(string(s.obj.GetUID()))
	}
	return s.releaseLock(ctx)
}

// releaseLock releases the lock and removes the finalizer. Before that, it abandons an attempt that would
// otherwise be forgotten. If the object has the finalizer, it may hold the lock although the cache does not
// show that.
func (s *scope[T]) releaseLock(ctx context.Context) error {
	if !s.hasFinalizer() {
		return s.lock.Release(ctx, s.holder(s.obj), s.continues)
	}
	if s.isForgotten() {
		if err := s.abandonInTime(ctx); err != nil {
			return err
		}
	}
	if err := s.lock.ReleaseConfirmed(ctx, s.holder(s.obj), s.continues); err != nil {
		return err
	}
	return client.IgnoreNotFound(s.setFinalizer(ctx, false))
}

// setFinalizer adds or removes the finalizer. It reads the object from the API server, because the patch
// replaces the list of finalizers, and the cache lacks those of other clients.
func (s *scope[T]) setFinalizer(ctx context.Context, want bool) error {
	if s.hasFinalizer() == want || want && s.deleted() {
		return nil
	}
	before := s.Kind.New()
	if err := s.Live.Get(ctx, client.ObjectKeyFromObject(s.obj), before); err != nil {
		return fmt.Errorf("reading the finalizers: %w", err)
	}
	if before.GetResourceVersion() != s.obj.GetResourceVersion() {
		return errStaleCache
	}
	after, _ := before.DeepCopyObject().(T) // a copy has the type of its original
	if want {
		controllerutil.AddFinalizer(after, s.Kind.Finalizer())
	} else {
		controllerutil.RemoveFinalizer(after, s.Kind.Finalizer())
		if releaser, ok := s.Kind.(Releaser[T]); ok {
			if err := releaser.Release(ctx, after); err != nil {
				return err
			}
		}
	}
	if err := s.store.patch(ctx, before, after); err != nil {
		return fmt.Errorf("changing the finalizers: %w", err)
	}
	s.obj = after
	return nil
}

func (s *scope[T]) copy() T {
	obj, _ := s.obj.DeepCopyObject().(T) // a copy has the type of its original
	return obj
}

func (s *scope[T]) hasFinalizer() bool {
	return controllerutil.ContainsFinalizer(s.obj, s.Kind.Finalizer())
}

func (s *scope[T]) deleted() bool { return !s.obj.GetDeletionTimestamp().IsZero() }

// windowEnd returns the time by which the attempt must have commenced, or zero if there is no limit.
func (s *scope[T]) windowEnd() time.Time {
	if s.upgradeAt.IsZero() || s.plan.Window < 0 {
		return time.Time{}
	}
	return s.upgradeAt.Add(s.plan.Window)
}

// untilWindowEnd formats the end of the window for messages. It returns an empty string if there is none.
func (s *scope[T]) untilWindowEnd(format string) string {
	end := s.windowEnd()
	if end.IsZero() {
		return ""
	}
	return fmt.Sprintf(format, text.FormatTime(end))
}

// noteRequest notes in the Lease that the update is about to be requested, or that the request was withdrawn.
// The time is nil if it was withdrawn. If the record is lost or replaced, only the Lease shows who made a request. The
// API server confirms the note.
//
// A note is removed only if the Lease is the same as before the fence of this pass: another process may have
// noted a request since, and the fence does not make that conflict.
func (s *scope[T]) noteRequest(ctx context.Context, at *metav1.Time) error {
	record := s.observePreceding(ctx, s.record)
	record.RequestTime = at
	if at == nil {
		return noted(s.lock.Replace(ctx, s.leaseVersion, s.holder(s.obj), s.attempt(record)))
	}
	return noted(s.lock.AcquireConfirmed(ctx, s.holder(s.obj), s.attempt(record)))
}

// renewRequest repeats the note, with the image, right before the update is requested.
func (s *scope[T]) renewRequest(ctx context.Context, image *string) error {
	attempt := s.attempt(s.observePreceding(ctx, s.record))
	attempt.Requested, attempt.Image = true, noteOfImage(image)
	return noted(s.lock.Renew(ctx, s.holder(s.obj), attempt))
}

func noted(other *lock.Holder, err error) error {
	if err == nil && other != nil {
		err = fmt.Errorf("noting the request in the lock: %s has acquired it", other)
	}
	return err
}
