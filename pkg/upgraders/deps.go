// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgraders

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/capacity"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/externaldeps"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/hooks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/silence"
)

// Deps are the dependencies of upgraders.
type Deps struct {
	Client       client.Client // reads from the cache, writes to the API server
	Live         client.Reader // reads from the API server
	Notifier     notify.Notifier
	Sources      *checks.Sources
	Drains       *checks.DrainExplanations // nil if drains are not explained
	Dependencies *externaldeps.Dependencies
	Silencer     *silence.Silencer
	ExtraNodes   *capacity.ExtraNodes
	Hooks        *hooks.Runner // nil if there are no hooks
	Config       config.Config
}
