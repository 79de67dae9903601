// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// watchOptions holds the argument of the command watch.
type watchOptions struct{ targetOptions }

// NewWatchCommand returns the command that follows an upgrade until it ends.
func NewWatchCommand(p *session.Session) *cobra.Command {
	o := &watchOptions{targetOptions{Session: p, among: isOpen(kindUpgrade, kindJob)}}
	return targetCommand(p, o.among, &cobra.Command{
		Use: "watch", Short: "Follow an upgrade until it ends", RunE: session.RunE(o),
		Long: "Follow an upgrade until it ends.\n\n" +
			"The exit code is 0 if the cluster was upgraded and 30 if the upgrade failed or was skipped. If the command is\n" +
			"interrupted, the exit code is 10 for an upgrade in progress, 20 for a waiting upgrade, and 40 if the state is unknown.",
	})
}

// Validate rejects dumps because they do not change.
func (o *watchOptions) Validate() error {
	if o.IsReplay() {
		return session.UsageError("--replay: a dump does not change; use history")
	}
	return nil
}

// Run follows the upgrade.
func (o *watchOptions) Run(ctx context.Context) error {
	cluster, target, err := o.find(ctx)
	if err != nil {
		return err
	}
	if target.kind == kindSchedule {
		return session.UsageError("%s schedules upgrades: watch one of its UpgradeJobs as upgradejob/NAME", target)
	}
	return watchUpgrade(ctx, o.Session, cluster, target)
}

func watchUpgrade(ctx context.Context, p *session.Session, cluster *session.Cluster, target upgradeTarget) error {
	uid, last := target.object.GetUID(), ""
	for {
		if line := watchLine(target); line != last || p.Terminal.Interactive {
			if err := showUpgrade(p, cluster, target, line); err != nil {
				return err
			}
			last = line
		}
		if target.hasEnded() {
			return session.ExitWith(watchVerdict(target))
		}
		select {
		case <-ctx.Done():
			return session.ExitWith(watchVerdict(target))
		case <-p.Clock.After(session.PollInterval):
		}
		next := newTarget(target.kind, client.ObjectKeyFromObject(target.object))
		err := cluster.Get(ctx, client.ObjectKeyFromObject(target.object), next.object)
		switch {
		case err == nil && next.object.GetUID() == uid:
			target = next
		case err == nil, client.IgnoreNotFound(err) == nil:
			return session.Refused("%s was deleted", target)
		case errors.Is(err, context.Canceled):
		default:
			if _, err := fmt.Fprintln(p.Streams.ErrOut, p.Explain(fmt.Errorf("reading %s: %w", target, err))); err != nil {
				return err
			}
		}
	}
}

// showUpgrade redraws the history on a terminal and appends a line to other outputs.
func showUpgrade(p *session.Session, cluster *session.Cluster, target upgradeTarget, line string) error {
	if p.Terminal.Interactive {
		return p.Show(historyScreen(p, target, cluster.Clock.Now()))
	}
	_, err := fmt.Fprintf(p.Streams.Out, "%s  %s\n", text.FormatTime(cluster.Clock.Now()), line)
	return err
}

// watchLine returns a line that changes with the upgrade.
func watchLine(target upgradeTarget) string {
	phase := history.PhaseNew
	if record := target.current(); record != nil {
		phase = record.Phase
	}
	return screen.Clean(fmt.Sprintf("%s: %s", phase, target.progress()))
}

// watchVerdict returns the exit code for the state of an upgrade.
func watchVerdict(target upgradeTarget) session.ExitCode {
	record := target.current()
	if record == nil {
		return session.ExitWaiting
	}
	switch record.Phase {
	case history.PhaseUpgraded:
		return session.ExitDone
	case history.PhaseFailed, history.PhaseSkipped:
		return session.ExitActionRequired
	case history.PhaseUpgrading:
		return session.ExitProgressing
	case history.PhaseNew, history.PhasePending, history.PhasePaused:
		return session.ExitWaiting
	case history.PhaseUnknown:
		return session.ExitUnknown
	default:
		return session.ExitUnknown
	}
}
