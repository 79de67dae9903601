// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// Options are the flags of the hub.
type Options struct {
	manager.Options

	// AllowPlacementNamespaces allows upgrades to name Placements of other namespaces.
	AllowPlacementNamespaces bool
	// Image is the image of the Jobs that approve operators on managed clusters.
	Image string
	// ReplicaSets has actions delivered by ManifestWorkReplicaSets.
	ReplicaSets bool
}

// Command returns the command line of the hub.
func Command(version string) *cobra.Command {
	options := Options{Options: manager.Options{Version: version}}
	cmd := manager.NewCommand("hub", "Upgrades the clusters of fleets from a hub of Open Cluster Management.", version, func(ctx context.Context) error {
		return Main(ctx, options, clock.RealClock{})
	})
	flags := cmd.Flags()
	options.BindShared(flags)
	flags.BoolVar(&options.AllowPlacementNamespaces, "allow-placement-namespaces", true, "allow a ManagedClustersUpgrade to name Placements of other namespaces, in which its creator may create ManagedClustersUpgrades")
	flags.StringVar(&options.Image, "image", "", "image of this program, for the Jobs that approve the upgrades of operators on managed clusters; without it, no cluster begins an upgrade that has ocpOperators")
	flags.BoolVar(&options.ReplicaSets, "action-replica-sets", false, "deliver the actions of upgrades by ManifestWorkReplicaSets, which need the feature gate ManifestWorkReplicaSet of Open Cluster Management; the default is ManifestWorks of the hub")
	return cmd
}
