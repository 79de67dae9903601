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

// setups holds what upgrades are carried out with, and makes it anew when the
// configuration has changed. Of one that has an error nothing is taken: the last
// good one stays in force, and the error is shown.
type setups struct {
	read  func() (config.Config, error)
	make  func(config.Config) (upgradeconfig.Setup, error)
	show  func(valid bool) // in the metrics
	clock clock.WithTicker
	log   logr.Logger
	// changed holds a token if there is a setup that was not looked at yet.
	changed chan event.GenericEvent

	mu    sync.Mutex
	setup upgradeconfig.Setup
}

// Current is the setup that is in force.
func (s *setups) Current() upgradeconfig.Setup {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.setup
}

// runbook is the table by which an upgrade is carried out; an empty one if its
// type is unknown.
func (s *setups) runbook(cfg *v1alpha1.UpgradeConfig) engine.Runbook {
	upgrader := s.Current().Upgraders[cfg.Spec.Type]
	if upgrader == nil {
		return engine.Runbook{}
	}
	return upgrader.Runbook(cfg)
}

// Start follows the configuration until the context ends.
func (s *setups) Start(ctx context.Context) error {
	ticker := s.clock.NewTicker(readInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
			s.follow()
		}
	}
}

// NeedLeaderElection says that every replica follows it: each may come to lead.
func (s *setups) NeedLeaderElection() bool { return false }

// begin has a first setup in force. Nothing was looked at by another one, so nobody is told.
func (s *setups) begin(first upgradeconfig.Setup) {
	s.mu.Lock()
	s.setup = first
	s.mu.Unlock()
	s.show(first.Trouble == "")
}

// follow reads the configuration once.
func (s *setups) follow() {
	before := s.Current()
	after := before
	cfg, err := s.read()
	if err == nil && !reflect.DeepEqual(cfg, before.Config) {
		after, err = s.make(cfg)
	}
	if after.Trouble = ""; err != nil {
		after = before
		after.Trouble = oneLine(err)
	}
	if after.Trouble == before.Trouble && reflect.DeepEqual(after.Config, before.Config) {
		return
	}
	if err != nil {
		s.log.Error(errors.New(after.Trouble), "the configuration is not taken, the last good one stays in force")
	} else {
		s.log.Info("the configuration is taken")
	}
	s.take(after)
}

// take has another setup in force, and has everything looked at again.
func (s *setups) take(setup upgradeconfig.Setup) {
	s.begin(setup)
	select {
	case s.changed <- event.GenericEvent{Object: &v1alpha1.UpgradeConfig{}}: // whichever: all are looked at
	default: // there is a token already
	}
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
