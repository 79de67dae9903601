// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// lockStep returns the name of the step that acquires the lock. It is empty if the lock is acquired before the
// first step.
func (p AttemptPlan) lockStep() string {
	if commit := p.Book.CommitStep(); commit != nil {
		return commit.Commit.After
	}
	return ""
}

// holdsLock reports whether an attempt has the lock according to its record. Nothing else decides that: the
// Lease may be gone, or not acquired yet by an attempt that has just started. An attempt that has the Lease,
// but no such record, continues with the Lease.
func (p AttemptPlan) holdsLock(record history.Record) bool {
	if !record.InProgress() {
		return false
	}
	return p.lockStep() == "" || !p.Known || p.Book.IsPast(record, p.lockStep())
}

// waitsForLock reports whether an attempt has started without the lock.
func (p AttemptPlan) waitsForLock(record history.Record) bool {
	return p.lockStep() != "" && p.Known && !p.Book.IsPast(record, p.lockStep())
}

// claim records what a Lease proves about an object, for one version of each.
type claim struct {
	object, lease string // resource versions in the cache
	attempt       lock.Attempt
	held          bool
}

// liveClaim returns what the Lease of the API server proves about the object. It reads the Lease only once per
// version of the object and the Lease in the cache: a preset finalizer contradicts the Lease for as long as
// another upgrade has it.
func (s *scope[T]) liveClaim(ctx context.Context, cached claim) (lock.Attempt, bool, error) {
	lease, err := s.lock.ResourceVersion(ctx)
	if err != nil {
		return lock.Attempt{}, false, err
	}
	cached.object, cached.lease = s.obj.GetResourceVersion(), lease
	if s.memory.claim == cached {
		return cached.attempt, cached.held, nil
	}
	attempt, held, err := s.lock.HeldLive(ctx, s.holder(s.obj))
	if err == nil && attempt == cached.attempt && held == cached.held {
		s.memory.claim = cached
	}
	return attempt, held, err
}

// lockStep acquires the lock in the step of engine.Commit.After, not before the requested time, and not while
// the attempt is held. As for other kinds before the first step, the admission decides whether the attempt
// could succeed and has anything to do.
func (s *scope[T]) lockStep(ctx context.Context, run engine.Run) (engine.Result, error) {
	now := s.Clock.Now()
	switch {
	case now.Before(s.upgradeAt):
		return engine.WaitUntil(s.upgradeAt, reasonScheduled, "the upgrade starts at %s", text.FormatTime(s.upgradeAt)), nil
	case s.holdErr != nil:
		return engine.Result{}, s.holdErr
	case s.hold != "":
		return engine.Wait(reasonHeld, "%s", s.hold), nil
	case s.request.Paused != "":
		return engine.Wait(reasonPaused, "%s", s.request.Paused), nil
	}
	closed, err := s.plan.Book.Admitted(ctx, s.Clock, run)
	if err == nil && closed.Failed() {
		err = s.confirm(ctx)
	}
	if err != nil || !closed.IsZero() {
		return closed, err
	}
	other, err := s.acquire(ctx)
	switch {
	case err != nil:
		return engine.Result{}, err
	case other != nil:
		return engine.Wait(ReasonClusterLocked, "waiting for the upgrade of %s; only one runs at a time", other), nil
	}
	return engine.Done("no other upgrade is in progress"), nil
}

// acquire acquires the lock or returns its holder. It returns errStaleCache within a second of the last time:
// the lock was released since, and two leaders, one with an old object in its cache, would do that in turn.
func (s *scope[T]) acquire(ctx context.Context) (*lock.Holder, error) {
	if since := s.now.Sub(s.memory.acquired); !s.held && since >= 0 && since < minRequeue {
		return nil, errStaleCache
	}
	other, err := s.tryAcquire(ctx)
	if err == nil && other == nil && !s.held {
		s.memory.acquired = s.now
	}
	return other, err
}

// tryAcquire acquires the lock or returns its holder. An attempt starts only with a lock that the API server
// has confirmed, because the cache may show a lock that was released. It also does not start beside an attempt
// whose lock was deleted by another client.
func (s *scope[T]) tryAcquire(ctx context.Context) (*lock.Holder, error) {
	attempt := s.attempt(s.observePreceding(ctx, s.record)) // before a step sets the channel
	if !s.claimed {
		if other, err := s.otherInProgress(ctx); err != nil || other != nil {
			return other, err
		}
		other, err := s.lock.Acquire(ctx, s.holder(s.obj), attempt)
		if err != nil || other != nil || s.plan.holdsLock(s.record) {
			return other, err
		}
	}
	return s.lock.AcquireConfirmed(ctx, s.holder(s.obj), attempt)
}

// otherInProgress returns another object, of any kind, whose attempt has the lock of the same cluster according
// to its record. It returns nil if there is none, or if this attempt also has the lock.
func (s *scope[T]) otherInProgress(ctx context.Context) (*lock.Holder, error) {
	if s.plan.holdsLock(s.record) {
		return nil, nil
	}
	return s.Holders.Claimant(ctx, s.Kind.LockKey(s.obj), s.holder(s.obj))
}

// claimants returns the objects of this kind whose attempts have a lock according to their records. An object
// whose status is rejected does nothing, so it is left out.
func (r *Reconciler[T]) claimants(ctx context.Context, key client.ObjectKey) ([]lock.Holder, error) {
	all, err := listOfLock(ctx, r.Kind, r.Client, key)
	if err != nil {
		return nil, err
	}
	var holders []lock.Holder
	for _, obj := range all {
		if !r.isRejected(obj) && r.anyHoldsLock(obj) {
			holders = append(holders, r.holder(obj))
		}
	}
	return holders, nil
}

// anyHoldsLock reports whether any attempt of an object has the lock according to its record.
func (r *Reconciler[T]) anyHoldsLock(obj T) bool {
	never := engine.FromBool(func(context.Context) (bool, error) { return false, nil }) // the runbook is only read
	for _, record := range *r.Kind.Status(obj).History {
		if record.InProgress() && r.Kind.Plan(obj, record, r.Kind.Request(obj).RunbookType, never).holdsLock(record) {
			return true
		}
	}
	return false
}

// startedBeforeWindow reports whether the attempt received the lock before the requested time, against the
// rules of every operator, or in the future, by a clock that was ahead.
func (s *scope[T]) startedBeforeWindow() bool {
	began := s.record.StartTime
	if s.plan.lockStep() != "" {
		began = cmp.Or(s.record.Step(s.plan.lockStep()).CompleteTime, &metav1.Time{})
	}
	return began != nil && (began.Time.Before(s.upgradeAt.Truncate(time.Second)) || began.After(s.now.Add(text.MaxClockSkew)))
}
