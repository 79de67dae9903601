// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lock_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
)

// commenced holds what the Lease notes of an upgrade that has commenced.
var commenced = lock.Attempt{
	Key: "2020-06-20T12:00:00Z", Version: "4.4.6", Type: "OSD", Requested: true, Channels: "stable-4.4", FormerChannel: "fast-4.4",
	Image: lock.NoImage, PrecedingVersion: "4.4.5", CommenceTime: "2020-06-20T12:10:00Z", Notified: "Started,Commenced",
}

// lease returns the Lease of the API server.
func (w *world) lease(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	var lease coordinationv1.Lease
	if err := w.server.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: lock.Name}, &lease); err != nil {
		t.Fatal(err)
	}
	return &lease
}

// The note of an upgrade that continues without its object is for an object of its name, until another attempt commences.
func TestNoteOfAnUpgradeThatContinues(t *testing.T) {
	t.Parallel()
	again := me
	again.UID = "3"
	w := newWorld(t, nil)
	expect := func(holder lock.Holder, want lock.Attempt) {
		t.Helper()
		got, found, err := w.Continuing(t.Context(), holder)
		if diff := cmp.Diff(want, got); diff != "" || found != (want != lock.Attempt{}) || err != nil {
			t.Errorf("found %t, %v (-want +got):\n%s", found, err, diff)
		}
	}
	acquire := func(holder lock.Holder, attempt lock.Attempt) {
		t.Helper()
		if current, err := w.Acquire(t.Context(), holder, attempt); err != nil || current != nil {
			t.Fatalf("the holder is %v, %v", current, err)
		}
	}
	acquire(me, commenced)
	if err := w.Release(t.Context(), me, commenced); err != nil {
		t.Fatal(err)
	}
	expect(again, commenced)
	expect(me, lock.Attempt{})
	expect(other, lock.Attempt{})

	acquire(other, attempt) // it has not commenced
	expect(again, commenced)
	if err := w.Release(t.Context(), other, lock.Attempt{}); err != nil {
		t.Fatal(err)
	}
	expect(again, commenced)
	acquire(other, commenced)
	expect(again, lock.Attempt{})
}

// An object that takes over the lock of an earlier object of its name finds the note.
func TestNoteIsKeptByAnObjectOfTheSameName(t *testing.T) {
	t.Parallel()
	again := me
	again.UID = "3"
	w := newWorld(t, nil)
	if _, err := w.Acquire(t.Context(), me, commenced); err != nil {
		t.Fatal(err)
	}
	w.InProgress = func(context.Context, lock.Holder, lock.Attempt) (bool, error) { return false, nil }
	w.Abandon = func(context.Context, lock.Holder, lock.Attempt) (bool, error) { return true, nil }
	if current, err := w.Acquire(t.Context(), again, attempt); err != nil || current != nil {
		t.Fatalf("the holder is %v, %v", current, err)
	}
	if got, found, err := w.Continuing(t.Context(), again); got != commenced || !found || err != nil {
		t.Errorf("got %+v, found %t, %v", got, found, err)
	}
}

// The last release knows nothing of notes. What it leaves behind of another holder or attempt does not count, and what it
// has written counts without a note.
func TestNoteOfAnotherRelease(t *testing.T) {
	t.Parallel()
	const prefix = "upgrade.managed.openshift.io/"
	for name, tc := range map[string]struct {
		change func(*coordinationv1.Lease)
		want   lock.Attempt
	}{
		"as it was": {func(*coordinationv1.Lease) {}, commenced},
		"without a note": {func(l *coordinationv1.Lease) { delete(l.Annotations, prefix+"note") }, lock.Attempt{
			Key: commenced.Key, Version: commenced.Version, Type: commenced.Type, Requested: true, Channels: commenced.Channels, FormerChannel: commenced.FormerChannel,
		}},
		"another attempt": {func(l *coordinationv1.Lease) { l.Annotations[prefix+"attempt"] = "2020-06-21T12:00:00Z" }, lock.Attempt{
			Key: "2020-06-21T12:00:00Z", Version: commenced.Version, Type: commenced.Type, Requested: true, Channels: commenced.Channels, FormerChannel: commenced.FormerChannel,
		}},
		"another holder": {func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = new("UpgradeConfig/b/theirs/2") }, lock.Attempt{
			Key: commenced.Key, Version: commenced.Version, Type: commenced.Type, Requested: true, Channels: commenced.Channels, FormerChannel: commenced.FormerChannel,
		}},
		"no JSON": {func(l *coordinationv1.Lease) { l.Annotations[prefix+"note"] = "{" }, lock.Attempt{
			Key: commenced.Key, Version: commenced.Version, Type: commenced.Type, Requested: true, Channels: commenced.Channels, FormerChannel: commenced.FormerChannel,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			if _, err := w.Acquire(t.Context(), me, commenced); err != nil {
				t.Fatal(err)
			}
			lease := w.lease(t)
			tc.change(lease)
			if diff := cmp.Diff(tc.want, lock.AttemptOf(lease)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoteIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	long := commenced
	long.Image = strings.Repeat("x", 1<<20)
	for range 3 {
		if _, err := w.Acquire(t.Context(), me, long); err != nil {
			t.Fatal(err)
		}
	}
	if size := w.lease(t).Size(); size > 8192 || w.writes != 1 {
		t.Errorf("%d bytes after %d writes", size, w.writes)
	}
	if err := w.Release(t.Context(), me, long); err != nil || w.lease(t).Size() > 8192 {
		t.Errorf("%v, %d bytes", err, w.lease(t).Size())
	}
}
