// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
)

// update is a version that a cluster can be updated to.
type update struct{ version, channel string }

// suggestedUpdate returns the highest version to which the described cluster can be updated without
// a known risk, and a channel that offers it, preferably the cluster's own. It returns the zero
// value if there is no such version.
func suggestedUpdate(spec openshiftsim.ClusterSpec) update {
	catalog := updategraph.NewCatalog(spec.Releases...)
	var best update
	for _, channel := range channels(spec) {
		graph := catalog.Graph(channel)
		for _, edge := range graph.Edges {
			from, to := graph.Nodes[edge[0]].Version, graph.Nodes[edge[1]].Version
			release, _ := catalog.Version(to)
			if from == spec.Version && release.Refused == "" && !release.Unsigned && higher(to, best.version) {
				best = update{to, channel}
			}
		}
	}
	return best
}

// channels returns the channels of all releases, starting with the cluster's own.
func channels(spec openshiftsim.ClusterSpec) []string {
	all := []string{spec.Channel}
	for _, release := range spec.Releases {
		for _, channel := range release.Channels {
			if !slices.Contains(all, channel) {
				all = append(all, channel)
			}
		}
	}
	return all
}

// higher reports whether version is higher than another version. Any version is higher than the
// empty one.
func higher(version, than string) bool {
	return than == "" || semver.MustParse(version).GT(semver.MustParse(than))
}

// summary returns the beginning of a sentence that describes a cluster.
func summary(spec openshiftsim.ClusterSpec) string {
	nodes := 0
	for _, pool := range spec.Pools {
		nodes += pool.Nodes
	}
	return fmt.Sprintf("OpenShift %s (channel %s; %d nodes, %d of them control plane; simulated at %g times the real speed)",
		spec.Version, spec.Channel, nodes, spec.Masters, float64(spec.Speed))
}

// upgradeConfigFor returns the YAML of an UpgradeConfig. A shell substitutes the time.
func upgradeConfigFor(to update) string {
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
		fmt.Sprintf("    version: %q", to.version),
		fmt.Sprintf("    channel: %q", to.channel),
	}, "\n")
}

// duration formats a duration in whole seconds.
func duration(d time.Duration) string {
	return d.Truncate(time.Second).String()
}
