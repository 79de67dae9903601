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

// UpgradeKind describes a kind of upgrade objects. Its methods change nothing, and only those with a context read
// objects.
type UpgradeKind[T client.Object] interface {
	// GroupVersionKind identifies the kind in the lock, in Events, and in metrics.
	GroupVersionKind() schema.GroupVersionKind
	// Finalizer returns the finalizer of objects with an attempt in progress.
	Finalizer() string
	// New returns an empty object.
	New() T
	// List returns all objects.
	List(ctx context.Context, r client.Reader) ([]T, error)
	// Status returns access to the status of an object.
	Status(obj T) Status
	// HistoryKey returns how the history identifies a record.
	HistoryKey() HistoryKey
	// LockKey names the Lease that serves as the lock of the cluster.
	LockKey(obj T) client.ObjectKey

	// Request returns the attempt that the spec requests.
	Request(obj T) AttemptRequest
	// Plan returns how to carry out an attempt with the runbook of runbookType. The step of engine.Commit.After
	// calls acquire until the attempt has the lock.
	Plan(obj T, record history.Record, runbookType string, acquire engine.UpgradeStep) AttemptPlan
	// Hold returns why no attempt of any kind may commence on the cluster now, or an empty string. After an
	// error, nothing may commence.
	Hold(ctx context.Context) (string, error)
	// CacheIsCurrent queries the API server, and reports whether the cache holds the newest version of what the
	// admission of the runbook reads.
	CacheIsCurrent(ctx context.Context) (bool, error)
}

// StatusCompleter is an UpgradeKind whose status has more than the part that the lifecycle maintains.
type StatusCompleter[T client.Object] interface {
	// CompleteStatus sets the rest of a status before it is written. It makes no request, and is deterministic.
	CompleteStatus(obj T)
}

// ClusterLister is an UpgradeKind for several clusters, each with its own lock.
type ClusterLister[T client.Object] interface {
	// ListOfLock returns the objects of a lock.
	ListOfLock(ctx context.Context, r client.Reader, lock client.ObjectKey) ([]T, error)
	// LockLabels returns the labels of the locks.
	LockLabels() map[string]string
	// FormerLockNamespace returns the namespace of the cluster's lock in the last release.
	FormerLockNamespace(obj T) string
}

// Releaser is an UpgradeKind that removes more from an object than the finalizer of its attempt.
type Releaser[T client.Object] interface {
	// Release changes the object before it is written without the finalizer.
	Release(ctx context.Context, obj T) error
}

// listOfLock returns the objects of a kind that have a lock.
func listOfLock[T client.Object](ctx context.Context, kind UpgradeKind[T], r client.Reader, lock client.ObjectKey) ([]T, error) {
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
	// Replaced holds the records of failed attempts that retries have replaced in the history, newest first. It
	// is nil for a history with a record per attempt.
	Replaced *[]history.Record
	// KindConditions lists the types of conditions that the kind maintains itself. All other conditions that
	// the lifecycle does not maintain are removed.
	KindConditions []string
}

// records returns all records, beginning with the history.
func (s Status) records() []history.Record {
	if s.Replaced == nil {
		return slices.Clone(*s.History)
	}
	return slices.Concat(*s.History, *s.Replaced)
}

// find returns the record of an attempt, or nil.
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

// AttemptRequest is the attempt that a spec requests.
type AttemptRequest struct {
	// Version is the target version.
	Version string
	// At is the time from which the attempt may commence, or zero if the spec contains no valid time.
	At time.Time
	// StartRequested reports whether a user has requested a start at another time and the status does not show
	// it. Only the status would.
	StartRequested bool
	// Due makes the attempt due whatever the clock says: another process has requested it at the time At, by a
	// clock that may be ahead.
	Due bool
	// InvalidTime explains why At is zero.
	InvalidTime string
	// RunbookType names the runbook.
	RunbookType string
	// Paused names the field of the spec that pauses the attempt, or is empty.
	Paused string
	// Cancelled explains why the attempt must be aborted before its commit, or is empty.
	Cancelled string
	// Withdrawn explains why the object no longer requests an attempt, or is empty. An attempt that has not
	// committed is then cleaned up, and one that has not started does not start.
	Withdrawn string
	// Number is the number of the attempt in a history with a record per attempt, or 0 for the next number.
	Number int32
}

// AttemptPlan is how to carry out an attempt with the current configuration.
type AttemptPlan struct {
	// Known reports whether the type of the runbook is known. If not, Unknown explains why.
	Known   bool
	Unknown string
	// Type is the type of the runbook for the label of a metric.
	Type string
	// Book is the runbook. If it has a step of engine.Commit.After, that step acquires the lock: the attempt
	// starts at once, and the steps before may run while another attempt has the lock. Otherwise, the lock is
	// acquired before the first step. If the type is unknown, the runbook has only Abandon.
	Book engine.Runbook
	// Observe returns the facts that the record notes until the attempt commences. It is nil if there are none.
	Observe func(context.Context, history.Record) (Observation, error)
	// Window is how long after the requested time the attempt may commence. There is no limit if it is
	// negative.
	Window time.Duration
	// PreCheckLead is how long before the requested time pre-checks run; 0 disables them.
	PreCheckLead time.Duration
	// CancelTimeout is how long a deletion waits for the cleanup.
	CancelTimeout time.Duration
	// FinalizerPreset reports that objects are created with the finalizer, so that it does not show that an
	// attempt has begun.
	FinalizerPreset bool
	// Heartbeat and MessageInterval are settings of the engine.
	Heartbeat, MessageInterval time.Duration
	// ConfigError explains why the current configuration is not in effect, or is empty.
	ConfigError string
	// Retry explains what starts another attempt after a failure.
	Retry string
	// InvalidReason and InvalidMessage explain why an attempt that waits for the lock could not succeed now, or
	// are empty. They do not hold it up.
	InvalidReason, InvalidMessage string
}

func (p AttemptPlan) observe(ctx context.Context, record history.Record) (Observation, error) {
	if p.Observe == nil {
		return Observation{}, nil
	}
	return p.Observe(ctx, record)
}

// Observation is the state of the cluster that an attempt records before it starts.
type Observation struct {
	// Version is the installed version.
	Version string
	// Channel is the current channel, or nil if the attempt has requested it.
	Channel *string
	// RequestedChannel is the channel of the spec, or empty.
	RequestedChannel string
}
