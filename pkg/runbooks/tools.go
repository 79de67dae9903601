// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package runbooks

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/capacity"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/dependencies"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/gate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/notify"
)

// Tools are what upgraders are made with.
type Tools struct {
	Client       client.Client // reads from the cache, writes to the API server
	Live         client.Reader // reads from the API server
	Notifier     notify.Notifier
	Alerts       *gate.Alerts
	Dependencies *dependencies.Dependencies
	Silencer     *maintenance.Silencer
	ExtraNodes   *capacity.ExtraNodes
	Config       config.Config
}
