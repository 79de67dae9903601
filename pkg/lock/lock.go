// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lock lets one upgrade at a time run on a cluster, whatever its kind. The lock is a Lease
// that names its holder (group, kind, namespace, name, UID) and, in annotations, the attempt for
// which it was acquired. It never expires: it is held while the holder's upgrade is in progress,
// and any operator may break it afterwards.
//
// There is one lock per namespace: an operator that upgrades its own cluster uses its own
// namespace, a hub uses the namespace of each cluster.
//
// The Lease is also evidence. Only operators may write it, so a Lease that names the UID of an
// object proves that an attempt of that object was started, and for which target, even if the
// object's status was lost. A finalizer proves nothing: the creator of an object can preset it.
//
// The package does not know what an upgrade is, nor when one is finished; see Holders.
package lock

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Name is the name of the Lease.
const Name = "cluster-upgrade"

// The annotations of a held Lease.
const (
	annotationAttempt = "upgrade.managed.openshift.io/attempt"
	annotationVersion = "upgrade.managed.openshift.io/version"
	annotationType    = "upgrade.managed.openshift.io/type"

	annotationRequested = "upgrade.managed.openshift.io/requested"
	annotationNumber    = "upgrade.managed.openshift.io/attempt-number"
)

// Attempt identifies the attempt for which a holder acquired the lock. The zero Attempt means
// that the Lease does not name one: it was written by an earlier release, or by another client.
type Attempt struct {
	// Key identifies the attempt among those of its object, for example the time of its start.
	Key string
	// Version is the version to which the attempt leads; empty if it leads to none.
	Version string
	// Type names the runbook.
	Type string
	// Requested reports that the update may have been requested from the cluster for this attempt.
	Requested bool
	// Number is the number of the attempt among those of its object; 0 means that it is not noted.
	Number int32
}

// Is reports whether both are the same attempt.
func (a Attempt) Is(other Attempt) bool {
	a.Requested, other.Requested = false, false
	a.Number, other.Number = 0, 0 // an earlier release did not note it
	return a == other
}

func (a Attempt) annotations() map[string]string {
	notes := map[string]string{annotationAttempt: a.Key, annotationVersion: a.Version, annotationType: a.Type}
	if a.Requested {
		notes[annotationRequested] = "true"
	}
	if a.Number > 0 {
		notes[annotationNumber] = strconv.Itoa(int(a.Number))
	}
	maps.DeleteFunc(notes, func(_, value string) bool { return value == "" })
	return notes
}

// Lock is the upgrade lock of one namespace.
type Lock struct {
	// Client reads the Lease from a cache and writes it.
	Client client.Client
	// Namespace is the namespace of the Lease.
	Namespace string
	// DeleteFree deletes the Lease once it is free; otherwise it stays, without a holder.
	DeleteFree bool
	// Clock provides the time at which the lock is acquired.
	Clock clock.PassiveClock
	// InProgress reports whether the upgrade of a holder is still in progress. An error means that
	// it is unknown: the holder then keeps the lock.
	InProgress func(context.Context, Holder, Attempt) (bool, error)
}

// Acquire acquires the lock for an attempt of the holder. It returns the current holder if that is
// another one, and nil if the lock is acquired or was held already.
func (l *Lock) Acquire(ctx context.Context, holder Holder, attempt Attempt) (*Holder, error) {
	lease, err := l.get(ctx)
	if err != nil {
		return nil, err
	}
	if lease == nil {
		return nil, l.create(ctx, holder, attempt)
	}
	switch current := HolderOf(lease); {
	case current == (Holder{}):
	case current.Is(holder):
		if AttemptOf(lease) == attempt {
			return nil, nil
		}
	default:
		inProgress, err := l.inProgress(ctx, current, AttemptOf(lease))
		if err != nil {
			return nil, err
		}
		if inProgress {
			return &current, nil
		}
	}
	err = l.write(ctx, lease, &holder, attempt)
	if apierrors.IsNotFound(err) { // it was released since it was read
		return nil, l.create(ctx, holder, attempt)
	}
	if err != nil {
		return nil, fmt.Errorf("acquiring the lease %s: %w", Name, err)
	}
	return nil, nil
}

// Held reports whether that holder holds the lock, and for which attempt.
func (l *Lock) Held(ctx context.Context, holder Holder) (Attempt, bool, error) {
	lease, err := l.get(ctx)
	if err != nil || lease == nil || !HolderOf(lease).Is(holder) {
		return Attempt{}, false, err
	}
	return AttemptOf(lease), true, nil
}

// ResourceVersion returns the version of the Lease; empty if it does not exist.
func (l *Lock) ResourceVersion(ctx context.Context) (string, error) {
	lease, err := l.get(ctx)
	if err != nil || lease == nil {
		return "", err
	}
	return lease.ResourceVersion, nil
}

// Release releases the lock if that holder holds it.
func (l *Lock) Release(ctx context.Context, holder Holder) error {
	lease, err := l.get(ctx)
	if err != nil || lease == nil || !HolderOf(lease).Is(holder) {
		return err
	}
	if err := l.free(ctx, lease); err != nil {
		return fmt.Errorf("releasing the lease %s: %w", Name, err)
	}
	return nil
}

// ReleaseOrphaned releases the lock if its holder has the name of that one and another UID, and its
// upgrade is not in progress: it was deleted before the deletion could wait for the upgrade.
func (l *Lock) ReleaseOrphaned(ctx context.Context, holder Holder) error {
	lease, err := l.get(ctx)
	if err != nil || lease == nil {
		return err
	}
	current := HolderOf(lease)
	if current.UID == holder.UID || !current.sameName(holder) {
		return nil
	}
	inProgress, err := l.inProgress(ctx, current, AttemptOf(lease))
	if err != nil || inProgress {
		return err
	}
	if err := l.free(ctx, lease); err != nil {
		return fmt.Errorf("releasing the lease %s of %s, which does not exist: %w", Name, current, err)
	}
	return nil
}

func (l *Lock) inProgress(ctx context.Context, current Holder, attempt Attempt) (bool, error) {
	inProgress, err := l.InProgress(ctx, current, attempt)
	if err != nil {
		return false, fmt.Errorf("checking whether the upgrade of %s, which holds the lease %s, is in progress: %w", current, Name, err)
	}
	return inProgress, nil
}

func (l *Lock) get(ctx context.Context) (*coordinationv1.Lease, error) {
	var lease coordinationv1.Lease
	err := l.Client.Get(ctx, client.ObjectKey{Namespace: l.Namespace, Name: Name}, &lease)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting the lease %s: %w", Name, err)
	}
	return &lease, nil
}

func (l *Lock) create(ctx context.Context, holder Holder, attempt Attempt) error {
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: Name, Annotations: attempt.annotations()},
		Spec:       l.spec(&holder),
	}
	if err := l.Client.Create(ctx, lease); err != nil {
		return fmt.Errorf("creating the lease %s: %w", Name, err)
	}
	return nil
}

// free removes the holder, or deletes the Lease, unless another client has changed it since it was read.
func (l *Lock) free(ctx context.Context, lease *coordinationv1.Lease) error {
	if !l.DeleteFree {
		return l.write(ctx, lease, nil, Attempt{})
	}
	unchanged := client.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion}
	return client.IgnoreNotFound(l.Client.Delete(ctx, lease, unchanged))
}

// write changes the holder unless another client has changed the Lease since it was read.
func (l *Lock) write(ctx context.Context, lease *coordinationv1.Lease, holder *Holder, attempt Attempt) error {
	changed := lease.DeepCopy()
	changed.Spec = l.spec(holder)
	maps.DeleteFunc(changed.Annotations, func(key, _ string) bool {
		return slices.Contains([]string{annotationAttempt, annotationVersion, annotationType, annotationRequested, annotationNumber}, key)
	})
	for key, value := range attempt.annotations() {
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, key, value)
	}
	return l.Client.Patch(ctx, changed, client.MergeFromWithOptions(lease, client.MergeFromWithOptimisticLock{}))
}

// spec returns the spec of a Lease that is held; nil means that it is free.
func (l *Lock) spec(holder *Holder) coordinationv1.LeaseSpec {
	if holder == nil {
		return coordinationv1.LeaseSpec{}
	}
	now := metav1.NewMicroTime(l.Clock.Now())
	identity := holder.identity()
	return coordinationv1.LeaseSpec{HolderIdentity: &identity, AcquireTime: &now}
}

// HolderOf returns the holder that a Lease names; the zero Holder means that it is free.
func HolderOf(lease *coordinationv1.Lease) Holder {
	if lease.Spec.HolderIdentity == nil {
		return Holder{}
	}
	return parseHolder(*lease.Spec.HolderIdentity)
}

// AttemptOf returns the attempt for which a Lease is held; zero means that it names none.
func AttemptOf(lease *coordinationv1.Lease) Attempt {
	number, err := strconv.ParseInt(lease.Annotations[annotationNumber], 10, 32)
	if err != nil {
		number = 0
	}
	return Attempt{
		Key: lease.Annotations[annotationAttempt], Version: lease.Annotations[annotationVersion], Type: lease.Annotations[annotationType],
		Requested: lease.Annotations[annotationRequested] == "true", Number: max(0, int32(number)),
	}
}
