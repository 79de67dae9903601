// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"
)

// settings is a configuration with a single number.
type settings struct{ Number int }

// world is a file and the observed effects of a Reloader.
type world struct {
	file     settings
	fileErr  error
	inEffect settings
	applied  int
	observed []string
}

func (w *world) reloader(t *testing.T, clk *testingclock.FakeClock) *Reloader[settings] {
	t.Helper()
	r := &Reloader[settings]{
		Read: func() (settings, error) { return w.file, w.fileErr },
		Apply: func(s settings) error {
			w.applied++
			if s.Number == 13 {
				return errors.New("alerts.url: is wrong\nwebhook.url: is wrong")
			}
			w.inEffect = s
			return nil
		},
		Observe: func(configError string) { w.observed = append(w.observed, configError) },
		Clock:   clk, Log: logr.Discard(),
	}
	if err := r.Init(w.file); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReloaderKeepsTheLastValidConfiguration(t *testing.T) {
	t.Parallel()
	w := &world{file: settings{1}}
	r := w.reloader(t, testingclock.NewFakeClock(time.Unix(0, 0)))
	for i, moment := range []struct {
		file     settings
		err      error
		inEffect int
		applied  int
		observed []string
	}{
		{file: settings{1}, inEffect: 1, applied: 1},
		{file: settings{2}, inEffect: 2, applied: 2, observed: []string{""}},
		{file: settings{2}, inEffect: 2, applied: 2},
		{err: errors.New("no file"), inEffect: 2, applied: 2, observed: []string{"no file"}},
		{err: errors.New("no file"), inEffect: 2, applied: 2},
		{file: settings{13}, inEffect: 2, applied: 3, observed: []string{"alerts.url: is wrong; webhook.url: is wrong"}},
		{file: settings{13}, inEffect: 2, applied: 4},
		{file: settings{2}, inEffect: 2, applied: 4, observed: []string{""}},
		{file: settings{3}, inEffect: 3, applied: 5, observed: []string{""}},
	} {
		w.file, w.fileErr, w.observed = moment.file, moment.err, nil
		r.reload()
		if w.inEffect.Number != moment.inEffect || w.applied != moment.applied {
			t.Errorf("moment %d: %d is in effect after %d attempts, want %d after %d", i, w.inEffect.Number, w.applied, moment.inEffect, moment.applied)
		}
		if diff := cmp.Diff(moment.observed, w.observed); diff != "" {
			t.Errorf("moment %d: observed (-want +got):\n%s", i, diff)
		}
	}
}

func TestReloaderInitIsNoChange(t *testing.T) {
	t.Parallel()
	w := &world{file: settings{1}}
	w.reloader(t, testingclock.NewFakeClock(time.Unix(0, 0)))
	if w.inEffect.Number != 1 || len(w.observed) > 0 {
		t.Errorf("%d is in effect, observed %q", w.inEffect.Number, w.observed)
	}
	if err := (&Reloader[settings]{Apply: func(settings) error { return errors.New("invalid") }}).Init(settings{}); err == nil {
		t.Error("an invalid first configuration is accepted")
	}
}

func TestReloaderFollowsTheFileUntilTheEnd(t *testing.T) {
	t.Parallel()
	clk := testingclock.NewFakeClock(time.Unix(0, 0))
	w := &world{file: settings{1}}
	r := w.reloader(t, clk)
	observed := make(chan string)
	r.Observe = func(configError string) { observed <- configError }
	w.file = settings{2}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.Start(ctx) }()
	for !clk.HasWaiters() {
		select {
		case err := <-done:
			t.Fatalf("it ended at once: %v", err)
		default:
		}
	}
	clk.Step(reloadInterval)
	select {
	case <-observed:
	case <-time.After(10 * time.Second): //nolint:forbidigo // A bound on a failing test.
		t.Fatal("the file was not read again")
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if w.inEffect.Number != 2 || r.NeedLeaderElection() {
		t.Errorf("%d is in effect; it needs leader election: %t", w.inEffect.Number, r.NeedLeaderElection())
	}
}
