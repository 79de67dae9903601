// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

func TestAStepThatSaysNothingWaits(t *testing.T) {
	t.Parallel()
	w, s := newScript(t, "First", "Commit")
	s.setResult("First", engine.Result{})
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"First False Waiting …"}, lines(w.store.load())); diff != "" {
		t.Errorf("the record (-want +got):\n%s", diff)
	}
}

func TestWhatFailedIsTriedAgainAfterHalfOfTheTimeUntilPatienceEnds(t *testing.T) {
	t.Parallel()
	const patience = 2 * time.Minute
	type told struct {
		After time.Duration
		GoOn  bool
	}
	for name, tc := range map[string]struct {
		tried time.Duration
		want  told
	}{
		"at once":                        {0, told{time.Second, true}},
		"after a moment":                 {time.Second, told{time.Second, true}},
		"after a while":                  {40 * time.Second, told{20 * time.Second, true}},
		"never later than patience ends": {100 * time.Second, told{20 * time.Second, true}},
		"a moment before patience ends":  {patience - time.Millisecond, told{time.Millisecond, true}},
		"when patience ends":             {patience, told{0, false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := engine.Run{Since: noon, Now: noon.Add(tc.tried)}
			var got told
			if got.After, got.GoOn = run.Retry(patience); cmp.Diff(tc.want, got) != "" {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
