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
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
)

// look is one look at one UpgradeConfig.
//
// A life goes so: before the first step the lock is taken and the finalizer
// set; then the engine takes the steps; after the last one its end is told,
// the lock released and the finalizer removed. So the finalizer is there
// exactly while an attempt is under way, also if its record was lost.
type look struct {
	*Reconciler

	setup     Setup
	cfg       *v1alpha1.UpgradeConfig // as it is kept
	record    history.History         // of the attempt that is looked at
	upgrader  ClusterUpgrader         // nil if the type is unknown
	book      engine.Runbook
	upgradeAt time.Time // zero if it cannot be read
	now       time.Time
	log       logr.Logger
}

func (r *Reconciler) look(cfg *v1alpha1.UpgradeConfig, log logr.Logger) *look {
	l := &look{Reconciler: r, setup: r.Setup(), cfg: cfg, now: r.Clock.Now(), log: log}
	l.upgrader = l.setup.Upgraders[cfg.Spec.Type]
	l.upgradeAt, _ = time.Parse(time.RFC3339, cfg.Spec.UpgradeAt) // zero is dealt with where it matters
	l.record = attemptOf(cfg, l.upgradeAt)
	if underWay(l.record) && l.record.UpgradeAt != nil {
		l.upgradeAt = l.record.UpgradeAt.Time
	}
	if l.upgrader != nil {
		l.book = l.upgrader.Runbook(l.asked())
		l.book.CommitBy = l.windowEnd()
		if l.paused() {
			l.book.Hold = "spec.paused holds the upgrade"
		}
		if l.deleted() {
			l.book.Cancelled = "the UpgradeConfig was deleted before the upgrade had commenced"
		}
	}
	return l
}

// asked is the UpgradeConfig for which the runbook is made: that of the attempt.
func (l *look) asked() *v1alpha1.UpgradeConfig {
	cfg := l.cfg.DeepCopy()
	cfg.Spec.Desired.Version = l.record.Version
	cfg.Status.History = withAttempt(cfg.Status.History, l.record)
	return cfg
}

// run does what can be done now, and returns when to look again (zero: never).
func (l *look) run(ctx context.Context) (time.Time, error) {
	switch {
	case ended(l.record):
		if err := l.leave(ctx); err != nil {
			return time.Time{}, err
		}
		return time.Time{}, l.review(ctx)
	case l.deleted():
		return l.cancel(ctx)
	case !underWay(l.record):
		if s := l.mayStart(ctx); s != nil {
			return s.wake(), l.stay(ctx, *s)
		}
	}
	return l.proceed(ctx)
}

// stay shows why the upgrade has not begun, or that it never will.
func (l *look) stay(ctx context.Context, s summary) error {
	l.tellEarly(ctx) // what was shown in an earlier life may not have been told
	if err := l.show(ctx, l.record, s); err != nil {
		return err
	}
	l.tellEarly(ctx)
	switch {
	case s.over:
		return l.leave(ctx)
	case l.hasFinalizer() && (s.phase == history.PhaseUnknown || l.upgrader == nil):
		return nil // it may well have begun: its record was lost
	}
	return l.letGo(ctx)
}

// proceed begins the upgrade, or goes on with it.
func (l *look) proceed(ctx context.Context) (time.Time, error) {
	if l.upgrader == nil {
		return time.Time{}, l.show(ctx, l.record, *l.orphaned())
	}
	other, err := l.acquire(ctx)
	if err != nil {
		return time.Time{}, err
	}
	if other != nil {
		s := l.locked(other.String())
		return s.next, l.show(ctx, l.record, *s)
	}
	if err := l.setFinalizer(ctx, true); err != nil {
		return time.Time{}, err
	}
	if err := l.notePreceding(ctx); err != nil {
		return time.Time{}, err
	}
	return l.pass(ctx)
}

// acquire takes the lock, or names who has it. An attempt begins only with a
// lock that the API server knows of: the cache may still show one that was given back.
func (l *look) acquire(ctx context.Context) (*lock.Holder, error) {
	other, err := l.lock.Acquire(ctx, l.holder())
	if err != nil || other != nil || l.hasFinalizer() {
		return other, err
	}
	return l.sureLock.Acquire(ctx, l.holder())
}

// pass lets the engine take steps.
func (l *look) pass(ctx context.Context) (time.Time, error) {
	l.tellSteps(ctx) // what was saved in an earlier life may not have been told
	e := &engine.Engine{Clock: l.Clock, Save: l.save, Observe: l.observe}
	record, next, err := e.Pass(ctx, l.book, l.record)
	if err != nil {
		return time.Time{}, err
	}
	record.CompleteTime = l.record.CompleteTime                      // of which the engine knows nothing
	if err := l.show(ctx, record, l.summarize(record)); err != nil { // what has changed beside the steps
		return time.Time{}, err
	}
	if ended(l.record) {
		return time.Time{}, l.leave(ctx)
	}
	return next, nil
}

func (l *look) summarize(record history.History) summary {
	return summarize(record, engine.Assess(l.book, record, l.Clock.Now()), l.paused())
}

// save is how the engine keeps the record.
func (l *look) save(ctx context.Context, record history.History) error {
	if err := l.show(ctx, record, l.summarize(record)); err != nil {
		return err
	}
	l.tellSteps(ctx)
	return nil
}

// show writes the status, if it differs. The record is then the one that is kept.
func (l *look) show(ctx context.Context, record history.History, s summary) error {
	l.tellTrouble(ctx) // what was shown in an earlier life may not have been told
	after := l.cfg.DeepCopy()
	after.Status = statusOf(l.cfg, record, s, l.setup.Trouble, l.Clock.Now())
	if !equality.Semantic.DeepEqual(l.cfg.Status, after.Status) {
		if err := l.store.patchStatus(ctx, l.cfg, after); err != nil {
			return fmt.Errorf("saving the status: %w", err)
		}
	}
	if s.phase == history.PhaseFailed && l.record.Phase != history.PhaseFailed {
		l.Metrics.Failed(l.typeLabel(), s.succeeded.reason)
	}
	l.cfg = after
	l.record = *after.Status.History[0].DeepCopy()
	l.tellTrouble(ctx)
	return nil
}

// review shows that a change of the spec was seen after the upgrade was over.
// What was recorded stays as it is.
func (l *look) review(ctx context.Context) error {
	if l.deleted() || l.cfg.Status.ObservedGeneration == l.cfg.Generation {
		return nil
	}
	version, err := cluster.ReadVersion(ctx, l.Client)
	if err != nil {
		return err
	}
	accepted := valid
	if reason, message := unreachable(version.Installed, l.cfg.Spec.Desired.Version); reason != "" {
		accepted = condition{metav1.ConditionFalse, reason, message}
	}
	if l.upgrader == nil {
		accepted = condition{metav1.ConditionFalse, reasonUnknownType, l.unknownType()}
	}
	after := l.cfg.DeepCopy()
	after.Status.ObservedGeneration = l.cfg.Generation
	setCondition(&after.Status.Conditions, v1alpha1.ConditionAccepted, accepted, l.cfg.Generation, l.now)
	if err := l.store.patchStatus(ctx, l.cfg, after); err != nil {
		return fmt.Errorf("saving the status: %w", err)
	}
	l.cfg = after
	return nil
}

// leave ends an attempt: its end is told, the lock released, the finalizer
// removed. Of an attempt that never began there is no finalizer to show that
// its end is still to be told; that is tried for as long as it is news.
func (l *look) leave(ctx context.Context) error {
	news := l.now.Before(l.record.CompleteTime.Add(tellFor))
	if l.hasFinalizer() || l.record.StartTime == nil && news {
		if err := l.tellEnd(ctx); err != nil && news {
			return err
		}
	}
	return l.letGo(ctx)
}

// cancel ends the upgrade of an UpgradeConfig that is being deleted: before the
// commit by the clean-up, after it at once, and never later than the timeout.
func (l *look) cancel(ctx context.Context) (time.Time, error) {
	if !l.hasFinalizer() {
		return time.Time{}, l.letGo(ctx)
	}
	last := l.cfg.DeletionTimestamp.Add(l.setup.Config.Cancellation.Timeout.Duration)
	var reason, message string
	switch committed, err := engine.Committed(ctx, l.book, l.record); {
	case l.upgrader == nil:
		reason, message = "CancellationAbandoned", "the type is not known to this release of the operator, so nothing was cleaned up"
	case committed:
		reason, message = "UpgradeContinues", "the upgrade to "+l.record.Version+" had commenced; it goes on without this UpgradeConfig"
	case !l.now.Before(last):
		reason, message = "CancellationAbandoned", "the clean-up did not end in time; look at spec.desiredUpdate of the ClusterVersion"
	case err != nil:
		return time.Time{}, err
	default:
		next, err := l.proceed(ctx)
		if next.IsZero() || next.After(last) {
			next = last
		}
		return next, err
	}
	if err := l.abandon(ctx); err != nil {
		if l.now.Before(last) {
			return time.Time{}, err
		}
		l.log.Error(err, "what the upgrade needs no more stays behind")
	}
	if err := l.tell(ctx, corev1.EventTypeWarning, reason, message); err != nil {
		l.log.Error(err, "the end of the upgrade could not be told", "reason", reason)
	}
	return time.Time{}, l.letGo(ctx)
}

// abandon takes back what nobody will take back once the upgrade is let go of.
func (l *look) abandon(ctx context.Context) error {
	if l.book.Abandon == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := l.book.Abandon(ctx); err != nil {
		return fmt.Errorf("letting the upgrade go: %w", err)
	}
	return nil
}

// letGo releases the lock and removes the finalizer. If there is a finalizer
// the lock is ours, even if the cache does not show it yet.
func (l *look) letGo(ctx context.Context) error {
	if !l.hasFinalizer() {
		return l.lock.Release(ctx, l.holder())
	}
	if err := l.sureLock.Release(ctx, l.holder()); err != nil {
		return err
	}
	l.Telling.Forget(string(l.cfg.UID))
	return client.IgnoreNotFound(l.setFinalizer(ctx, false))
}

// notePreceding records from which version the upgrade leads away.
func (l *look) notePreceding(ctx context.Context) error {
	if l.record.PrecedingVersion != "" || underWay(l.record) {
		return nil
	}
	version, err := cluster.ReadVersion(ctx, l.Client)
	if err != nil {
		return err
	}
	if version.Installed != l.record.Version {
		l.record.PrecedingVersion = version.Installed
	}
	return nil
}

func (l *look) setFinalizer(ctx context.Context, want bool) error {
	if l.hasFinalizer() == want || want && l.deleted() {
		return nil
	}
	after := l.cfg.DeepCopy()
	if want {
		controllerutil.AddFinalizer(after, v1alpha1.Finalizer)
	} else {
		controllerutil.RemoveFinalizer(after, v1alpha1.Finalizer)
	}
	if err := l.store.patch(ctx, l.cfg, after); err != nil {
		return fmt.Errorf("changing the finalizers: %w", err)
	}
	l.cfg = after
	return nil
}

func (l *look) hasFinalizer() bool {
	return controllerutil.ContainsFinalizer(l.cfg, v1alpha1.Finalizer)
}
func (l *look) deleted() bool { return !l.cfg.DeletionTimestamp.IsZero() }
func (l *look) paused() bool  { return l.cfg.Spec.Paused != nil && *l.cfg.Spec.Paused }

func (l *look) windowEnd() time.Time {
	if l.upgradeAt.IsZero() {
		return time.Time{}
	}
	return l.upgradeAt.Add(l.setup.Config.UpgradeWindow.Duration)
}

func (l *look) holder() lock.Holder {
	return lock.Holder{Kind: kind, Namespace: l.cfg.Namespace, Name: l.cfg.Name, UID: string(l.cfg.UID)}
}
