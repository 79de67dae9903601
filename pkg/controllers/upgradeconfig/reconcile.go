// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
)

// scope is one look at one UpgradeConfig.
//
// A life goes so: before the first step the lock is taken and the finalizer
// set; then the engine takes the steps; after the last one its end is told,
// the lock released and the finalizer removed. So the finalizer is there
// exactly while an attempt is under way, also if its record was lost.
type scope struct {
	*Reconciler

	snapshot    Snapshot
	cfg         *v1alpha1.UpgradeConfig // as it is kept
	record      history.Record          // of the attempt that is looked at
	upgrader    ClusterUpgrader         // nil if the type is unknown
	book        engine.Runbook
	constraints engine.Constraints
	upgradeAt   time.Time // zero if it cannot be read
	now         time.Time
	log         logr.Logger
}

func (r *Reconciler) newScope(cfg *v1alpha1.UpgradeConfig, log logr.Logger) *scope {
	s := &scope{Reconciler: r, snapshot: r.Config(), cfg: cfg, now: r.Clock.Now(), log: log}
	s.upgrader = s.snapshot.Upgraders[cfg.Spec.Type]
	s.upgradeAt, _ = time.Parse(time.RFC3339, cfg.Spec.UpgradeAt) // zero is dealt with where it matters
	s.record = currentAttempt(cfg, s.upgradeAt)
	if inProgress(s.record) && s.record.UpgradeAt != nil {
		s.upgradeAt = s.record.UpgradeAt.Time
	}
	if s.upgrader != nil {
		s.book = s.upgrader.Runbook(s.attemptConfig())
		s.constraints.CommitBy = s.windowEnd()
		if s.paused() {
			s.constraints.Hold = "spec.paused holds the upgrade"
		}
		if s.deleted() {
			s.constraints.Cancel = "the UpgradeConfig was deleted before the upgrade had commenced"
		}
	}
	return s
}

// attemptConfig is the UpgradeConfig for which the runbook is made: that of the attempt.
func (s *scope) attemptConfig() *v1alpha1.UpgradeConfig {
	cfg := s.cfg.DeepCopy()
	cfg.Spec.Desired.Version = s.record.Version
	cfg.Status.History = upsertAttempt(cfg.Status.History, s.record)
	return cfg
}

// reconcile does what can be done now, and returns when to look again (zero: never).
func (s *scope) reconcile(ctx context.Context) (time.Time, error) {
	switch {
	case isFinished(s.record):
		if err := s.finish(ctx); err != nil {
			return time.Time{}, err
		}
		return time.Time{}, s.observeSpecChange(ctx)
	case s.deleted():
		return s.cancel(ctx)
	case !inProgress(s.record):
		if status := s.pendingReason(ctx); status != nil {
			return status.requeueAt(), s.reportPending(ctx, *status)
		}
	}
	return s.startOrResume(ctx)
}

// reportPending shows why the upgrade has not begun, or that it never will.
func (s *scope) reportPending(ctx context.Context, status summary) error {
	s.publishPrecheck(ctx) // what was shown in an earlier life may not have been told
	if err := s.updateStatus(ctx, s.record, status); err != nil {
		return err
	}
	s.publishPrecheck(ctx)
	switch {
	case status.finished:
		return s.finish(ctx)
	case s.hasFinalizer() && (status.phase == history.PhaseUnknown || s.upgrader == nil):
		return nil // it may well have begun: its record was lost
	}
	return s.release(ctx)
}

// startOrResume begins the upgrade, or goes on with it.
func (s *scope) startOrResume(ctx context.Context) (time.Time, error) {
	if s.upgrader == nil {
		return time.Time{}, s.updateStatus(ctx, s.record, *s.unknownTypeStatus())
	}
	other, err := s.acquire(ctx)
	if err != nil {
		return time.Time{}, err
	}
	if other != nil {
		status := s.lockedStatus(other.String())
		return status.nextTransition, s.updateStatus(ctx, s.record, *status)
	}
	if s.hasFinalizer() && s.record.StartTime == nil { // the record was lost: the upgrade may have been requested
		s.record.RequestTime = toMetaTime(s.now)
	}
	if err := s.setFinalizer(ctx, true); err != nil {
		return time.Time{}, err
	}
	if err := s.recordPrecedingVersion(ctx); err != nil {
		return time.Time{}, err
	}
	return s.runEngine(ctx)
}

// acquire takes the lock, or names who has it. An attempt begins only with a
// lock that the API server knows of: the cache may still show one that was given back.
func (s *scope) acquire(ctx context.Context) (*lock.Holder, error) {
	other, err := s.lock.Acquire(ctx, s.holder())
	if err != nil || other != nil || s.hasFinalizer() {
		return other, err
	}
	return s.liveLock.Acquire(ctx, s.holder())
}

// runEngine lets the engine take steps.
func (s *scope) runEngine(ctx context.Context) (time.Time, error) {
	s.publishSteps(ctx) // what was saved in an earlier life may not have been told
	e := &engine.Engine{Clock: s.Clock, Save: s.save, OnTransition: s.onTransition}
	record, next, err := e.Pass(ctx, s.book, s.record, s.constraints)
	if err != nil {
		return time.Time{}, err
	}
	record.CompleteTime = s.record.CompleteTime                              // of which the engine knows nothing
	if err := s.updateStatus(ctx, record, s.summarize(record)); err != nil { // what has changed beside the steps
		return time.Time{}, err
	}
	if isFinished(s.record) {
		return time.Time{}, s.finish(ctx)
	}
	return next, nil
}

func (s *scope) summarize(record history.Record) summary {
	return summarize(record, engine.Summarize(s.book, record, s.Clock.Now(), s.constraints), s.paused())
}

// save is how the engine keeps the record.
func (s *scope) save(ctx context.Context, record history.Record) error {
	if err := s.updateStatus(ctx, record, s.summarize(record)); err != nil {
		return err
	}
	s.publishSteps(ctx)
	return nil
}

// updateStatus writes the status, if it differs. The record is then the one that is kept.
func (s *scope) updateStatus(ctx context.Context, record history.Record, status summary) error {
	s.publishConfigError(ctx) // what was shown in an earlier life may not have been told
	after := s.cfg.DeepCopy()
	after.Status = buildStatus(s.cfg, record, status, s.snapshot.ConfigError, s.Clock.Now())
	if !equality.Semantic.DeepEqual(s.cfg.Status, after.Status) {
		if err := s.store.patchStatus(ctx, s.cfg, after); err != nil {
			return fmt.Errorf("saving the status: %w", err)
		}
	}
	s.observeEnd(status)
	s.cfg = after
	s.record = *after.Status.History[0].DeepCopy()
	s.publishConfigError(ctx)
	return nil
}

// observeEnd observes in the metrics that the attempt has succeeded or failed, once.
func (s *scope) observeEnd(status summary) {
	if status.phase == s.record.Phase || status.phase != history.PhaseFailed && status.phase != history.PhaseUpgraded {
		return
	}
	var took time.Duration
	if s.record.StartTime != nil {
		took = s.Clock.Now().Sub(s.record.StartTime.Time)
	}
	s.Metrics.ObserveEnd(groupKind, s.typeLabel(), status.phase == history.PhaseUpgraded, status.succeeded.reason, took)
}

// observeSpecChange shows that a change of the spec was seen after the upgrade was over.
// What was recorded stays as it is.
func (s *scope) observeSpecChange(ctx context.Context) error {
	if s.deleted() || s.cfg.Status.ObservedGeneration == s.cfg.Generation {
		return nil
	}
	version, err := clusterstate.GetClusterVersion(ctx, s.Client)
	if err != nil {
		return err
	}
	accepted := valid
	if reason, message := validateUpgradePath(version.Installed, s.cfg.Spec.Desired.Version); reason != "" {
		accepted = condition{metav1.ConditionFalse, reason, message}
	}
	if s.upgrader == nil {
		accepted = condition{metav1.ConditionFalse, reasonUnknownType, s.unknownTypeMessage()}
	}
	after := s.cfg.DeepCopy()
	after.Status.ObservedGeneration = s.cfg.Generation
	setCondition(&after.Status.Conditions, v1alpha1.ConditionAccepted, accepted, s.cfg.Generation, s.now)
	if err := s.store.patchStatus(ctx, s.cfg, after); err != nil {
		return fmt.Errorf("saving the status: %w", err)
	}
	s.cfg = after
	return nil
}

// finish ends an attempt: its end is told, the lock released, the finalizer
// removed. Of an attempt that never began there is no finalizer to show that
// its end is still to be told; that is tried for as long as it is news.
func (s *scope) finish(ctx context.Context) error {
	retryPublish := s.now.Before(s.record.CompleteTime.Add(publishTimeout))
	if s.hasFinalizer() || s.record.StartTime == nil && retryPublish {
		if err := s.publishResult(ctx); err != nil && retryPublish {
			return err
		}
	}
	return s.release(ctx)
}

// cancel ends the upgrade of an UpgradeConfig that is being deleted: before the
// commit by the clean-up, after it at once, and never later than the timeout.
func (s *scope) cancel(ctx context.Context) (time.Time, error) {
	if !s.hasFinalizer() {
		return time.Time{}, s.release(ctx)
	}
	last := s.cfg.DeletionTimestamp.Add(s.snapshot.Config.Cancellation.Timeout.Duration)
	var reason, message string
	switch committed, err := engine.Committed(ctx, s.book, s.record); {
	case s.upgrader == nil:
		reason, message = "CancellationAbandoned", "the type is not known to this release of the operator, so nothing was cleaned up"
	case committed:
		reason, message = "UpgradeContinues", "the upgrade to "+s.record.Version+" had commenced; it goes on without this UpgradeConfig"
	case !s.now.Before(last):
		reason, message = "CancellationAbandoned", "the clean-up did not end in time; look at spec.desiredUpdate of the ClusterVersion"
	case err != nil:
		return time.Time{}, err
	default:
		next, err := s.startOrResume(ctx)
		if next.IsZero() || next.After(last) {
			next = last
		}
		return next, err
	}
	if err := s.abandon(ctx); err != nil {
		if s.now.Before(last) {
			return time.Time{}, err
		}
		s.log.Error(err, "what the upgrade needs no more stays behind")
	}
	if err := s.publish(ctx, corev1.EventTypeWarning, reason, message); err != nil {
		s.log.Error(err, "the end of the upgrade could not be told", "reason", reason)
	}
	return time.Time{}, s.release(ctx)
}

// abandon takes back what nobody will take back once the upgrade is let go of.
func (s *scope) abandon(ctx context.Context) error {
	if s.book.Abandon == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := s.book.Abandon(ctx); err != nil {
		return fmt.Errorf("letting the upgrade go: %w", err)
	}
	return nil
}

// release releases the lock and removes the finalizer. If there is a finalizer
// the lock is ours, even if the cache does not show it yet.
func (s *scope) release(ctx context.Context) error {
	if !s.hasFinalizer() {
		return s.lock.Release(ctx, s.holder())
	}
	if err := s.liveLock.Release(ctx, s.holder()); err != nil {
		return err
	}
	s.Notifier.Reset(string(s.cfg.UID))
	return client.IgnoreNotFound(s.setFinalizer(ctx, false))
}

// recordPrecedingVersion records from which version the upgrade leads away.
func (s *scope) recordPrecedingVersion(ctx context.Context) error {
	if s.record.PrecedingVersion != "" || inProgress(s.record) {
		return nil
	}
	version, err := clusterstate.GetClusterVersion(ctx, s.Client)
	if err != nil {
		return err
	}
	if version.Installed != s.record.Version {
		s.record.PrecedingVersion = version.Installed
	}
	return nil
}

func (s *scope) setFinalizer(ctx context.Context, want bool) error {
	if s.hasFinalizer() == want || want && s.deleted() {
		return nil
	}
	after := s.cfg.DeepCopy()
	if want {
		controllerutil.AddFinalizer(after, v1alpha1.Finalizer)
	} else {
		controllerutil.RemoveFinalizer(after, v1alpha1.Finalizer)
	}
	if err := s.store.patch(ctx, s.cfg, after); err != nil {
		return fmt.Errorf("changing the finalizers: %w", err)
	}
	s.cfg = after
	return nil
}

func (s *scope) hasFinalizer() bool {
	return controllerutil.ContainsFinalizer(s.cfg, v1alpha1.Finalizer)
}
func (s *scope) deleted() bool { return !s.cfg.DeletionTimestamp.IsZero() }
func (s *scope) paused() bool  { return s.cfg.Spec.Paused != nil && *s.cfg.Spec.Paused }

func (s *scope) windowEnd() time.Time {
	if s.upgradeAt.IsZero() {
		return time.Time{}
	}
	return s.upgradeAt.Add(s.snapshot.Config.UpgradeWindow.Duration)
}

func (s *scope) holder() lock.Holder {
	return lock.Holder{Kind: upgradeConfigKind, Namespace: s.cfg.Namespace, Name: s.cfg.Name, UID: string(s.cfg.UID)}
}
