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
// The package does not know what an upgrade is or when it is finished; see Holders.
package lock

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Name is the name of the Lease of the only cluster, and begins the name of the Lease of one of several.
const Name = "cluster-upgrade"

// The annotations of a held Lease. An operator of the last release knows all but the note, whose text
// names the holder and the attempt, so one that such an operator has left behind does not count.
const (
	annotationAttempt = "upgrade.managed.openshift.io/attempt"
	annotationVersion = "upgrade.managed.openshift.io/version"
	annotationType    = "upgrade.managed.openshift.io/type"

	annotationRequested = "upgrade.managed.openshift.io/requested"
	annotationNumber    = "upgrade.managed.openshift.io/attempt-number"
	annotationChannels  = "upgrade.managed.openshift.io/channels"
	annotationFormer    = "upgrade.managed.openshift.io/former-channel"

	annotationNote = "upgrade.managed.openshift.io/note"
)

// annotations are all of them.
var annotations = []string{
	annotationAttempt, annotationVersion, annotationType, annotationRequested, annotationNumber, annotationChannels, annotationFormer, annotationNote,
}

// annotationContinues is the annotation of a Lease with the note of an upgrade that has commenced and continues without
// its object.
const annotationContinues = "upgrade.managed.openshift.io/continues"

// maxNote bounds a note, in bytes. A longer note is not written.
const maxNote = 4096

// NoImage is noted if the version was requested without an image.
const NoImage = "none"

// Attempt identifies the attempt for which a holder acquired the lock. The zero Attempt means
// that the Lease does not name one: it was written by an earlier release, or by another client.
type Attempt struct {
	// Key identifies the attempt among the attempts of its object, for example the time of its start.
	Key string `json:"key,omitempty"`
	// Version is the version to which the attempt leads; empty if it leads to none.
	Version string `json:"version,omitempty"`
	// Type names the runbook.
	Type string `json:"type,omitempty"`
	// Requested reports that the update may have been requested from the cluster for this attempt.
	Requested bool `json:"requested,omitempty"`
	// Number is the number of the attempt among the attempts of its object; 0 means that it is not noted.
	Number int32 `json:"number,omitempty"`
	// Channels are the channels that the attempt has requested, separated by commas, and FormerChannel is the
	// one before them. An attempt that has requested none has no former channel to restore.
	Channels      string `json:"channels,omitempty"`
	FormerChannel string `json:"formerChannel,omitempty"`

	// Image is the image that was requested, NoImage if the version alone was; empty if it is not noted.
	Image string `json:"image,omitempty"`
	// PrecedingVersion is the version that was installed before, and CommenceTime is when the upgrade commenced.
	PrecedingVersion string `json:"precedingVersion,omitempty"`
	CommenceTime     string `json:"commenceTime,omitempty"`
	// Notified are the milestones that were notified, separated by commas.
	Notified string `json:"notified,omitempty"`
}

// note is an attempt with the identity of its holder.
type note struct {
	Holder string `json:"holder"`
	Attempt
}

// String returns the text of the annotation; empty if it is too long.
func (n note) String() string {
	text, err := json.Marshal(n)
	if err != nil || len(text) > maxNote {
		return ""
	}
	return string(text)
}

// noteOf returns the note in an annotation; the zero note if there is none.
func noteOf(lease *coordinationv1.Lease, annotation string) note {
	var n note
	if err := json.Unmarshal([]byte(lease.Annotations[annotation]), &n); err != nil {
		return note{}
	}
	return n
}

// Is reports whether both are the same attempt.
func (a Attempt) Is(other Attempt) bool {
	return a.Key == other.Key && a.Version == other.Version && a.Type == other.Type
}

// ofLastRelease returns what a Lease of the last release notes about the attempt.
func (a Attempt) ofLastRelease() Attempt {
	a.Image, a.PrecedingVersion, a.CommenceTime, a.Notified = "", "", "", ""
	return a
}

// fit returns the attempt without what does not fit into the note.
func (a Attempt) fit(holder Holder) Attempt {
	if (note{holder.identity(), a}).String() == "" {
		return a.ofLastRelease()
	}
	return a
}

func (a Attempt) annotations(holder Holder) map[string]string {
	notes := map[string]string{annotationAttempt: a.Key, annotationVersion: a.Version, annotationType: a.Type, annotationChannels: a.Channels, annotationFormer: a.FormerChannel}
	if a.Requested {
		notes[annotationRequested] = "true"
	}
	if a.Number > 0 {
		notes[annotationNumber] = strconv.Itoa(int(a.Number))
	}
	if a != a.ofLastRelease() {
		notes[annotationNote] = note{holder.identity(), a}.String()
	}
	maps.DeleteFunc(notes, func(_, value string) bool { return value == "" })
	return notes
}

// Lock is the upgrade lock of one namespace.
type Lock struct {
	// Client reads the Lease from a cache and writes it.
	Client client.Client
	// Key names the Lease.
	Key client.ObjectKey
	// Former is the namespace in which the last release had the Lease of the cluster, with the name Name;
	// empty if there was none. Others may write there, so Lease counts only if its holder is of the same
	// kind, is in that namespace, and is in progress. All others are deleted.
	Former string
	// Labels are the labels of a new Lease.
	Labels map[string]string
	// DeleteFree deletes the Lease once it is free; otherwise it stays, without a holder.
	DeleteFree bool
	// Clock provides the time at which the lock is acquired.
	Clock clock.PassiveClock
	// InProgress reports whether the upgrade of a holder is still in progress. An error means that
	// it is unknown: the holder then keeps the lock.
	InProgress func(context.Context, Holder, Attempt) (bool, error)
	// Abandon cleans up after a holder whose upgrade is not in progress, unless it still exists; nil if there is
	// nothing to do. It is called before its lock is released or acquired by another one, and reports whether the
	// upgrade has commenced and continues. If it returns an error, the lock stays.
	Abandon Abandon

	written string // the resource version of the last write; empty if there was none
}

// Acquire acquires the lock for an attempt of the holder. It returns the current holder if that is
// another one, and nil if the lock is acquired or was held already.
func (l *Lock) Acquire(ctx context.Context, holder Holder, attempt Attempt) (*Holder, error) {
	return l.acquire(ctx, holder, attempt, func(lease *coordinationv1.Lease, attempt Attempt) bool { return AttemptOf(lease) == attempt })
}

// Renew does what Acquire does, and changes the Lease in any case.
func (l *Lock) Renew(ctx context.Context, holder Holder, attempt Attempt) (*Holder, error) {
	return l.acquire(ctx, holder, attempt, func(*coordinationv1.Lease, Attempt) bool { return false })
}

// acquire acquires the lock. Current reports whether the Lease of the holder stays as it is.
func (l *Lock) acquire(ctx context.Context, holder Holder, attempt Attempt, current func(*coordinationv1.Lease, Attempt) bool) (*Holder, error) {
	attempt = attempt.fit(holder)
	if l.Former != "" {
		if other, err := l.formerHolder(ctx, holder); err != nil || other != nil {
			return other, err
		}
	}
	lease, err := l.get(ctx, l.Key)
	if err != nil {
		return nil, err
	}
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
	err = l.write(ctx, lease, &holder, attempt, continues)
	if apierrors.IsNotFound(err) { // it was released since it was read
		return nil, l.create(ctx, holder, attempt)
	}
	if err != nil {
		return nil, fmt.Errorf("acquiring the lease %s: %w", l.Key.Name, err)
	}
	return nil, nil
}

// Replace replaces what the Lease notes about the attempt of its holder, unless the Lease has changed since it had that
// resource version, or since this Lock has written it.
func (l *Lock) Replace(ctx context.Context, version string, holder Holder, attempt Attempt) (*Holder, error) {
	expected := cmp.Or(l.written, version)
	return l.acquire(ctx, holder, attempt, func(lease *coordinationv1.Lease, attempt Attempt) bool {
		lease.ResourceVersion = expected // the write is conditional on it
		return AttemptOf(lease) == attempt
	})
}

// Held reports whether that holder holds the lock, and for which attempt.
func (l *Lock) Held(ctx context.Context, holder Holder) (Attempt, bool, error) {
	lease, err := l.get(ctx, l.Key)
	if err != nil || lease == nil || !HolderOf(lease).Is(holder) {
		return Attempt{}, false, err
	}
	return AttemptOf(lease), true, nil
}

// Continuing returns what the Lease notes about an upgrade that continues without its object, which had the name of
// the holder and another UID; false if there is none.
func (l *Lock) Continuing(ctx context.Context, holder Holder) (Attempt, bool, error) {
	lease, err := l.get(ctx, l.Key)
	if err != nil || lease == nil {
		return Attempt{}, false, err
	}
	n := noteOf(lease, annotationContinues)
	if former := parseHolder(n.Holder); !former.sameName(holder) || former.UID == holder.UID {
		return Attempt{}, false, nil
	}
	return n.Attempt, true, nil
}

// ResourceVersion returns the version of the Lease; empty if it does not exist.
func (l *Lock) ResourceVersion(ctx context.Context) (string, error) {
	lease, err := l.get(ctx, l.Key)
	if err != nil || lease == nil {
		return "", err
	}
	return lease.ResourceVersion, nil
}

// Release releases the lock if that holder holds it. The Lease keeps the note of an attempt that continues; the zero
// Attempt means that none does.
func (l *Lock) Release(ctx context.Context, holder Holder, continues Attempt) error {
	lease, err := l.get(ctx, l.Key)
	if err != nil || lease == nil || !HolderOf(lease).Is(holder) {
		return err
	}
	if err := l.free(ctx, lease, continues); err != nil {
		return fmt.Errorf("releasing the lease %s: %w", l.Key.Name, err)
	}
	return nil
}

// ReleaseOrphaned releases the lock if its holder has the name of that one and another UID, and its
// upgrade is not in progress: it was deleted before the deletion could wait for the upgrade.
func (l *Lock) ReleaseOrphaned(ctx context.Context, holder Holder) error {
	lease, err := l.get(ctx, l.Key)
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
	continues, err := l.abandon(ctx, lease)
	if err != nil {
		return err
	}
	if err := l.free(ctx, lease, continues); err != nil {
		return fmt.Errorf("releasing the lease %s of %s, which does not exist: %w", l.Key.Name, current, err)
	}
	return nil
}

// abandon cleans up after the holder of a Lease, unless it exists, and returns its attempt if that continues.
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

func (l *Lock) get(ctx context.Context, key client.ObjectKey) (*coordinationv1.Lease, error) {
	var lease coordinationv1.Lease
	err := l.Client.Get(ctx, key, &lease)
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
	l.written = lease.ResourceVersion
	return nil
}

// free removes the holder, or deletes the Lease, unless another client has changed it since it was read. A Lease that
// is not deleted keeps the note of an attempt that continues.
func (l *Lock) free(ctx context.Context, lease *coordinationv1.Lease, continues Attempt) error {
	if !l.DeleteFree {
		return l.write(ctx, lease, nil, Attempt{}, continues)
	}
	return l.delete(ctx, lease)
}

// delete deletes a Lease unless it has changed since it was read.
func (l *Lock) delete(ctx context.Context, lease *coordinationv1.Lease) error {
	unchanged := client.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion}
	return client.IgnoreNotFound(l.Client.Delete(ctx, lease, unchanged))
}

// formerHolder returns the holder of the Lease of the last release, and deletes that Lease if it does not
// count.
func (l *Lock) formerHolder(ctx context.Context, holder Holder) (*Holder, error) {
	lease, err := l.get(ctx, client.ObjectKey{Namespace: l.Former, Name: Name})
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

// write changes the holder, nil if it has none, and its attempt unless another client has changed the Lease since it was read.
// The Lease keeps the note of an attempt of the former holder that continues. Once another attempt has commenced, no former
// one does.
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
		// the Lease changes also if the clock shows the same time
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
	l.written = changed.ResourceVersion
	return nil
}

// spec returns the spec of a Lease that is held, or nil if it is free.
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

// AttemptOf returns the attempt for which a Lease is held, or zero if it names none.
func AttemptOf(lease *coordinationv1.Lease) Attempt {
	number, err := strconv.ParseInt(lease.Annotations[annotationNumber], 10, 32)
	if err != nil {
		number = 0
	}
	attempt := Attempt{
		Key: lease.Annotations[annotationAttempt], Version: lease.Annotations[annotationVersion], Type: lease.Annotations[annotationType],
		Requested: lease.Annotations[annotationRequested] == "true", Number: max(0, int32(number)),
		Channels: lease.Annotations[annotationChannels], FormerChannel: lease.Annotations[annotationFormer],
	}
	if n := noteOf(lease, annotationNote); n.Holder == ptr.Deref(lease.Spec.HolderIdentity, "") && n.ofLastRelease() == attempt {
		return n.Attempt
	}
	return attempt
}
