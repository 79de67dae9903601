// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// watchCommand follows an upgrade until it ends.
func (p *Program) watchCommand() *cobra.Command {
	return p.upgradeCommand("watch", "Follows an upgrade until it ends; the exit code says how.",
		"Follows an upgrade until it ends. The exit code is 0 if the cluster was upgraded, 30 if the upgrade failed or was skipped,\n"+
			"and 10, 20, or 40 if the command is interrupted while the upgrade is in progress, waits, or is unknown.",
		isOpen(kindUpgrade, kindJob), func(ctx context.Context, cluster *Cluster, target upgradeTarget) error {
			if target.kind == kindSchedule {
				return usageError("%s schedules upgrades: watch one of its UpgradeJobs as upgradejob/NAME", target)
			}
			return p.watchUpgrade(ctx, cluster, target)
		})
}

func (p *Program) watchUpgrade(ctx context.Context, cluster *Cluster, target upgradeTarget) error {
	uid, last := target.object.GetUID(), ""
	for {
		if line := watchLine(target); line != last || p.Terminal.Interactive {
			if err := p.showUpgrade(cluster, target, line); err != nil {
				return err
			}
			last = line
		}
		if target.hasEnded() {
			return exitWith(watchVerdict(target))
		}
		select {
		case <-ctx.Done():
			return exitWith(watchVerdict(target))
		case <-p.Clock.After(pollInterval):
		}
		next := newTarget(target.kind, client.ObjectKeyFromObject(target.object))
		err := cluster.Get(ctx, client.ObjectKeyFromObject(target.object), next.object)
		switch {
		case err == nil && next.object.GetUID() == uid:
			target = next
		case err == nil, client.IgnoreNotFound(err) == nil:
			return refused("%s was deleted", target)
		case errors.Is(err, context.Canceled):
		default:
			if _, err := fmt.Fprintln(p.Streams.ErrOut, p.explain(fmt.Errorf("reading %s: %w", target, err))); err != nil {
				return err
			}
		}
	}
}

// showUpgrade redraws the history on a terminal, or appends a line.
func (p *Program) showUpgrade(cluster *Cluster, target upgradeTarget, line string) error {
	if p.Terminal.Interactive {
		return p.show(p.historyScreen(target, cluster.Clock.Now()))
	}
	_, err := fmt.Fprintf(p.Streams.Out, "%s  %s\n", cluster.Clock.Now().UTC().Format(time.RFC3339), line)
	return err
}

// watchLine returns a line that changes when the upgrade does.
func watchLine(target upgradeTarget) string {
	phase := history.PhaseNew
	if record := target.current(); record != nil {
		phase = record.Phase
	}
	return clean(fmt.Sprintf("%s: %s", phase, target.progress()))
}

// watchVerdict returns the exit code for the state of an upgrade.
func watchVerdict(target upgradeTarget) ExitCode {
	record := target.current()
	if record == nil {
		return ExitWaiting
	}
	switch record.Phase {
	case history.PhaseUpgraded:
		return ExitDone
	case history.PhaseFailed, history.PhaseSkipped:
		return ExitActionRequired
	case history.PhaseUpgrading:
		return ExitProgressing
	case history.PhaseNew, history.PhasePending, history.PhasePaused:
		return ExitWaiting
	case history.PhaseUnknown:
		return ExitUnknown
	default:
		return ExitUnknown
	}
}
