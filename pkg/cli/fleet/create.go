// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
)

// createOptions holds the flags of the command fleet create.
type createOptions struct {
	upgradeOptions
	session.ChangeOptions

	format         *session.Output
	to, channel    string
	placements     []string
	clusterSets    []string
	canaries       []string
	maxConcurrency string
	start          bool
}

// createCommand returns the command that creates a fleet upgrade.
func createCommand(p *session.Session) *cobra.Command {
	o := &createOptions{upgradeOptions: upgradeOptions{Session: p}}
	cmd := &cobra.Command{
		Use:   "create NAME --to RELEASE",
		Short: "Create a fleet upgrade as a dry run",
		Long: "Create a ManagedClustersUpgrade as a dry run. A dry run checks the clusters but does not upgrade them. To show the result,\n" +
			"run \"fleet plan\". To start the upgrade, run \"fleet start\".\n\n" +
			"With -o yaml, the command prints the object and does not change anything.",
		Example: "  oc update fleet create stores --to 4.20.8 --placement stores --canary store-0001\n" +
			"  oc update fleet create stores --to 4.20.8 --cluster-set retail --max-concurrency 10% -o yaml > stores.yaml",
		Args: cobra.ExactArgs(1),
		RunE: session.RunE(o),
	}
	o.format = session.OutputFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.to, "to", "", "release to upgrade to, for example 4.20.8")
	flags.StringVar(&o.channel, "channel", "", "channel of the release (default: the stable channel of its minor version)")
	flags.StringSliceVar(&o.placements, "placement", nil, "Placement that selects clusters, as NAME or NAMESPACE/NAME; may be repeated")
	flags.StringSliceVar(&o.clusterSets, "cluster-set", nil, "cluster set to select clusters from; may be repeated")
	flags.StringSliceVar(&o.canaries, "canary", nil, "cluster to upgrade first; may be repeated")
	flags.StringVar(&o.maxConcurrency, "max-concurrency", "", "number or percentage of clusters to upgrade in parallel")
	flags.BoolVar(&o.start, "start", false, "start the upgrade immediately, without a dry run")
	o.Bind(cmd)
	return cmd
}

// Validate checks the flags.
func (o *createOptions) Validate() error {
	if err := session.ValidateRelease("to", o.to); err != nil {
		return err
	}
	if len(o.placements)+len(o.clusterSets) == 0 {
		return session.UsageError("name the clusters with --placement or --cluster-set")
	}
	if err := o.format.Check(); err != nil || !o.format.IsText() {
		return err
	}
	return o.Check(o.Session)
}

// Run creates or prints the upgrade.
func (o *createOptions) Run(ctx context.Context) error {
	namespace, _, err := o.Namespace()
	if err != nil {
		return err
	}
	upgrade := o.object(namespace)
	if !o.format.IsText() {
		upgrade.SetGroupVersionKind(fleetv1beta1.GroupVersion.WithKind("ManagedClustersUpgrade"))
		return o.format.Print(o.Streams.Out, upgrade)
	}
	cluster, err := o.ConnectForWrites()
	if err != nil {
		return err
	}
	return (&startOptions{Session: o.Session, ChangeOptions: o.ChangeOptions}).sendFleet(ctx, cluster, upgrade)
}

// object returns the object for the flags.
func (o *createOptions) object(namespace string) *fleetv1beta1.ManagedClustersUpgrade {
	minor := strings.Join(strings.SplitN(o.to, ".", 3)[:2], ".")
	upgrade := &fleetv1beta1.ManagedClustersUpgrade{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: o.upgrade}}
	upgrade.Spec.DryRun = !o.start
	upgrade.Spec.ClusterVersion = &fleetv1beta1.ClusterVersionSpec{Version: o.to, Channel: cmp.Or(o.channel, "stable-"+minor)}
	for _, reference := range o.placements {
		in, of, found := strings.Cut(reference, "/")
		if !found {
			in, of = namespace, reference
		}
		upgrade.Spec.Placement = append(upgrade.Spec.Placement, fleetv1beta1.PlacementReference{Namespace: in, Name: of})
	}
	if len(o.clusterSets) > 0 {
		upgrade.Spec.ClusterSelector = &fleetv1beta1.ClusterSelector{ClusterSets: o.clusterSets}
	}
	if len(o.canaries) > 0 {
		canaries := &fleetv1beta1.CanaryClusters{}
		canaries.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "name", Operator: metav1.LabelSelectorOpIn, Values: o.canaries}}
		upgrade.Spec.UpgradeStrategy.CanaryClusters = canaries
	}
	if o.maxConcurrency != "" {
		upgrade.Spec.UpgradeStrategy.MaxConcurrency = new(intstr.Parse(o.maxConcurrency))
	}
	return upgrade
}
