// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// Options are the flags of the hub.
type Options struct {
	manager.Options

	// AllowPlacementNamespaces allows upgrades to refer to Placements in other namespaces.
	AllowPlacementNamespaces bool
	// LocalCluster is the name of the ManagedCluster that represents the hub itself.
	LocalCluster string
	// Image is the image of the Jobs that approve operators on managed clusters.
	Image string
	// ReplicaSets makes the hub deliver actions as ManifestWorkReplicaSets.
	ReplicaSets bool
	// Webhook is the receiver of CloudEvents. Without a URL, no events are sent.
	Webhook httpclient.Options
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
	flags.StringVar(&options.LocalCluster, "local-cluster", "local-cluster", "name of the ManagedCluster of the hub itself, which is upgraded last and alone; empty if the hub does not manage itself")
	flags.StringVar(&options.Image, "image", "", "image of this program, for the Jobs that approve the upgrades of operators on managed clusters; without it, no cluster begins an upgrade that has ocpOperators")
	flags.BoolVar(&options.ReplicaSets, "action-replica-sets", false, "deliver the actions of upgrades by ManifestWorkReplicaSets, which need the feature gate ManifestWorkReplicaSet of Open Cluster Management; the default is ManifestWorks of the hub")
	flags.StringVar(&options.Webhook.URL, "webhook-url", "", "URL of the receiver of CloudEvents about fleets and their clusters; empty disables the webhook")
	flags.StringVar(&options.Webhook.CAFile, "webhook-ca-file", "", "path to a PEM bundle of the CAs that the receiver is trusted by; empty means the CAs of the system")
	flags.StringVar(&options.Webhook.TokenFile, "webhook-token-file", "", "path to the bearer token for the receiver, sent over https only; empty means no token")
	flags.DurationVar(&options.Webhook.Timeout, "webhook-timeout", 10*time.Second, "timeout of one request to the receiver, 1s to 30s")
	return cmd
}
