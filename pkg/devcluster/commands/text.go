// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"strings"
	"time"

	"github.com/blang/semver/v4"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
)

// newest returns the highest version among the releases of a described cluster.
func newest(spec devcluster.Spec) string {
	highest := semver.MustParse(spec.Version)
	for _, release := range spec.Releases {
		if version := semver.MustParse(release.Version); version.GT(highest) {
			highest = version
		}
	}
	return highest.String()
}

// summary says in a sentence's beginning what a cluster is like.
func summary(spec devcluster.Spec) string {
	nodes := 0
	for _, pool := range spec.Pools {
		nodes += pool.Nodes
	}
	return fmt.Sprintf("OpenShift %s (channel %s; %d nodes, %d of them control plane; played at %g times the real speed)",
		spec.Version, spec.Channel, nodes, spec.Masters, float64(spec.Speed))
}

// upgradeConfigFor returns an UpgradeConfig that upgrades a cluster when a shell has filled in the time, as YAML.
func upgradeConfigFor(spec devcluster.Spec) string {
	return strings.Join([]string{
		"apiVersion: upgrade.managed.openshift.io/v1alpha1",
		"kind: UpgradeConfig",
		"metadata:",
		"  name: example-upgrade-config",
		"  namespace: " + devcluster.OperatorNamespace,
		"spec:",
		"  type: OSD",
		`  upgradeAt: "$(date -u +%FT%TZ)"`,
		"  PDBForceDrainTimeout: 60",
		"  desired:",
		fmt.Sprintf("    version: %q", newest(spec)),
		fmt.Sprintf("    channel: %q", spec.Channel),
	}, "\n")
}

// duration writes a duration for people, in whole seconds.
func duration(d time.Duration) string {
	return d.Truncate(time.Second).String()
}
