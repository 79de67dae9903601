// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"maps"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// upgradeConfig simulates an UpgradeConfig and the operator that runs its upgrade.
type upgradeConfig struct {
	generation int64
	spec       object
	metadata   object
}

// start requests the update of the cluster once upgradeAt has passed.
func (u *upgradeConfig) start(v *clusterVersion, now time.Time) {
	if paused, _ := u.spec["paused"].(bool); paused || now.Before(u.at()) {
		return
	}
	if v.history[0].version != u.version() {
		v.spec["desiredUpdate"] = clusterstate.DesiredUpdate(clusterstate.Release{Version: u.version()})
	}
	v.request(u.version(), "", now)
}

func (u *upgradeConfig) at() time.Time {
	text, _ := u.spec["upgradeAt"].(string)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return at
}

func (u *upgradeConfig) version() string {
	desired, _ := u.spec["desired"].(object)
	version, _ := desired["version"].(string)
	return version
}

// object returns the UpgradeConfig with a status derived from the ClusterVersion.
func (u *upgradeConfig) object(v *clusterVersion, s *script) object {
	phase, succeeded, step, message := "New", "Unknown", "Pending", "upgradeAt has not come"
	newest := &v.history[0]
	at := u.at()
	if newest.version == u.version() {
		at = newest.started
		phase, step, message = "Upgrading", "ControlPlaneUpgraded", s.fails
		if !newest.completed.IsZero() {
			at = newest.completed
			phase, succeeded, step, message = "Upgraded", "True", "Completed", ""
		}
	}
	progressing := "True"
	if phase == "Upgraded" {
		progressing = "False"
	}
	completed := object{"type": "ControlPlaneUpgraded", "status": "False"}
	if succeeded == "True" {
		completed["status"], completed["completeTime"] = "True", stamp(at)
	}
	metadata := object{"generation": u.generation}
	maps.Copy(metadata, u.metadata)
	return object{
		"apiVersion": "upgrade.managed.openshift.io/v1alpha1", "kind": "UpgradeConfig", "metadata": metadata, "spec": u.spec,
		"status": object{
			"observedGeneration": u.generation,
			"history":            []any{object{"version": u.version(), "phase": phase, "conditions": []any{completed}}},
			"conditions": []any{
				condition("Accepted", "True", "Accepted", "", at),
				condition("Progressing", progressing, step, message, at),
				condition("Succeeded", succeeded, phase, message, at),
			},
		},
	}
}
