// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

var attempt = lock.Attempt{Key: "2020-06-20T12:00:00Z", Version: "4.4.6", Type: "OSD"}

func TestLockNamesTheAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, new("UpgradeConfig/a/mine/1")) // of an earlier release
	later := attempt
	later.Key = "2020-06-21T12:00:00Z"
	for _, want := range []lock.Attempt{attempt, later, {}} {
		writes := w.writes
		for range 2 {
			if _, err := w.Acquire(t.Context(), me, want); err != nil {
				t.Fatal(err)
			}
		}
		if got, held, err := w.Held(t.Context(), me); err != nil || !held || got != want || w.writes != writes+1 {
			t.Errorf("got %+v, held %t, error %v after %d writes, want %+v after 1", got, held, err, w.writes-writes, want)
		}
	}
	if _, held, err := w.Held(t.Context(), other); err != nil || held {
		t.Errorf("another object holds it: %t, %v", held, err)
	}
	if _, err := w.Acquire(t.Context(), me, attempt); err != nil {
		t.Fatal(err)
	}
	if err := w.Release(t.Context(), me, lock.Attempt{}); err != nil {
		t.Fatal(err)
	}
	var lease coordinationv1.Lease
	if err := w.server.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: lock.Name}, &lease); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string(nil), lease.Annotations); diff != "" {
		t.Errorf("annotations of a free lock (-want +got):\n%s", diff)
	}
}

func TestHolders(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(noon)
	object := func(uid string, records ...history.Record) *upgradev1alpha1.UpgradeConfig {
		cfg := &upgradev1alpha1.UpgradeConfig{}
		cfg.Namespace, cfg.Name, cfg.UID = other.Namespace, other.Name, "2"
		if uid != "" {
			cfg.UID = "3"
		}
		cfg.Status.History = records
		return cfg
	}
	running := history.Record{Version: "4.4.6", UpgradeAt: &at, StartTime: &at}
	finished := running
	finished.CompleteTime = &at
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, other.Name, errDown)
	noMatch := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: group, Kind: "UpgradeConfig"}}
	for name, tc := range map[string]struct {
		holder  lock.Holder
		object  *upgradev1alpha1.UpgradeConfig // nil if there is none
		attempt lock.Attempt
		getErr  error
		want    bool
		wantErr error
	}{
		"in progress":              {holder: other, object: object("", running), attempt: attempt, want: true},
		"finished":                 {holder: other, object: object("", finished), attempt: attempt},
		"another attempt finished": {holder: other, object: object("", finished), attempt: lock.Attempt{Key: "2020-06-21T12:00:00Z", Version: "4.4.6"}, want: true},
		"unknown attempt finished": {holder: other, object: object("", finished)},
		"no history":               {holder: other, object: object(""), attempt: attempt, want: true},
		"not found":                {holder: other, attempt: attempt},
		"re-created":               {holder: other, object: object("3", running), attempt: attempt},
		"forbidden":                {holder: other, object: object("", finished), attempt: attempt, getErr: forbidden, wantErr: forbidden},
		"kind was removed":         {holder: other, attempt: attempt, getErr: noMatch},
		"kind is not known":        {holder: lock.Holder{Group: "example.com", Kind: "Upgrade", Namespace: "b", Name: "theirs", UID: "2"}},
		"identity without a group": {holder: lock.Holder{Kind: "UpgradeJob", Namespace: "b", Name: "theirs", UID: "2"}, want: true},
		"identity of no object":    {holder: lock.Holder{Kind: "stranger"}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := simulation.NewFakeClient(t)
			if tc.object != nil {
				server = simulation.NewFakeClient(t, tc.object)
			}
			reads := 0
			clk := clocktesting.NewFakePassiveClock(noon)
			holders := &lock.Holders{Clock: clk, Mapper: testrestmapper.TestOnlyStaticRESTMapper(server.Scheme()), Live: interceptor.NewClient(server, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					reads++
					if tc.getErr != nil {
						return tc.getErr
					}
					return c.Get(ctx, key, obj, opts...)
				},
			})}
			for range 3 {
				got, err := holders.InProgress(t.Context(), tc.holder, tc.attempt)
				if got != tc.want || !errors.Is(err, tc.wantErr) {
					t.Errorf("got %t, %v, want %t, %v", got, err, tc.want, tc.wantErr)
				}
			}
			if tc.wantErr == nil && reads > 1 {
				t.Errorf("%d requests within a minute, want at most 1", reads)
			}
			clk.SetTime(noon.Add(time.Minute))
			before := reads
			if _, err := holders.InProgress(t.Context(), tc.holder, tc.attempt); !errors.Is(err, tc.wantErr) || before > 0 && reads == before {
				t.Errorf("after a minute: %v after %d more requests", err, reads-before)
			}
		})
	}
}

func TestHoldersOfARegisteredKindAskIt(t *testing.T) {
	t.Parallel()
	for name, holder := range map[string]lock.Holder{
		"identity with a group":    other,
		"identity without a group": {Kind: other.Kind, Namespace: other.Namespace, Name: other.Name, UID: other.UID},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			holders := &lock.Holders{}
			holders.Register(schema.GroupKind{Group: group, Kind: "UpgradeConfig"}, lock.ManagedKind{InProgress: func(_ context.Context, h lock.Holder, a lock.Attempt) (bool, error) {
				return h == holder && a == attempt, errDown
			}})
			holders.Register(schema.GroupKind{Group: "example.com", Kind: "UpgradeConfig"}, lock.ManagedKind{InProgress: func(context.Context, lock.Holder, lock.Attempt) (bool, error) {
				return false, nil
			}})
			if got, err := holders.InProgress(t.Context(), holder, attempt); !got || !errors.Is(err, errDown) {
				t.Errorf("got %t, %v", got, err)
			}
		})
	}
}
