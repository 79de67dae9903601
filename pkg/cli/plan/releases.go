// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// newestReleases is the number of releases listed per minor version without --all.
const newestReleases = 2

// releasesOptions holds the flags of the command releases.
type releasesOptions struct {
	*session.Session
	session.NoArguments
	session.NoFlags

	all bool
}

// NewReleasesCommand returns the command that lists the releases available to the cluster.
func NewReleasesCommand(p *session.Session) *cobra.Command {
	o := &releasesOptions{Session: p}
	cmd := &cobra.Command{
		Use:   "releases",
		Short: "List the releases that the cluster can be updated to, with their known risks",
		Long: "List the releases offered by the cluster's channel. By default, the two newest of each minor version are shown.\n\n" +
			"A conditional release has known risks that apply to the cluster or have not been evaluated yet. Run \"pre-checks\" for\n" +
			"an explanation of the risks.",
		Example: "  oc update releases\n  oc update releases --all",
		Args:    manager.NoArgs,
		RunE:    session.RunE(o),
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "list all releases")
	return cmd
}

// Run lists the releases.
func (o *releasesOptions) Run(ctx context.Context) error {
	cluster, err := o.Connect()
	if err != nil {
		return err
	}
	version, err := clusterstate.GetClusterVersion(ctx, cluster)
	if err != nil {
		return err
	}
	offered := version.OfferedVersions()
	listed := offered
	if !o.all {
		listed = newestOfMinors(offered)
	}
	if _, err := fmt.Fprintf(o.Streams.Out, "Installed: %s. Channel: %s.\n", screen.OrDefault(screen.Clean(version.Installed), "unknown"), screen.OrDefault(screen.Clean(version.Channel), "none")); err != nil {
		return err
	}
	if unknown := version.UpdatesUnknown(); unknown != "" {
		_, err := fmt.Fprintf(o.Streams.Out, "It is unknown which releases are offered: %s\n", screen.Clean(unknown))
		return err
	}
	if len(offered) == 0 {
		_, err := fmt.Fprintln(o.Streams.Out, "No release is offered. Select another channel with: "+o.Name+" channel NAME")
		return err
	}
	var rows [][]string
	for _, release := range listed {
		offer := version.AvailableUpdate(clusterstate.Target{Version: release})
		kind, risks := "recommended", []string(nil)
		if offer.Conditional {
			kind = "conditional"
		}
		for _, risk := range offer.Risks {
			risks = append(risks, risk.Name)
		}
		rows = append(rows, []string{release, kind, strings.Join(risks, ", ")})
	}
	if err := screen.PrintTable(o.Streams.Out, []string{"RELEASE", "OFFER", "RISKS"}, rows); err != nil {
		return err
	}
	if left := len(offered) - len(listed); left > 0 {
		_, err := fmt.Fprintf(o.Streams.Out, "%s: %s releases --all\n", text.Plural(left, "older release is not listed", "older releases are not listed"), o.Name)
		return err
	}
	return nil
}

// newestOfMinors returns the newest releases of each minor version in the given order. The releases must be
// sorted, latest first.
func newestOfMinors(releases []string) []string {
	count := map[string]int{}
	return slices.DeleteFunc(slices.Clone(releases), func(release string) bool {
		minor := release
		if v, err := semver.Parse(release); err == nil {
			minor = fmt.Sprintf("%d.%d", v.Major, v.Minor)
		}
		count[minor]++
		return count[minor] > newestReleases
	})
}

// clearOptions holds the flags of the command clear.
type clearOptions struct {
	*session.Session
	session.NoArguments
	session.NoFlags
	session.ChangeOptions
}

// NewClearCommand returns the command that withdraws a request before its update starts.
func NewClearCommand(p *session.Session) *cobra.Command {
	o := &clearOptions{Session: p}
	cmd := &cobra.Command{
		Use:   "clear",
		Short: "Withdraw the request for an update that has not started",
		Long: "Withdraw the request in spec.desiredUpdate of the ClusterVersion. An update that has started cannot be stopped.\n\n" +
			"If an upgrade by the operator made the request, cancel the upgrade instead, because the operator would repeat the request.",
		Example: "  oc update clear",
		Args:    manager.NoArgs,
		RunE:    session.RunE(o),
	}
	o.Bind(cmd)
	return cmd
}

// Run withdraws the request.
func (o *clearOptions) Run(ctx context.Context) error {
	cluster, err := o.ConnectForChange(&o.ChangeOptions)
	if err != nil {
		return err
	}
	version := &configv1.ClusterVersion{}
	if err := cluster.Get(ctx, clusterstate.VersionKey, version); err != nil {
		return fmt.Errorf("reading the ClusterVersion: %w", err)
	}
	facts := clusterstate.VersionOf(version)
	if facts.ObserveRequest() == clusterstate.ObservedNone {
		if release, updating := facts.UpdatingTo(); updating {
			return session.Refused("not withdrawn: the update to %s has begun, and cannot be stopped", release)
		}
		_, err := fmt.Fprintln(o.Streams.Out, "No update is requested.")
		return err
	}
	requested := text.Excerpt(facts.Requested.String())
	return o.Commit(ctx, &o.ChangeOptions, cluster, "withdraw the request for "+requested, "The request for "+requested, session.Change{Done: "was withdrawn", Apply: func(c client.Client) error {
		if err := c.Patch(ctx, version.DeepCopy(), clusterstate.WithdrawalPatch(version)); err != nil {
			return fmt.Errorf("withdrawing the request for %s: %w", requested, err)
		}
		return nil
	}})
}

// channelOptions holds the flags and the argument of the command channel.
type channelOptions struct {
	*session.Session
	session.NoFlags
	session.ChangeOptions

	args []string
}

// NewChannelCommand returns the command that prints or sets the channel.
func NewChannelCommand(p *session.Session) *cobra.Command {
	o := &channelOptions{Session: p}
	cmd := &cobra.Command{
		Use:     "channel [NAME]",
		Short:   "Print or set the update channel of the cluster",
		Long:    "Print the update channel of the cluster and all channels that contain the installed release. With NAME, set the channel.",
		Example: "  oc update channel\n  oc update channel stable-4.21",
		Args:    cobra.MaximumNArgs(1),
		RunE:    session.RunE(o),
	}
	o.Bind(cmd)
	return cmd
}

// Complete takes the channel from the argument.
func (o *channelOptions) Complete(_ *cobra.Command, args []string) error {
	o.args = args
	return nil
}

// Run prints the channels or sets one.
func (o *channelOptions) Run(ctx context.Context) error {
	if len(o.args) == 0 {
		return o.printChannels(ctx)
	}
	return o.selectChannel(ctx)
}

func (o *channelOptions) printChannels(ctx context.Context) error {
	cluster, err := o.Connect()
	if err != nil {
		return err
	}
	version, err := clusterstate.GetClusterVersion(ctx, cluster)
	if err != nil {
		return err
	}
	line := "Channel: " + screen.OrDefault(screen.Clean(version.Channel), "none")
	if channels := version.CurrentChannels; len(channels) > 0 {
		line += ". Channels with " + screen.Clean(version.Current.Version) + ": " + screen.Clean(strings.Join(channels, ", "))
	}
	_, err = fmt.Fprintln(o.Streams.Out, line+".")
	return err
}

func (o *channelOptions) selectChannel(ctx context.Context) error {
	cluster, err := o.ConnectForChange(&o.ChangeOptions)
	if err != nil {
		return err
	}
	name := o.args[0]
	version := &configv1.ClusterVersion{}
	if err := cluster.Get(ctx, clusterstate.VersionKey, version); err != nil {
		return fmt.Errorf("reading the ClusterVersion: %w", err)
	}
	c := session.Change{Done: "is selected already"}
	if version.Spec.Channel != name {
		c = session.Change{Done: "was selected", Apply: func(c client.Client) error {
			patch := fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"spec":{"channel":%q}}`, version.ResourceVersion, name)
			if err := c.Patch(ctx, version.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
				return fmt.Errorf("selecting channel %s: %w", name, err)
			}
			return nil
		}}
	}
	return o.Commit(ctx, &o.ChangeOptions, cluster, "select channel "+name, "channel "+name, c)
}
