// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradeconfig"
)

// window is a configuration with that window.
func window(d time.Duration) config.Config {
	c := config.Default()
	c.UpgradeWindow.Duration = d
	return c
}

// configFile is what stands in the configuration file.
type configFile struct {
	config config.Config
	err    error
}

func newReloader(file *configFile, builds *int) *configReloader {
	s := &configReloader{
		read: func() (config.Config, error) { return file.config, file.err },
		build: func(c config.Config) (upgradeconfig.Snapshot, error) {
			*builds++
			if c.UpgradeWindow.Duration == 13*time.Minute {
				return upgradeconfig.Snapshot{}, errors.New("alerts.url: is wrong\nwebhook.url: is wrong")
			}
			return upgradeconfig.Snapshot{Config: c}, nil
		},
		clock: testingclock.NewFakeClock(time.Unix(0, 0)), log: logr.Discard(), changed: make(chan event.GenericEvent, 1),
	}
	s.report = func(bool) {}
	s.current = upgradeconfig.Snapshot{Config: file.config}
	return s
}

func TestTheLastGoodConfigurationStaysInForce(t *testing.T) {
	t.Parallel()
	file, builds := &configFile{config: window(time.Minute)}, 0
	s := newReloader(file, &builds)
	var valid []bool
	s.report = func(v bool) { valid = append(valid, v) }
	for i, moment := range []struct {
		file    configFile
		window  time.Duration
		trouble string
		made    int // in all
		changed bool
	}{
		{configFile{config: window(time.Minute)}, time.Minute, "", 0, false},
		{configFile{config: window(2 * time.Minute)}, 2 * time.Minute, "", 1, true},
		{configFile{err: errors.New("upgradeWindow: is 5")}, 2 * time.Minute, "upgradeWindow: is 5", 1, true},
		{configFile{err: errors.New("upgradeWindow: is 5")}, 2 * time.Minute, "upgradeWindow: is 5", 1, false},
		{configFile{config: window(13 * time.Minute)}, 2 * time.Minute, "alerts.url: is wrong; webhook.url: is wrong", 2, true},
		{configFile{config: window(2 * time.Minute)}, 2 * time.Minute, "", 2, true},
		{configFile{config: window(3 * time.Minute)}, 3 * time.Minute, "", 3, true},
	} {
		*file = moment.file
		s.reload()
		got := s.Current()
		if got.Config.UpgradeWindow.Duration != moment.window || got.ConfigError != moment.trouble || builds != moment.made {
			t.Errorf("moment %d: in force is a window of %s, trouble %q, made %d; want %s, %q, %d",
				i, got.Config.UpgradeWindow, got.ConfigError, builds, moment.window, moment.trouble, moment.made)
		}
		select {
		case <-s.changed:
			if !moment.changed {
				t.Errorf("moment %d: it is told that something has changed", i)
			}
		default:
			if moment.changed {
				t.Errorf("moment %d: it is not told that something has changed", i)
			}
		}
	}
	if diff := cmp.Diff([]bool{true, false, false, true, true}, valid); diff != "" {
		t.Errorf("shown as valid (-want +got):\n%s", diff)
	}
}

// A token that is there before the caches are has everything looked at that nobody can see yet.
func TestTheFirstConfigurationIsNoChange(t *testing.T) {
	t.Parallel()
	file, builds := &configFile{}, 0
	s := newReloader(file, &builds)
	var valid []bool
	s.report = func(v bool) { valid = append(valid, v) }
	s.set(upgradeconfig.Snapshot{Config: window(time.Minute)})
	if len(s.changed) > 0 || !cmp.Equal([]bool{true}, valid) || s.Current().Config.UpgradeWindow.Duration != time.Minute {
		t.Errorf("in force is %+v, shown as valid %v, tokens %d", s.Current(), valid, len(s.changed))
	}
}

func TestTheConfigurationIsFollowedUntilTheOperatorEnds(t *testing.T) {
	t.Parallel()
	file, builds := &configFile{config: window(time.Minute)}, 0
	s := newReloader(file, &builds)
	file.config = window(time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Start(ctx) }()
	clock := s.clock.(*testingclock.FakeClock)
	for !clock.HasWaiters() {
		select {
		case err := <-done:
			t.Fatalf("it ended at once: %v", err)
		default:
		}
	}
	clock.Step(readInterval)
	select {
	case <-s.changed:
	case <-time.After(10 * time.Second): //nolint:forbidigo // A bound on a failing test.
		t.Fatal("it was not read again")
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if s.Current().Config.UpgradeWindow.Duration != time.Hour || s.NeedLeaderElection() {
		t.Errorf("in force is %+v", s.Current())
	}
}
