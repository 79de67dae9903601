// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"fmt"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/machineconfig"
)

// noteHeld records when the whole cluster is at a version.
func (c *checker) noteHeld(now time.Time) {
	if v := c.wholeVersion(); v != "" {
		c.heldAt[v] = now
	}
}

// wholeVersion returns the common version of the control plane and the pools, or an empty string
// during an update.
func (c *checker) wholeVersion() string {
	if len(c.version.Status.History) == 0 || c.version.Status.History[0].State != configv1.CompletedUpdate {
		return ""
	}
	version := c.version.Status.History[0].Version
	for _, pool := range c.pools {
		if !poolIsAt(pool, version) {
			return ""
		}
	}
	return version
}

// held reports whether the whole cluster was at a version a moment ago, allowing for cache lag.
func (c *checker) held(version string, now time.Time) bool {
	at, ok := c.heldAt[version]
	if c.wholeVersion() == version {
		return true
	}
	return ok && now.Sub(at) < 10*time.Minute
}

func (c *checker) describePools() string {
	var parts []string
	for _, name := range []string{"master", "worker"} {
		if pool := c.pools[name]; pool != nil {
			parts = append(parts, fmt.Sprintf("%s %d of %d updated", name, pool.Status.UpdatedMachineCount, pool.Status.MachineCount))
		}
	}
	return strings.Join(parts, ", ")
}

func newest(version *configv1.ClusterVersion) string {
	if len(version.Status.History) == 0 {
		return ""
	}
	return version.Status.History[0].Version
}

// poolIsAt reports whether all nodes of a pool have the configuration of a release. The name of a
// rendered configuration depends only on the pool and the release.
func poolIsAt(pool *mcfgv1.MachineConfigPool, version string) bool {
	name := machineconfig.RenderedName(pool.Name, version)
	return pool.Spec.Configuration.Name == name && pool.Status.Configuration.Name == name &&
		pool.Status.UpdatedMachineCount == pool.Status.MachineCount
}
