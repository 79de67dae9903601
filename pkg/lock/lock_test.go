// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

const (
	namespace = "operator"
	group     = "upgrade.managed.openshift.io"
)

var (
	me    = lock.Holder{Group: group, Kind: "UpgradeConfig", Namespace: "a", Name: "mine", UID: "1"}
	other = lock.Holder{Group: group, Kind: "UpgradeConfig", Namespace: "b", Name: "theirs", UID: "2"}
	noon  = time.Date(2020, 6, 20, 12, 0, 0, 0, time.UTC)

	errDown = errors.New("no answer")
)

// world is an API server with the Lease, or without one if identity is nil. Only the named holders
// exist.
type world struct {
	lock.Lock
	server client.WithWatch
	writes int
}

func newWorld(t *testing.T, identity *string, inProgress ...lock.Holder) *world {
	t.Helper()
	w := &world{server: simulation.NewFakeClient(t)}
	if identity != nil {
		w.server = simulation.NewFakeClient(t, lease(identity))
	}
	w.Lock = lock.Lock{
		Client: w.countingClient(interceptor.Funcs{}), Live: w.server, Key: client.ObjectKey{Namespace: namespace, Name: lock.Name}, Clock: clocktesting.NewFakePassiveClock(noon),
		InProgress: func(_ context.Context, h lock.Holder, _ lock.Attempt) (bool, error) {
			return slices.Contains(inProgress, h), nil
		},
	}
	return w
}

// countingClient returns the client of the world. It counts writes and may fail.
func (w *world) countingClient(funcs interceptor.Funcs) client.Client {
	return interceptor.NewClient(interceptor.NewClient(w.server, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			w.writes++
			return c.Create(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			w.writes++
			return c.Patch(ctx, obj, patch, opts...)
		},
	}), funcs)
}

func lease(identity *string) *coordinationv1.Lease {
	if identity != nil && *identity == "" {
		identity = nil
	}
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: lock.Name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: identity},
	}
}

// currentHolder returns the holder of the Lease: empty if it is free, and "none" if there is no
// Lease.
func (w *world) currentHolder(t *testing.T) string {
	t.Helper()
	var l coordinationv1.Lease
	err := w.server.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: lock.Name}, &l)
	switch {
	case apierrors.IsNotFound(err):
		return "none"
	case err != nil:
		t.Fatal(err)
	case l.Spec.HolderIdentity == nil:
		if l.Spec.AcquireTime != nil {
			t.Errorf("a free Lease has the acquire time %s", l.Spec.AcquireTime)
		}
		return ""
	}
	return *l.Spec.HolderIdentity
}

const (
	mine   = group + "/UpgradeConfig/a/mine/1"
	theirs = group + "/UpgradeConfig/b/theirs/2"
)

func TestAcquire(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		held   *string // nil if there is no Lease yet
		there  []lock.Holder
		want   *lock.Holder
		after  string
		writes int
	}{
		"Lease missing, acquired":                                {after: mine, writes: 1},
		"released lock is acquired":                              {held: new(""), after: mine, writes: 1},
		"a lock that is mine stays mine, without a write":        {held: new(mine), after: mine},
		"held lock is not acquired and its holder returned":      {held: new(theirs), there: []lock.Holder{other}, want: &other, after: theirs},
		"lock of a deleted holder is acquired":                   {held: new(theirs), after: mine, writes: 1},
		"lock of a recreated holder is acquired":                 {held: new(theirs), there: []lock.Holder{{Group: group, Kind: "UpgradeConfig", Namespace: "b", Name: "theirs", UID: "3"}}, after: mine, writes: 1},
		"lock of an earlier object of the same name is acquired": {held: new("UpgradeConfig/a/mine/0"), after: mine, writes: 1},
		"lock with an invalid holder is acquired":                {held: new("stranger"), after: mine, writes: 1},
		"a lock with a holder that cannot be read is refused if that is there": {
			held: new("stranger"), there: []lock.Holder{{Kind: "stranger"}}, want: &lock.Holder{Kind: "stranger"}, after: "stranger",
		},
		"a lock that I hold by an identity without a group stays mine": {held: new("UpgradeConfig/a/mine/1"), after: "UpgradeConfig/a/mine/1"},
		"slashes after the name belong to the uid": {
			held: new("Job/b/x/1/2"), there: []lock.Holder{{Kind: "Job", Namespace: "b", Name: "x", UID: "1/2"}},
			want: &lock.Holder{Kind: "Job", Namespace: "b", Name: "x", UID: "1/2"}, after: "Job/b/x/1/2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tc.held, tc.there...)
			got, err := w.Acquire(t.Context(), me, lock.Attempt{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("the other holder (-want +got):\n%s", diff)
			}
			if held := w.currentHolder(t); held != tc.after || w.writes != tc.writes {
				t.Errorf("it is held by %q after %d writes, want %q after %d", held, w.writes, tc.after, tc.writes)
			}
		})
	}
}

func TestHolder_is_named_with_kind_and_namespace(t *testing.T) {
	t.Parallel()
	for want, holder := range map[string]lock.Holder{
		"UpgradeConfig b/theirs":                             other,
		`unknown holder "stranger" of lease cluster-upgrade`: {Kind: "stranger"},
	} {
		if got := holder.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestLock_has_its_acquire_time(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	if _, err := w.Acquire(t.Context(), me, lock.Attempt{}); err != nil {
		t.Fatal(err)
	}
	var l coordinationv1.Lease
	if err := w.server.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: lock.Name}, &l); err != nil {
		t.Fatal(err)
	}
	if l.Spec.AcquireTime == nil || !l.Spec.AcquireTime.Time.Equal(noon) {
		t.Errorf("it was taken at %v, want %s", l.Spec.AcquireTime, noon)
	}
}

// A renewal changes the Lease also if it notes the same at the same time: a write that was made from what was read before
// conflicts.
func TestRenew_makes_earlier_reads_conflict(t *testing.T) {
	t.Parallel()
	attempt := lock.Attempt{Key: "k", Version: "4.4.6", Requested: true}
	for name, tc := range map[string]struct {
		between  func(context.Context, *world) error
		conflict bool
	}{
		"nothing between": {func(context.Context, *world) error { return nil }, false},
		"acquired again":  {func(ctx context.Context, w *world) error { _, err := w.Acquire(ctx, me, attempt); return err }, false},
		"renewed":         {func(ctx context.Context, w *world) error { _, err := w.Renew(ctx, me, attempt); return err }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, new(mine))
			if _, err := w.Acquire(t.Context(), me, attempt); err != nil {
				t.Fatal(err)
			}
			version, err := w.ResourceVersion(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := tc.between(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			process := lock.Lock{Client: w.Client, Live: w.server, Key: w.Key, Clock: w.Clock, InProgress: w.InProgress} // another one
			_, err = process.Replace(t.Context(), version, me, lock.Attempt{Key: "k", Version: "4.4.6"})
			if apierrors.IsConflict(err) != tc.conflict || !tc.conflict && err != nil {
				t.Errorf("got %v, want a conflict: %t", err, tc.conflict)
			}
		})
	}
}

func TestRelease(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		held   *string
		after  string
		writes int
	}{
		"my lock is given back":                     {held: new(mine), after: "", writes: 1},
		"the lock of another stays as it is":        {held: new(theirs), after: theirs},
		"the lock of my former self stays as it is": {held: new("UpgradeConfig/a/mine/0"), after: "UpgradeConfig/a/mine/0"},
		"a free lock is unchanged":                  {held: new(""), after: ""},
		"Lease missing, not created":                {after: "none"},
		"a holder that cannot be read stays":        {held: new("stranger"), after: "stranger"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tc.held)
			if err := w.Release(t.Context(), me, lock.Attempt{}); err != nil {
				t.Fatal(err)
			}
			if held := w.currentHolder(t); held != tc.after || w.writes != tc.writes {
				t.Errorf("it is held by %q after %d writes, want %q after %d", held, w.writes, tc.after, tc.writes)
			}
		})
	}
}

// The Lease of the last release counts while its holder, of the same kind and in its namespace, is in progress. Any
// other one is deleted.
func TestAcquireConfirmed_with_a_Lease_of_the_last_release(t *testing.T) {
	t.Parallel()
	const former = "b"
	for name, tc := range map[string]struct {
		holder lock.Holder
		counts bool
	}{
		"in progress":       {holder: other, counts: true},
		"its own":           {holder: me},
		"ended":             {holder: lock.Holder{Group: group, Kind: "UpgradeConfig", Namespace: former, Name: "ended", UID: "3"}},
		"another group":     {holder: lock.Holder{Group: "example.com", Kind: "UpgradeConfig", Namespace: former, Name: "theirs", UID: "2"}},
		"another kind":      {holder: lock.Holder{Group: group, Kind: "UpgradeJob", Namespace: former, Name: "theirs", UID: "2"}},
		"another namespace": {holder: lock.Holder{Group: group, Kind: "UpgradeConfig", Namespace: "c", Name: "theirs", UID: "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			w.Former, w.InProgress = former, func(_ context.Context, h lock.Holder, _ lock.Attempt) (bool, error) { return h.Name == "theirs", nil }
			held := lease(new(strings.Join([]string{tc.holder.Group, tc.holder.Kind, tc.holder.Namespace, tc.holder.Name, tc.holder.UID}, "/")))
			held.Namespace = former
			if err := w.server.Create(t.Context(), held); err != nil {
				t.Fatal(err)
			}
			found, err := w.AcquireConfirmed(t.Context(), me, lock.Attempt{})
			if err != nil || (found != nil) != tc.counts {
				t.Errorf("got %v, %v", found, err)
			}
			err = w.server.Get(t.Context(), client.ObjectKeyFromObject(held), held)
			if apierrors.IsNotFound(err) == tc.counts {
				t.Errorf("reading the Lease of the last release: %v", err)
			}
			if after := w.currentHolder(t); (after == mine) == tc.counts {
				t.Errorf("the lock is held by %q", after)
			}
		})
	}
}

// stale makes the cache return the previous state of the Lease: an old resource version, or
// NotFound.
func stale(old *coordinationv1.Lease) interceptor.Funcs {
	return interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
		if old == nil {
			return apierrors.NewNotFound(coordinationv1.Resource("leases"), key.Name)
		}
		into, ok := obj.(*coordinationv1.Lease)
		if !ok {
			return errDown
		}
		old.DeepCopyInto(into)
		return nil
	}}
}

func TestLock_with_a_stale_cache_breaks_nothing(t *testing.T) {
	t.Parallel()
	read := func(w *world) *coordinationv1.Lease {
		var l coordinationv1.Lease
		if err := w.server.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: lock.Name}, &l); err != nil {
			t.Fatal(err)
		}
		return &l
	}
	t.Run("a lock that another has taken meanwhile is not taken over", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, new(""), other)
		before := read(w)
		if _, err := w.Acquire(t.Context(), other, lock.Attempt{}); err != nil {
			t.Fatal(err)
		}
		w.Client = w.countingClient(stale(before))
		if _, err := w.Acquire(t.Context(), me, lock.Attempt{}); !apierrors.IsConflict(err) {
			t.Errorf("got %v, want a conflict", err)
		}
		if held := w.currentHolder(t); held != theirs {
			t.Errorf("it is held by %q", held)
		}
	})
	t.Run("a lock that another has made meanwhile is not taken over", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, new(theirs), other)
		w.Client = w.countingClient(stale(nil))
		if _, err := w.Acquire(t.Context(), me, lock.Attempt{}); !apierrors.IsAlreadyExists(err) {
			t.Errorf("got %v, want that it exists already", err)
		}
		if held := w.currentHolder(t); held != theirs {
			t.Errorf("it is held by %q", held)
		}
	})
	for name, deletes := range map[string]bool{"": false, ", by deleting it": true} {
		t.Run("a lock that was given back and taken by another is not given back again"+name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, new(mine), other)
			before := read(w)
			if err := w.Release(t.Context(), me, lock.Attempt{}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Acquire(t.Context(), other, lock.Attempt{}); err != nil {
				t.Fatal(err)
			}
			w.Client, w.DeleteFree = w.countingClient(stale(before)), deletes
			if err := w.Release(t.Context(), me, lock.Attempt{}); !apierrors.IsConflict(err) {
				t.Errorf("got %v, want a conflict", err)
			}
			if held := w.currentHolder(t); held != theirs {
				t.Errorf("it is held by %q", held)
			}
		})
	}
}

// The write confirms the lock if the API server accepts it. The Lease is read if there is no write, or if the
// cache is stale. Only a holder in the Lease of the API server is cleaned up after.
func TestAcquireConfirmed(t *testing.T) {
	t.Parallel()
	free, held := lease(nil), lease(new(mine))
	for name, tc := range map[string]struct {
		held      *string
		there     []lock.Holder
		stale     bool // whether the cache shows another Lease: the cached one, none if it is nil
		cached    *coordinationv1.Lease
		want      *lock.Holder
		after     string
		reads     int
		abandoned int
	}{
		"created":                                {after: mine},
		"free":                                   {held: new(""), after: mine},
		"held already":                           {held: new(mine), after: mine, reads: 1},
		"held by another":                        {held: new(theirs), there: []lock.Holder{other}, want: &other, after: theirs, reads: 1},
		"of a holder that is gone":               {held: new(theirs), after: mine, reads: 1, abandoned: 1},
		"free, which the cache does not show":    {held: new(""), stale: true, after: mine, reads: 1},
		"held by another for a while":            {held: new(theirs), there: []lock.Holder{other}, stale: true, cached: free, want: &other, after: theirs, reads: 1},
		"lost to another":                        {held: new(theirs), there: []lock.Holder{other}, stale: true, cached: held, want: &other, after: theirs, reads: 1},
		"mine, and of one that is gone before":   {held: new(mine), stale: true, cached: lease(new(theirs)), after: mine, reads: 1},
		"deleted, which the cache does not show": {stale: true, cached: free, after: mine},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tc.held, tc.there...)
			if tc.stale {
				if tc.cached != nil {
					tc.cached = tc.cached.DeepCopy()
					tc.cached.ResourceVersion = "1000"
				}
				w.Client = w.countingClient(stale(tc.cached))
			}
			reads, abandoned := 0, 0
			w.Live = interceptor.NewClient(w.server, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					reads++
					return c.Get(ctx, key, obj, opts...)
				},
			})
			w.Abandon = func(context.Context, lock.Holder, lock.Attempt) (bool, error) { abandoned++; return false, nil }
			got, err := w.AcquireConfirmed(t.Context(), me, lock.Attempt{})
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%v, the other holder (-want +got):\n%s", err, diff)
			}
			if held := w.currentHolder(t); held != tc.after || reads != tc.reads || abandoned != tc.abandoned {
				t.Errorf("it is held by %q after %d reads, %d were abandoned, want %q, %d, %d", held, reads, abandoned, tc.after, tc.reads, tc.abandoned)
			}
		})
	}
}

// The lock is released without a read if the cache shows the holder.
func TestReleaseConfirmed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		held   string
		cached *coordinationv1.Lease
		after  string
		reads  int
	}{
		"mine":                                {held: mine, after: ""},
		"mine, which the cache does not show": {held: mine, cached: lease(new(theirs)), after: "", reads: 1},
		"acquired by another":                 {held: theirs, cached: lease(new(mine)), after: theirs, reads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, new(tc.held))
			reads := 0
			w.Live = interceptor.NewClient(w.server, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					reads++
					return c.Get(ctx, key, obj, opts...)
				},
			})
			if tc.cached != nil {
				tc.cached.ResourceVersion = "1000"
				w.Client = w.countingClient(stale(tc.cached))
			}
			if err := w.ReleaseConfirmed(t.Context(), me, lock.Attempt{}); err != nil {
				t.Fatal(err)
			}
			if held := w.currentHolder(t); held != tc.after || reads != tc.reads {
				t.Errorf("it is held by %q after %d reads, want %q after %d", held, reads, tc.after, tc.reads)
			}
		})
	}
}

func TestLock_errors_change_nothing(t *testing.T) {
	t.Parallel()
	get := interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errDown
	}}
	create := interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return errDown }}
	patch := interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
		return errDown
	}}
	acquire := func(ctx context.Context, w *world) error { _, err := w.Acquire(ctx, me, lock.Attempt{}); return err }
	release := func(ctx context.Context, w *world) error { return w.Release(ctx, me, lock.Attempt{}) }
	for name, tc := range map[string]struct {
		held  *string
		funcs interceptor.Funcs
		do    func(context.Context, *world) error
		says  string
	}{
		"reading before taking":           {new(""), get, acquire, "getting the lease cluster-upgrade: no answer"},
		"reading before giving back":      {new(mine), get, release, "getting the lease cluster-upgrade: no answer"},
		"making":                          {nil, create, acquire, "creating the lease cluster-upgrade: no answer"},
		"taking":                          {new(""), patch, acquire, "acquiring the lease cluster-upgrade: no answer"},
		"acquiring from a deleted holder": {new(theirs), patch, acquire, "acquiring the lease cluster-upgrade: no answer"},
		"giving back":                     {new(mine), patch, release, "releasing the lease cluster-upgrade: no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tc.held)
			before := w.currentHolder(t)
			w.Client = w.countingClient(tc.funcs)
			err := tc.do(t.Context(), w)
			if !errors.Is(err, errDown) || err.Error() != tc.says {
				t.Errorf("got %v, want %s", err, tc.says)
			}
			if after := w.currentHolder(t); after != before {
				t.Errorf("it was held by %q, and is by %q", before, after)
			}
			w.Client = w.countingClient(interceptor.Funcs{})
			if err := tc.do(t.Context(), w); err != nil {
				t.Errorf("once everything works again: %v", err)
			}
		})
	}
}

func TestLock_is_kept_while_its_holder_is_unknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, new(theirs))
	w.InProgress = func(context.Context, lock.Holder, lock.Attempt) (bool, error) { return false, errDown }
	got, err := w.Acquire(t.Context(), me, lock.Attempt{})
	if got != nil || !errors.Is(err, errDown) {
		t.Fatalf("got %v and %v", got, err)
	}
	golden.Texts(t, "", err.Error())
	if held := w.currentHolder(t); held != theirs || w.writes != 0 {
		t.Errorf("it is held by %q after %d writes", held, w.writes)
	}
}

// A free lock that was deleted leaves nothing behind, and is created again, even by a client that still caches
// it.
func TestDeleteFree(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.DeleteFree = true
	if _, err := w.Acquire(t.Context(), me, attempt); err != nil {
		t.Fatal(err)
	}
	var cached coordinationv1.Lease
	key := client.ObjectKey{Namespace: namespace, Name: lock.Name}
	if err := w.server.Get(t.Context(), key, &cached); err != nil {
		t.Fatal(err)
	}
	if err := w.Release(t.Context(), me, lock.Attempt{}); err != nil {
		t.Fatal(err)
	}
	if err := w.server.Get(t.Context(), key, &coordinationv1.Lease{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Lease exists: %v", err)
	}
	if err := w.Release(t.Context(), me, lock.Attempt{}); err != nil {
		t.Errorf("a second release: %v", err)
	}
	w.Client = interceptor.NewClient(w.server, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
			if lease, ok := obj.(*coordinationv1.Lease); ok {
				cached.DeepCopyInto(lease)
			}
			return nil
		},
	})
	if current, err := w.Acquire(t.Context(), other, attempt); current != nil || err != nil {
		t.Fatalf("got the holder %v, %v", current, err)
	}
	if err := w.server.Get(t.Context(), key, &cached); err != nil || lock.HolderOf(&cached) != other {
		t.Errorf("%s has the lock: %v", lock.HolderOf(&cached), err)
	}
}
