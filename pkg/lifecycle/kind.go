// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Kind describes a kind of upgrade objects. Its methods change nothing, and only those with a
// context read objects.
type Kind[T client.Object] interface {
	// GroupVersionKind identifies the kind in the lock, in Events, and in metrics.
	GroupVersionKind() schema.GroupVersionKind
	// Finalizer returns the finalizer of objects whose attempt is in progress.
	Finalizer() string
	// New returns an empty object.
	New() T
	// List returns all objects.
	List(ctx context.Context, r client.Reader) ([]T, error)
	// Status returns access to the status of an object.
	Status(obj T) Status
	// HistoryKey returns what identifies a record in the history.
	HistoryKey() HistoryKey
	// MaxHistory returns the number of records that an object keeps.
	MaxHistory() int
	// LockKey names the Lease that is the lock of the object's cluster.
	LockKey(obj T) client.ObjectKey

	// Request returns the attempt that the spec requests.
	Request(obj T) Request
	// Plan returns how an attempt is carried out, with the runbook of runbookType. The step of engine.Commit.After
	// calls acquire, which is done once the attempt has the lock.
	Plan(obj T, record history.Record, runbookType string, acquire engine.UpgradeStep) Plan
	// Hold returns why no attempt may commence on the cluster now, whatever its kind; empty if
	// nothing holds it. An error means that it is unknown, so nothing may commence.
	Hold(ctx context.Context) (string, error)
	// Observe returns what the cluster has before the attempt. An error means that it is unknown, so that no attempt can
	// start.
	Observe(ctx context.Context, obj T, record history.Record) (Observation, error)
	// CacheIsCurrent reports whether the cache holds the newest version of what the admission of the runbook is based on.
	// It queries the API server.
	CacheIsCurrent(ctx context.Context) (bool, error)
}

// StatusCompleter is a Kind whose status shows more than what the lifecycle maintains.
type StatusCompleter[T client.Object] interface {
	// CompleteStatus sets the rest of the status of an object, whose status is otherwise as it is
	// about to be written. It makes no request, and is deterministic.
	CompleteStatus(obj T)
}

// ClusterLister is a Kind whose objects concern several clusters, each with a lock of its own.
type ClusterLister[T client.Object] interface {
	// ListOfLock returns the objects of a lock.
	ListOfLock(ctx context.Context, r client.Reader, lock client.ObjectKey) ([]T, error)
	// LockLabels returns the labels of the locks.
	LockLabels() map[string]string
	// FormerLockNamespace returns the namespace in which the last release had the lock of the object's
	// cluster.
	FormerLockNamespace(obj T) string
}

// Releaser is a Kind that has more to remove from an object together with the finalizer of its attempt.
type Releaser[T client.Object] interface {
	// Release changes the object that is about to be written without the finalizer.
	Release(ctx context.Context, obj T) error
}

// listOfLock returns the objects of a kind that have a lock.
func listOfLock[T client.Object](ctx context.Context, kind Kind[T], r client.Reader, lock client.ObjectKey) ([]T, error) {
	if lister, ok := kind.(ClusterLister[T]); ok {
		return lister.ListOfLock(ctx, r, lock)
	}
	all, err := kind.List(ctx, r)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(obj T) bool { return kind.LockKey(obj) != lock }), nil
}

// Status points to the part of a status that the lifecycle maintains.
type Status struct {
	Conditions         *[]metav1.Condition
	ObservedGeneration *int64
	NextTime           **metav1.Time
	History            *[]history.Record
	// Replaced are the records of failed attempts that retries have replaced in the history, newest first; nil for a
	// history with a record per attempt.
	Replaced *[]history.Record
	// KindConditions lists the types of conditions that the kind maintains itself. Conditions that
	// neither the lifecycle nor the kind maintains are removed.
	KindConditions []string
}

// records returns all records: those of the history first.
func (s Status) records() []history.Record {
	if s.Replaced == nil {
		return slices.Clone(*s.History)
	}
	return slices.Concat(*s.History, *s.Replaced)
}

// find returns the record of an attempt; nil if there is none.
func (s Status) find(attempt history.Record) *history.Record {
	for _, all := range []*[]history.Record{s.History, s.Replaced} {
		if all == nil {
			continue
		}
		if i := slices.IndexFunc(*all, func(r history.Record) bool { return isAttempt(r, attempt) }); i >= 0 {
			return &(*all)[i]
		}
	}
	return nil
}

// Request is the attempt that a spec requests.
type Request struct {
	// Version is the version to which the attempt leads.
	Version string
	// At is the time from which it may commence; zero if the spec contains no valid time.
	At time.Time
	// StartRequested reports that a user has requested a start at another time, which only the status shows, and
	// that it does not.
	StartRequested bool
	// Due reports that the time has come whatever the clock says: At is when another process requested
	// the attempt, by a clock that may have been ahead.
	Due bool
	// InvalidTime explains why At is zero.
	InvalidTime string
	// RunbookType names the runbook.
	RunbookType string
	// Paused explains which field of the spec pauses the attempt; empty if none does.
	Paused string
	// Cancelled explains why the attempt should be aborted before its commit; empty if it should not.
	Cancelled string
	// Withdrawn explains why the object no longer requests an attempt: one that has not committed is cleaned up, and
	// one that has not started does not start. Empty if it still does.
	Withdrawn string
	// Number is the number of the attempt in a history with a record per attempt; 0 means the next one.
	Number int32
}

// Plan is how an attempt is carried out, according to the present configuration.
type Plan struct {
	// Known reports whether the runbook's type is known; Unknown explains why it is not.
	Known   bool
	Unknown string
	// Type is the runbook's type as the value of a metric label.
	Type string
	// Book is the runbook. If only an update after one of its steps can belong to the attempt (see
	// engine.Commit.After), that step acquires the lock: the attempt starts at once and waits in its steps, the first
	// of which run while another attempt has the lock. Otherwise, the lock is acquired before the first step.
	Book engine.Runbook
	// Window is how long after the requested time the attempt may commence; negative means for ever.
	Window time.Duration
	// PreCheckLead is how long before the requested time pre-checks run; 0 disables them.
	PreCheckLead time.Duration
	// CancelTimeout is how long a deletion waits for the cleanup.
	CancelTimeout time.Duration
	// FinalizerPreset reports that objects are created with the finalizer, so that it does not show that an attempt has begun.
	FinalizerPreset bool
	// Heartbeat and MessageInterval are passed to the engine.
	Heartbeat, MessageInterval time.Duration
	// ConfigError explains why the configuration in effect is not the current one; empty if it is.
	ConfigError string
	// Retry explains what starts another attempt after a failure.
	Retry string
	// InvalidReason and InvalidMessage explain why an attempt that waits for the lock could not succeed
	// now; empty if it could.
	InvalidReason, InvalidMessage string
}

// Observation holds what an attempt records about the cluster before it commences.
type Observation struct {
	// Version is the version that is installed now.
	Version string
	// Channel is the channel that is set now; nil if it is one that the attempt has requested.
	Channel *string
	// RequestedChannel is the channel that the spec requests; empty means none.
	RequestedChannel string
}
