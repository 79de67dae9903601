// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgraders

import (
	"slices"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/pools"
)

// base has the lines that the tables of all kinds of upgrades share: delays of machine config pools, and hooks.
type base struct {
	Deps
	announcer

	owner  maintenance.Owner
	record history.Record
	target clusterstate.Target
	start  time.Time // of the window of this attempt, from which the delays count
	failBy time.Time // when the upgrade times out, or zero for never

	delays      []pools.Delay
	delaySource string   // the name of the list of delays in messages
	knownPools  []string // that the attempt has delayed, see pools.Delayed
	drains      checks.Drains

	notSuperseded engine.UpgradeStep
}

func (t Deps) newBase(owner maintenance.Owner, record history.Record, target clusterstate.Target) base {
	return base{Deps: t, owner: owner, record: record, target: target, notSuperseded: controlplane.NotSuperseded(t.Client, t.Live, target)}
}

// installedVersionKnown is the first gate in the admission of every table.
func installedVersionKnown(d Deps) engine.Gate {
	return engine.Gate{Name: "InstalledVersionKnown", Check: admission.InstalledVersionKnown(d.Client)}
}

// Admission returns the gates of a table, in front of which the installed version must be known. A table without
// gates has the gates of a StepSet.
func Admission(d Deps, attempt Attempt, gates []engine.Gate) []engine.Gate {
	first := installedVersionKnown(d)
	switch {
	case gates == nil:
		return NewStepSet(d, attempt).Admission()
	case slices.ContainsFunc(gates, func(g engine.Gate) bool { return g.Name == first.Name }):
		return gates
	}
	return append([]engine.Gate{first}, gates...)
}

// hooksOnly reports whether the upgrade has no version.
func (s base) hooksOnly() bool { return s.target.Version == "" }
