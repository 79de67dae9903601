// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
)

func TestReleaseOrphaned(t *testing.T) {
	t.Parallel()
	recreated, gone := me, me
	recreated.UID, gone.UID = "3", ""
	for name, tc := range map[string]struct {
		held       *string
		of         lock.Holder
		inProgress []lock.Holder
		want       string
		writes     int
	}{
		"holder was deleted":                   {held: new(mine), of: gone, want: "", writes: 1},
		"holder was deleted and created again": {held: new(mine), of: recreated, want: "", writes: 1},
		"holder is in progress after all":      {held: new(mine), of: gone, inProgress: []lock.Holder{me}, want: mine},
		"holder is the object itself":          {held: new(mine), of: me, want: mine},
		"holder is another object":             {held: new(theirs), of: gone, want: theirs},
		"holder is unknown":                    {held: new("someone"), of: gone, want: "someone"},
		"there is no lock":                     {of: gone, want: "none"},
		"lock is free":                         {held: new(""), of: gone, want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tc.held, tc.inProgress...)
			if err := w.ReleaseOrphaned(t.Context(), tc.of); err != nil {
				t.Fatal(err)
			}
			if got := w.currentHolder(t); got != tc.want || w.writes != tc.writes {
				t.Errorf("the holder is %q after %d writes, want %q after %d", got, w.writes, tc.want, tc.writes)
			}
		})
	}
}

func TestReleaseOrphanedWithoutCertainty(t *testing.T) {
	t.Parallel()
	gone := me
	gone.UID = ""
	w := newWorld(t, new(mine))
	w.InProgress = func(context.Context, lock.Holder, lock.Attempt) (bool, error) { return false, errDown }
	if err := w.ReleaseOrphaned(t.Context(), gone); !errors.Is(err, errDown) || w.currentHolder(t) != mine {
		t.Errorf("got %v, and the holder is %q", err, w.currentHolder(t))
	}
}

func TestAcquireNotesTheRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	attempt := lock.Attempt{Key: "2020-06-20T12:00:00Z", Version: "4.4.6", Type: "OSD"}
	requested := attempt
	requested.Requested = true
	if !requested.Is(attempt) {
		t.Error("an attempt becomes another one by its request")
	}
	for i, want := range []lock.Attempt{attempt, requested, requested, attempt} {
		if _, err := w.Acquire(t.Context(), me, want); err != nil {
			t.Fatal(err)
		}
		got, held, err := w.Held(t.Context(), me)
		if diff := cmp.Diff(want, got); diff != "" || !held || err != nil {
			t.Errorf("%d: held %t, %v (-want +got):\n%s", i, held, err, diff)
		}
	}
	if w.writes != 3 {
		t.Errorf("%d writes, want 3", w.writes)
	}
}

// A holder that acquires the lock of one that no longer exists cleans up after it, and keeps the note of an
// upgrade that continues.
func TestAcquireAbandonsAHolderThatIsGone(t *testing.T) {
	t.Parallel()
	left := lock.Attempt{Key: "2020-06-20T12:00:00Z", Version: "4.4.6", Type: "OSD", CommenceTime: "2020-06-20T12:05:00Z"}
	mine := lock.Attempt{Key: "2020-06-20T13:00:00Z", Version: "4.4.7", Type: "OSD"}
	again := other
	again.UID = "4"
	for name, tc := range map[string]struct {
		continues bool
		err       error
		kept      lock.Attempt
		holder    string
	}{
		"it continues":         {continues: true, kept: left, holder: group + "/UpgradeConfig/a/mine/1"},
		"it does not":          {holder: group + "/UpgradeConfig/a/mine/1"},
		"it cannot be removed": {err: errDown, holder: theirs},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, new(""))
			if _, err := w.Acquire(t.Context(), other, left); err != nil {
				t.Fatal(err)
			}
			var abandoned []lock.Attempt
			w.Abandon = func(_ context.Context, h lock.Holder, a lock.Attempt) (bool, error) {
				if h != other {
					t.Errorf("%s is abandoned", h)
				}
				abandoned = append(abandoned, a)
				return tc.continues, tc.err
			}
			if _, err := w.Acquire(t.Context(), me, mine); !errors.Is(err, tc.err) {
				t.Fatal(err)
			}
			kept, _, err := w.Continuing(t.Context(), again)
			if diff := cmp.Diff([]lock.Attempt{left}, abandoned); diff != "" || kept != tc.kept || err != nil || w.currentHolder(t) != tc.holder {
				t.Errorf("kept %+v, %v, the holder is %s, abandoned (-want +got):\n%s", kept, err, w.currentHolder(t), diff)
			}
		})
	}
}
