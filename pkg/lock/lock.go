// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lock lets one upgrade at a time run on a cluster, whatever its kind. The lock is a Lease that names
// its holder (group, kind, namespace, name, UID) and, in annotations, the attempt of the holder. It never
// expires. It is held while the upgrade of the holder is in progress, and any operator may break it afterwards.
//
// There is one lock per namespace. An operator that upgrades its own cluster uses its own namespace; a hub uses
// the namespace of each cluster.
//
// The Lease is also evidence. Only operators may write it, so a Lease with the UID of an object proves that an
// attempt of that object was started, and its target, even if the status of the object was lost. A finalizer
// proves nothing, because the creator of an object can preset it.
//
// Each write depends on a resource version: of the cached Lease, or of the last write of this process. If the
// API server accepts the write, nothing has changed since. Renew, and methods with Confirmed in their names,
// read the Lease from the API server only if there is nothing to write, the write is refused, or the cache
// shows another holder.
//
// The package does not know what an upgrade is or when it is finished; see Holders.
package lock

import (
	"context"
	"fmt"
	"maps"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Name is the name of the Lease of the only cluster, and the prefix of the names if there are several clusters.
const Name = "cluster-upgrade"

// Lock is the upgrade lock of one namespace.
type Lock struct {
	// Client reads the Lease from a cache and writes it.
	Client client.Client
	// Live reads the Lease from the API server.
	Live client.Reader
	// Key names the Lease.
	Key client.ObjectKey
	// Former is the namespace of the Lease of the cluster in the last release, named Name, or empty if there
	// was none. Others may write there, so that Lease counts only if its holder is of the same kind, is in that
	// namespace, and is in progress. Otherwise, it is deleted.
	Former string
	// Labels are the labels of a new Lease.
	Labels map[string]string
	// DeleteFree deletes a free Lease. Otherwise, the Lease stays without a holder.
	DeleteFree bool
	// Clock provides the acquire time.
	Clock clock.PassiveClock
	// InProgress reports whether the upgrade of a holder is still in progress. After an error, the holder keeps
	// the lock.
	InProgress func(context.Context, Holder, Attempt) (bool, error)
	// Abandon cleans up after a holder that no longer exists, before another one acquires the lock, or it is
	// released. It reports whether the upgrade has commenced and continues. After an error, the lock stays.
	// Abandon may be nil.
	Abandon Abandon

	written *coordinationv1.Lease // as this Lock last wrote it, or nil
}

// Acquire acquires the lock for an attempt of the holder, based on the cache. It returns another current
// holder, or nil if the lock is acquired or was already held.
func (l *Lock) Acquire(ctx context.Context, holder Holder, attempt Attempt) (*Holder, error) {
	lease, err := l.cached(ctx)
	if err != nil {
		return nil, err
	}
	return l.acquire(ctx, lease, holder, attempt, isNoted)
}

// AcquireConfirmed is Acquire with the confirmation of the API server.
func (l *Lock) AcquireConfirmed(ctx context.Context, holder Holder, attempt Attempt) (*Holder, error) {
	return l.confirm(ctx, holder, attempt, isNoted)
}

// Renew is AcquireConfirmed, but always changes the Lease.
func (l *Lock) Renew(ctx context.Context, holder Holder, attempt Attempt) (*Holder, error) {
	return l.confirm(ctx, holder, attempt, func(*coordinationv1.Lease, Attempt) bool { return false })
}

func isNoted(lease *coordinationv1.Lease, attempt Attempt) bool { return AttemptOf(lease) == attempt }

func (l *Lock) confirm(ctx context.Context, holder Holder, attempt Attempt, current func(*coordinationv1.Lease, Attempt) bool) (*Holder, error) {
	if l.Former != "" {
		if other, err := l.formerHolder(ctx, holder); err != nil || other != nil {
			return other, err
		}
	}
	lease, err := l.latest(ctx)
	if err != nil {
		return nil, err
	}
	if owner := HolderOf(lease); owner == (Holder{}) || owner.Is(holder) {
		_, err := l.acquire(ctx, lease, holder, attempt, current)
		switch {
		case err == nil && l.written != nil:
			return nil, nil
		case err != nil && !isOutdated(err):
			return nil, err
		}
	}
	if lease, err = l.live(ctx); err != nil {
		return nil, err
	}
	return l.acquire(ctx, lease, holder, attempt, current)
}

// isOutdated reports whether the API server has refused a write because the Lease has changed since it was
// read.
func isOutdated(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

// acquire acquires the lock, based on a Lease or nil. Current reports whether the Lease of the holder may stay
// as it is.
func (l *Lock) acquire(
	ctx context.Context, lease *coordinationv1.Lease, holder Holder, attempt Attempt, current func(*coordinationv1.Lease, Attempt) bool,
) (*Holder, error) {
	attempt = attempt.fit(holder)
	if lease == nil {
		return nil, l.create(ctx, holder, attempt)
	}
	var continues Attempt
	switch other := HolderOf(lease); {
	case other == (Holder{}):
	case other.Is(holder):
		if current(lease, attempt) {
			return nil, nil
		}
	default:
		inProgress, err := l.inProgress(ctx, other, AttemptOf(lease))
		if err != nil {
			return nil, err
		}
		if inProgress {
			return &other, nil
		}
		if continues, err = l.abandon(ctx, lease); err != nil {
			return nil, err
		}
	}
	err := l.write(ctx, lease, &holder, attempt, continues)
	if apierrors.IsNotFound(err) { // it was released since it was read
		return nil, l.create(ctx, holder, attempt)
	}
	if err != nil {
		return nil, fmt.Errorf("acquiring the lease %s: %w", l.Key.Name, err)
	}
	return nil, nil
}

// Replace replaces the noted attempt of the holder, unless the Lease has changed since it had that resource
// version, or since this Lock last wrote it.
func (l *Lock) Replace(ctx context.Context, version string, holder Holder, attempt Attempt) (*Holder, error) {
	lease, err := l.live(ctx)
	if err != nil {
		return nil, err
	}
	return l.acquire(ctx, lease, holder, attempt, func(lease *coordinationv1.Lease, attempt Attempt) bool {
		lease.ResourceVersion = version // the write is conditional on it
		if l.written != nil {
			lease.ResourceVersion = l.written.ResourceVersion
		}
		return isNoted(lease, attempt)
	})
}

// Held reports whether the holder holds the lock, and for which attempt, based on the cache.
func (l *Lock) Held(ctx context.Context, holder Holder) (Attempt, bool, error) {
	return held(ctx, l.cached, holder)
}

// HeldLive is Held, based on the API server.
func (l *Lock) HeldLive(ctx context.Context, holder Holder) (Attempt, bool, error) {
	return held(ctx, l.live, holder)
}

func held(ctx context.Context, read readLease, holder Holder) (Attempt, bool, error) {
	lease, err := read(ctx)
	if err != nil || lease == nil || !HolderOf(lease).Is(holder) {
		return Attempt{}, false, err
	}
	return AttemptOf(lease), true, nil
}

// Continuing returns the noted attempt that continues without its object, and whether there is one. The object
// had the name of the holder and another UID. Continuing is based on the cache.
func (l *Lock) Continuing(ctx context.Context, holder Holder) (Attempt, bool, error) {
	return continuing(ctx, l.cached, holder)
}

// ContinuingConfirmed is Continuing with the confirmation of the API server.
func (l *Lock) ContinuingConfirmed(ctx context.Context, holder Holder) (Attempt, bool, error) {
	read := l.live
	if l.written != nil {
		read = l.latest
	}
	return continuing(ctx, read, holder)
}

func continuing(ctx context.Context, read readLease, holder Holder) (Attempt, bool, error) {
	lease, err := read(ctx)
	if err != nil || lease == nil {
		return Attempt{}, false, err
	}
	n := noteOf(lease, annotationContinues)
	if former := parseHolder(n.Holder); !former.sameName(holder) || former.UID == holder.UID {
		return Attempt{}, false, nil
	}
	return n.Attempt, true, nil
}

// ResourceVersion returns the version of the cached Lease, or an empty string if there is none.
func (l *Lock) ResourceVersion(ctx context.Context) (string, error) {
	lease, err := l.cached(ctx)
	if err != nil || lease == nil {
		return "", err
	}
	return lease.ResourceVersion, nil
}

// Release releases the lock if the holder holds it, based on the cache. The Lease keeps the note of an attempt
// that continues, if it is not zero.
func (l *Lock) Release(ctx context.Context, holder Holder, continues Attempt) error {
	_, err := l.release(ctx, l.cached, holder, continues)
	return err
}

// ReleaseConfirmed is Release with the confirmation of the API server.
func (l *Lock) ReleaseConfirmed(ctx context.Context, holder Holder, continues Attempt) error {
	released, err := l.release(ctx, l.latest, holder, continues)
	if !released && (err == nil || isOutdated(err)) {
		_, err = l.release(ctx, l.live, holder, continues)
	}
	return err
}

func (l *Lock) release(ctx context.Context, read readLease, holder Holder, continues Attempt) (released bool, err error) {
	lease, err := read(ctx)
	if err != nil || lease == nil || !HolderOf(lease).Is(holder) {
		return false, err
	}
	if err := l.free(ctx, lease, continues); err != nil {
		return false, fmt.Errorf("releasing the lease %s: %w", l.Key.Name, err)
	}
	return true, nil
}

// ReleaseOrphaned releases a lock whose holder has the given name and another UID if its upgrade is not in
// progress: the holder was deleted before the deletion could wait for the upgrade.
func (l *Lock) ReleaseOrphaned(ctx context.Context, holder Holder) error {
	lease, err := l.cached(ctx)
	if err != nil {
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
	continues, err := l.abandon(ctx, lease)
	if err != nil {
		return err
	}
	if err := l.free(ctx, lease, continues); err != nil {
		return fmt.Errorf("releasing the lease %s of %s, which does not exist: %w", l.Key.Name, current, err)
	}
	return nil
}

// abandon cleans up after the holder of a Lease if it no longer exists, and returns its attempt if that
// continues.
func (l *Lock) abandon(ctx context.Context, lease *coordinationv1.Lease) (Attempt, error) {
	if l.Abandon == nil {
		return Attempt{}, nil
	}
	holder, attempt := HolderOf(lease), AttemptOf(lease)
	continues, err := l.Abandon(ctx, holder, attempt)
	if err != nil {
		return Attempt{}, fmt.Errorf("cleaning up after %s, which does not exist: %w", holder, err)
	}
	if !continues {
		return Attempt{}, nil
	}
	return attempt, nil
}

func (l *Lock) inProgress(ctx context.Context, current Holder, attempt Attempt) (bool, error) {
	inProgress, err := l.InProgress(ctx, current, attempt)
	if err != nil {
		return false, fmt.Errorf("checking whether the upgrade of %s, which holds the lease %s, is in progress: %w", current, l.Key.Name, err)
	}
	return inProgress, nil
}

// readLease returns the Lease; nil if it does not exist.
type readLease func(context.Context) (*coordinationv1.Lease, error)

func (l *Lock) cached(ctx context.Context) (*coordinationv1.Lease, error) {
	return get(ctx, l.Client, l.Key)
}

func (l *Lock) live(ctx context.Context) (*coordinationv1.Lease, error) {
	return get(ctx, l.Live, l.Key)
}

// latest returns the Lease as this Lock last wrote it, or else the cached one.
func (l *Lock) latest(ctx context.Context) (*coordinationv1.Lease, error) {
	if l.written != nil {
		return l.written, nil
	}
	return l.cached(ctx)
}

func get(ctx context.Context, r client.Reader, key client.ObjectKey) (*coordinationv1.Lease, error) {
	var lease coordinationv1.Lease
	err := r.Get(ctx, key, &lease)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting the lease %s: %w", key.Name, err)
	}
	return &lease, nil
}

func (l *Lock) create(ctx context.Context, holder Holder, attempt Attempt) error {
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.Key.Namespace, Name: l.Key.Name, Labels: l.Labels, Annotations: attempt.annotations(holder)},
		Spec:       l.spec(&holder),
	}
	if err := l.Client.Create(ctx, lease); err != nil {
		return fmt.Errorf("creating the lease %s: %w", l.Key.Name, err)
	}
	l.written = lease
	return nil
}

// free removes the holder, or deletes the Lease, unless it has changed since it was read. A Lease that stays
// keeps the note of an attempt that continues.
func (l *Lock) free(ctx context.Context, lease *coordinationv1.Lease, continues Attempt) error {
	if !l.DeleteFree {
		return l.write(ctx, lease, nil, Attempt{}, continues)
	}
	l.written = nil
	return l.delete(ctx, lease)
}

// delete deletes a Lease unless it has changed since it was read.
func (l *Lock) delete(ctx context.Context, lease *coordinationv1.Lease) error {
	unchanged := client.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion}
	return client.IgnoreNotFound(l.Client.Delete(ctx, lease, unchanged))
}

// formerHolder returns the holder of the Lease of the last release, or deletes that Lease if it does not count.
func (l *Lock) formerHolder(ctx context.Context, holder Holder) (*Holder, error) {
	lease, err := get(ctx, l.Live, client.ObjectKey{Namespace: l.Former, Name: Name})
	if err != nil || lease == nil {
		return nil, err
	}
	current := HolderOf(lease)
	if !current.Is(holder) && current.Group == holder.Group && current.Kind == holder.Kind && current.Namespace == l.Former {
		switch inProgress, err := l.inProgress(ctx, current, AttemptOf(lease)); {
		case err != nil:
			return nil, err
		case inProgress:
			return &current, nil
		}
	}
	if err := l.delete(ctx, lease); err != nil {
		return nil, fmt.Errorf("deleting the lease %s/%s of an earlier release: %w", l.Former, Name, err)
	}
	return nil, nil
}

// write changes the holder, nil for none, and its attempt, unless the Lease has changed since it was read. The
// Lease keeps the note of an attempt of the former holder that continues, until another attempt commences.
func (l *Lock) write(ctx context.Context, lease *coordinationv1.Lease, holder *Holder, attempt, continues Attempt) error {
	changed := lease.DeepCopy()
	changed.Spec = l.spec(holder)
	maps.DeleteFunc(changed.Annotations, func(key, _ string) bool { return slices.Contains(annotations, key) })
	if attempt.CommenceTime != "" {
		delete(changed.Annotations, annotationContinues)
	}
	notes := map[string]string{}
	if holder != nil {
		notes = attempt.annotations(*holder)
		// the Lease changes even if the clock shows the same time
		changed.Spec.LeaseTransitions = new(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1)
	}
	if former := HolderOf(lease); continues != (Attempt{}) && attempt.CommenceTime == "" && !l.DeleteFree {
		notes[annotationContinues] = note{former.identity(), continues.fit(former)}.String()
	}
	for key, value := range notes {
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, key, value)
	}
	if err := l.Client.Patch(ctx, changed, client.MergeFromWithOptions(lease, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	l.written = changed
	return nil
}

// spec returns the spec of a Lease with that holder, or of a free one.
func (l *Lock) spec(holder *Holder) coordinationv1.LeaseSpec {
	if holder == nil {
		return coordinationv1.LeaseSpec{}
	}
	now := metav1.NewMicroTime(l.Clock.Now())
	identity := holder.identity()
	return coordinationv1.LeaseSpec{HolderIdentity: &identity, AcquireTime: &now}
}

// HolderOf returns the holder of a Lease, or zero if it is free or nil.
func HolderOf(lease *coordinationv1.Lease) Holder {
	if lease == nil || lease.Spec.HolderIdentity == nil {
		return Holder{}
	}
	return parseHolder(*lease.Spec.HolderIdentity)
}
