// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradeconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// readInterval is how often the configuration is read. A kubelet takes up to a
// minute to bring a changed ConfigMap into its pods.
const readInterval = 10 * time.Second

// configReloader holds what upgrades are carried out with, and makes it anew when the
// configuration has changed. Of one that has an error nothing is taken: the last
// good one stays in force, and the error is shown.
type configReloader struct {
	read   func() (config.Config, error)
	build  func(config.Config) (upgradeconfig.Snapshot, error)
	report func(valid bool) // in the metrics
	clock  clock.WithTicker
	log    logr.Logger
	// changed holds a token if there is a setup that was not looked at yet.
	changed chan event.GenericEvent

	mu      sync.Mutex
	current upgradeconfig.Snapshot
}

// Current is the setup that is in force.
func (r *configReloader) Current() upgradeconfig.Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current
}

// runbook is the table by which an upgrade is carried out; an empty one if its
// type is unknown.
func (r *configReloader) runbook(cfg *v1alpha1.UpgradeConfig) engine.Runbook {
	upgrader := r.Current().Upgraders[cfg.Spec.Type]
	if upgrader == nil {
		return engine.Runbook{}
	}
	return upgrader.Runbook(cfg)
}

// Start follows the configuration until the context ends.
func (r *configReloader) Start(ctx context.Context) error {
	ticker := r.clock.NewTicker(readInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
			r.reload()
		}
	}
}

// NeedLeaderElection says that every replica follows it: each may come to lead.
func (r *configReloader) NeedLeaderElection() bool { return false }

// set has a first setup in force. Nothing was looked at by another one, so nobody is told.
func (r *configReloader) set(first upgradeconfig.Snapshot) {
	r.mu.Lock()
	r.current = first
	r.mu.Unlock()
	r.report(first.ConfigError == "")
}

// reload reads the configuration once.
func (r *configReloader) reload() {
	before := r.Current()
	after := before
	cfg, err := r.read()
	if err == nil && !reflect.DeepEqual(cfg, before.Config) {
		after, err = r.build(cfg)
	}
	if after.ConfigError = ""; err != nil {
		after = before
		after.ConfigError = singleLine(err)
	}
	if after.ConfigError == before.ConfigError && reflect.DeepEqual(after.Config, before.Config) {
		return
	}
	if err != nil {
		r.log.Error(errors.New(after.ConfigError), "the configuration is not taken, the last good one stays in force")
	} else {
		r.log.Info("the configuration is taken")
	}
	r.swap(after)
}

// swap has another setup in force, and has everything looked at again.
func (r *configReloader) swap(setup upgradeconfig.Snapshot) {
	r.set(setup)
	select {
	case r.changed <- event.GenericEvent{Object: &v1alpha1.UpgradeConfig{}}: // whichever: all are looked at
	default: // there is a token already
	}
}

func singleLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
