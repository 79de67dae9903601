// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lock lets one upgrade at a time run on a cluster. The lock is a Lease
// that names its holder: kind, namespace, name and uid. It has no expiry; it is
// broken if its holder no longer exists.
//
// It does not know what an upgrade is, nor when one is over.
package lock

import (
	"context"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Name is the name of the Lease.
const Name = "cluster-upgrade"

// Holder is the object that holds the lock.
type Holder struct{ Kind, Namespace, Name, UID string }

// String is how a person would name the holder.
func (h Holder) String() string {
	if h.Name == "" {
		return fmt.Sprintf("%q, which is no object and holds the lease %s", h.Kind, Name)
	}
	return h.Kind + " " + h.Namespace + "/" + h.Name
}

func (h Holder) identity() string {
	return strings.Join([]string{h.Kind, h.Namespace, h.Name, h.UID}, "/")
}

// parse reads an identity. Of a holder that was not written by us, that is all that is known.
func parse(identity string) Holder {
	parts := strings.SplitN(identity, "/", 4)
	if len(parts) != 4 {
		return Holder{Kind: identity}
	}
	return Holder{Kind: parts[0], Namespace: parts[1], Name: parts[2], UID: parts[3]}
}

// Lock is the lock of the cluster on which the operator runs.
type Lock struct {
	// Client reads the Lease from a cache and writes it.
	Client client.Client
	// Namespace is where the Lease is.
	Namespace string
	// Clock tells when the lock was taken.
	Clock clock.PassiveClock
	// HolderInProgress says whether a holder still exists.
	HolderInProgress func(context.Context, Holder) (bool, error)
}

// Acquire takes the lock for that holder. If another one has it, it returns
// that one; if it returns nil, the lock is taken, or was before.
func (l *Lock) Acquire(ctx context.Context, holder Holder) (*Holder, error) {
	lease, err := l.read(ctx)
	if err != nil {
		return nil, err
	}
	if lease == nil {
		return nil, l.create(ctx, holder)
	}
	switch current := holderIdentity(lease); current {
	case holder.identity():
		return nil, nil
	case "":
	default:
		other := parse(current)
		inProgress, err := l.HolderInProgress(ctx, other)
		if err != nil {
			return nil, fmt.Errorf("finding out whether %s, which holds the lease %s, still exists: %w", other, Name, err)
		}
		if inProgress {
			return &other, nil
		}
	}
	if err := l.transfer(ctx, lease, holder.identity()); err != nil {
		return nil, fmt.Errorf("taking the lease %s: %w", Name, err)
	}
	return nil, nil
}

// Release gives the lock back, if that holder has it.
func (l *Lock) Release(ctx context.Context, holder Holder) error {
	lease, err := l.read(ctx)
	if err != nil || lease == nil || holderIdentity(lease) != holder.identity() {
		return err
	}
	if err := l.transfer(ctx, lease, ""); err != nil {
		return fmt.Errorf("releasing the lease %s: %w", Name, err)
	}
	return nil
}

func (l *Lock) read(ctx context.Context) (*coordinationv1.Lease, error) {
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

func (l *Lock) create(ctx context.Context, holder Holder) error {
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: Name},
		Spec:       l.spec(holder.identity()),
	}
	if err := l.Client.Create(ctx, lease); err != nil {
		return fmt.Errorf("creating the lease %s: %w", Name, err)
	}
	return nil
}

// transfer hands the lease over, unless somebody else was faster.
func (l *Lock) transfer(ctx context.Context, lease *coordinationv1.Lease, identity string) error {
	changed := lease.DeepCopy()
	changed.Spec = l.spec(identity)
	return l.Client.Patch(ctx, changed, client.MergeFromWithOptions(lease, client.MergeFromWithOptimisticLock{}))
}

func (l *Lock) spec(identity string) coordinationv1.LeaseSpec {
	if identity == "" {
		return coordinationv1.LeaseSpec{}
	}
	now := metav1.NewMicroTime(l.Clock.Now())
	return coordinationv1.LeaseSpec{HolderIdentity: &identity, AcquireTime: &now}
}

func holderIdentity(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}
