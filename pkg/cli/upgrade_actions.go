// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// action changes an upgrade. It returns what it did, for the user.
type action func(context.Context, *Program, *Cluster, upgradeTarget) (string, error)

// actionCommands returns the commands that change an upgrade.
func (p *Program) actionCommands() []*cobra.Command {
	return []*cobra.Command{
		p.actionCommand("pause", "Holds an upgrade before it commences, or suspends a schedule.",
			"Holds an upgrade before it commences (spec.paused; its window still ends), or suspends a schedule\n"+
				"(spec.schedule.suspend; UpgradeJobs that have not commenced are skipped).", isNotUpgraded(kindUpgrade, kindSchedule), pause(true)),
		p.actionCommand("resume", "Ends what pause began.", "Ends what pause began.", isNotUpgraded(kindUpgrade, kindSchedule), pause(false)),
		p.actionCommand("cancel", "Cancels an upgrade that has not commenced.",
			"Cancels an upgrade that has not commenced: it deletes the object, and the operator undoes what it has done.\n"+
				"An upgrade that has commenced cannot be canceled.", isOpen(kindUpgrade, kindJob), cancel),
		p.actionCommand("retry", "Starts another attempt of an upgrade that has failed.",
			"Starts another attempt of an upgrade that has failed, or that was skipped. Its window starts now.", toRetry(), retry),
		p.actionCommand("run-now", "Starts an upgrade now, whatever its schedule.",
			"Starts an upgrade now, whatever its schedule: it moves the start of an upgrade that has not started, or has a schedule\n"+
				"create an UpgradeJob. Gates and health checks apply as always.", isNotUpgraded(kindUpgrade, kindSchedule), runNow),
	}
}

// toRetry is the choice among upgrades that have ended without success.
func toRetry() choice {
	return choice{[]upgradeKind{kindUpgrade, kindJob}, func(t upgradeTarget) bool {
		return t.hasEnded() && t.current().Phase != history.PhaseUpgraded
	}}
}

// isNotUpgraded is the choice among schedules and upgrades that have not ended with success.
func isNotUpgraded(kinds ...upgradeKind) choice {
	return choice{kinds, func(t upgradeTarget) bool { return !t.hasEnded() || t.current().Phase != history.PhaseUpgraded }}
}

func (p *Program) actionCommand(use, short, long string, among choice, do action) *cobra.Command {
	cmd := p.upgradeCommand(use, short, long, among, func(ctx context.Context, cluster *Cluster, target upgradeTarget) error {
		done, err := do(ctx, p, cluster, target)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.Streams.Out, "%s %s\n", target, done)
		return err
	})
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if _, err := p.connectForWrites(); err != nil {
			return err
		}
		return run(cmd, args)
	}
	return cmd
}

// pause returns the action that holds an upgrade, or that ends this.
func pause(paused bool) action {
	return func(ctx context.Context, p *Program, cluster *Cluster, target upgradeTarget) (string, error) {
		words := map[bool]string{true: "paused", false: "resumed"}
		switch target.kind {
		case kindUpgrade:
			if paused && target.hasCommenced() {
				return "", refused("not paused: the upgrade has commenced, and cannot be paused anymore")
			}
			return words[paused], patchSpec(ctx, cluster, target, map[string]any{"paused": paused})
		case kindSchedule:
			return words[paused], patchSpec(ctx, cluster, target, map[string]any{"schedule": map[string]any{"suspend": paused}})
		default:
			return "", refused("not %s: an UpgradeJob has no field for it; hold all upgrades of the cluster with \"%s annotate clusterversion version %s=REASON\", or cancel it",
				words[paused], p.client(), v1alpha1.HoldAnnotation)
		}
	}
}

// cancel deletes an upgrade that has not commenced, unless it has changed since it was read.
func cancel(ctx context.Context, p *Program, cluster *Cluster, target upgradeTarget) (string, error) {
	record := target.current()
	switch {
	case target.kind == kindSchedule:
		return "", refused("not canceled: it schedules upgrades; cancel an UpgradeJob, or suspend the schedule with %q", p.commandOn("pause", target))
	case target.hasCommenced():
		return "", refused("not canceled: the upgrade has commenced; follow it with %q", p.commandOn("watch", target))
	case record != nil && record.Finished():
		return "", refused("not canceled: the upgrade has ended (%s)", record.Phase)
	}
	uid, version := target.object.GetUID(), target.object.GetResourceVersion()
	if err := cluster.Client.Delete(ctx, target.object, client.Preconditions{UID: &uid, ResourceVersion: &version}); err != nil {
		return "", fmt.Errorf("canceling %s: %w", target, err)
	}
	return "canceled", nil
}

// retry requests another attempt of an upgrade that has ended without success.
func retry(ctx context.Context, p *Program, cluster *Cluster, target upgradeTarget) (string, error) {
	record := target.current()
	switch {
	case target.kind == kindSchedule:
		return "", refused("not retried: it schedules upgrades; retry an UpgradeJob, or start an upgrade with %q", p.commandOn("run-now", target))
	case record == nil || !record.Finished():
		return "", refused("not retried: the upgrade has not ended; follow it with %q", p.commandOn("watch", target))
	case record.Phase == history.PhaseUpgraded:
		return "", refused("not retried: the cluster was upgraded to %s", record.Version)
	case target.kind == kindUpgrade:
		if target.isPaused() {
			return "", p.refusePaused("retried", target)
		}
		return startNow(ctx, p, cluster, target)
	}
	hold := p.holdNote(ctx, cluster)
	token := p.Clock.Now().UTC().Format(time.RFC3339)
	if err := annotate(ctx, cluster.Client, target.object, v1beta1.RetryAnnotation, token); err != nil {
		return "", fmt.Errorf("retrying %s: %w", target, err)
	}
	return "is going to be retried" + hold, nil
}

// runNow starts an upgrade that has not started, or has a schedule create one.
func runNow(ctx context.Context, p *Program, cluster *Cluster, target upgradeTarget) (string, error) {
	switch target.kind {
	case kindUpgrade:
		record := target.current()
		switch {
		case target.inProgress():
			return "", refused("not started: the upgrade is in progress; follow it with %q", p.commandOn("watch", target))
		case record != nil && record.Finished() && record.Phase == history.PhaseUpgraded:
			return "", refused("not started: the cluster was upgraded to %s", record.Version)
		case target.isPaused():
			return "", p.refusePaused("started", target)
		}
		return startNow(ctx, p, cluster, target)
	case kindSchedule:
		hold := p.holdNote(ctx, cluster)
		token := p.Clock.Now().UTC().Format(time.RFC3339)
		if err := annotate(ctx, cluster.Client, target.object, v1beta1.RunNowAnnotation, token); err != nil {
			return "", fmt.Errorf("starting an upgrade of %s: %w", target, err)
		}
		return "is going to create an UpgradeJob now, if an update is available" + hold, nil
	default:
		return "", refused("not started: the window of an UpgradeJob cannot change, it starts at %s; start another upgrade with \"%s run-now uc/NAME\"", target.job.Spec.StartAfter, p.name)
	}
}

// startNow moves the start of an upgrade to the present time.
func startNow(ctx context.Context, p *Program, cluster *Cluster, target upgradeTarget) (string, error) {
	hold := p.holdNote(ctx, cluster)
	at := p.Clock.Now().UTC().Format(time.RFC3339)
	return "starts at " + at + hold, patchSpec(ctx, cluster, target, map[string]any{"upgradeAt": at})
}

// refusePaused refuses to start an upgrade that spec.paused would hold.
func (p *Program) refusePaused(done string, target upgradeTarget) error {
	return refused("not %s: spec.paused holds the upgrade; run %q first", done, p.commandOn("resume", target))
}

// holdNote returns what a user must know about the annotation that holds all upgrades of the cluster, as
// the end of a message; empty means that it is not set.
func (p *Program) holdNote(ctx context.Context, cluster *Cluster) string {
	const annotation = "the annotation " + v1alpha1.HoldAnnotation + " of the ClusterVersion holds the cluster"
	var version configv1.ClusterVersion
	if err := cluster.Get(ctx, clusterstate.VersionKey, &version); err != nil {
		return "; whether " + annotation + " is unknown: " + readMessage(err)
	}
	reason, held := version.Annotations[v1alpha1.HoldAnnotation]
	if !held {
		return ""
	}
	remedy := p.client() + " annotate clusterversion version " + v1alpha1.HoldAnnotation + "-"
	return fmt.Sprintf("; no upgrade commences while %s (%s): remove it with %q", annotation, text.Reason(reason), remedy)
}

// commandOn returns the command that does something with an object, for messages.
func (p *Program) commandOn(verb string, target upgradeTarget) string {
	return fmt.Sprintf("%s %s %s -n %s", p.name, verb, target, target.object.GetNamespace())
}

// patchSpec changes fields of the spec, unless the object has changed since it was read.
func patchSpec(ctx context.Context, cluster *Cluster, target upgradeTarget, spec map[string]any) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": target.object.GetResourceVersion()}, "spec": spec,
	})
	if err != nil {
		return err
	}
	if err := cluster.Client.Patch(ctx, target.object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("changing %s: %w", target, err)
	}
	return nil
}
