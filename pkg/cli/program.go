// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/fleet"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/informer"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/migrate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/plan"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/status"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/upgrade"
)

// Run runs kubectl-update, prints its error, if any, and returns the exit code.
func Run(ctx context.Context, env session.Environment) session.ExitCode {
	return session.Execute(ctx, env, Root)
}

// Root returns the root command with all subcommands.
func Root(p *session.Session) *cobra.Command {
	root := session.NewRoot(p, commands(p)...)
	complete(p, root)
	return root
}

// commands returns the subcommands of the root in help order.
func commands(p *session.Session) []*cobra.Command {
	status := status.NewCommand(p)
	status.AddCommand(plan.NewPreChecksCommand(p))
	return slices.Concat([]*cobra.Command{
		status, plan.NewPreChecksCommand(p), plan.NewStartCommand(p), plan.NewControlPlaneCommand(p), plan.NewWorkerNodesCommand(p),
		plan.NewReleasesCommand(p), plan.NewClearCommand(p), plan.NewChannelCommand(p),
		upgrade.NewScheduleCommand(p), upgrade.NewPreviewCommand(p), upgrade.NewHistoryCommand(p), upgrade.NewWatchCommand(p), upgrade.NewReportCommand(p),
	}, upgrade.NewActionCommands(p), []*cobra.Command{
		upgrade.NewAcknowledgeCommand(p), informer.NewListCommand(p), informer.NewConformanceCommand(p), fleet.NewCommand(p), migrate.NewConfigCommand(p), migrate.NewMaintenanceCommand(p), versionCommand(p),
	})
}

// RunSimulated runs "oc update" with arguments on a simulated cluster, without a kubeconfig. It returns the
// exit code. alerts may be nil.
func RunSimulated(ctx context.Context, args []string, c client.Client, alerts checks.AlertSource, clk clock.Clock, out io.Writer) int {
	return session.SimulatedRun(Root)(ctx, args, c, alerts, clk, out)
}
