// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// action returns a change of an upgrade, or an error if it refuses to change it. It does not make the change.
type action func(context.Context, *session.Session, *session.Cluster, upgradeTarget) (session.Change, error)

// NewActionCommands returns the commands that change an upgrade.
func NewActionCommands(p *session.Session) []*cobra.Command {
	return []*cobra.Command{
		actionCommand(p, "pause", "Pause an upgrade before it commences, or suspend a schedule",
			"Pause an upgrade before it commences, or suspend a schedule.\n\n"+
				"An upgrade is paused by an annotation. Its window is not extended. A schedule is suspended by spec.schedule.suspend.\n"+
				"Its UpgradeJobs that have not commenced are skipped.", isNotUpgraded(kindUpgrade, kindSchedule), pause(true)),
		actionCommand(p, "resume", "Resume a paused upgrade", "Resume a paused upgrade or a suspended schedule.", isNotUpgraded(kindUpgrade, kindSchedule), pause(false)),
		actionCommand(p, "cancel", "Cancel an upgrade that has not commenced",
			"Cancel an upgrade that has not commenced. The command deletes the object, and the operator reverts its changes.\n"+
				"An upgrade that has commenced cannot be canceled.", isOpen(kindUpgrade, kindJob), cancel),
		actionCommand(p, "retry", "Start another attempt of a failed upgrade",
			"Start another attempt of a failed or skipped upgrade. Its window starts now.", toRetry(), retry),
		actionCommand(p, "run-now", "Start an upgrade now, regardless of its schedule",
			"Start an upgrade now, regardless of its schedule. For a schedule, a new UpgradeJob is created and started.\n"+
				"Gates and health checks still apply.", isNotUpgraded(kindUpgrade, kindSchedule), runNow),
	}
}

// toRetry selects upgrades that have ended without success.
func toRetry() choice {
	return choice{kinds: []upgradeKind{kindUpgrade, kindJob}, fits: func(t upgradeTarget) bool {
		return t.hasEnded() && t.current().Phase != history.PhaseUpgraded
	}}
}

// isNotUpgraded selects schedules and upgrades that have not succeeded.
func isNotUpgraded(kinds ...upgradeKind) choice {
	return choice{kinds: kinds, fits: func(t upgradeTarget) bool { return !t.hasEnded() || t.current().Phase != history.PhaseUpgraded }}
}

// actionOptions holds the flags and the argument of a command that changes an upgrade.
type actionOptions struct {
	*session.Session
	session.ChangeOptions

	verb  string
	among choice
	do    action
	args  []string
}

// actionCommand returns a command that changes the upgrade given by its argument. Without an argument, the
// command lists the possible command lines.
func actionCommand(p *session.Session, verb, short, long string, among choice, do action) *cobra.Command {
	o := &actionOptions{Session: p, verb: verb, among: among, do: do}
	cmd := &cobra.Command{
		Use: verb + " KIND/NAME", Short: short, Long: long + "\n\n" + kindDoc,
		Args:              cobra.MatchAll(cobra.MaximumNArgs(1), validUpgrade),
		ValidArgsFunction: session.First(p.Completion(upgradeNames(p, among))),
		RunE:              session.RunE(o),
	}
	o.Bind(cmd)
	return cmd
}

// Complete takes the upgrade from the argument.
func (o *actionOptions) Complete(_ *cobra.Command, args []string) error {
	o.args = args
	return nil
}

// Validate returns an error if the user has no way to confirm the change.
func (o *actionOptions) Validate() error {
	if len(o.args) == 0 {
		return nil
	}
	return o.Check(o.Session)
}

// Run changes the upgrade.
func (o *actionOptions) Run(ctx context.Context) error {
	cluster, err := o.ConnectForWrites()
	if err != nil {
		return err
	}
	if len(o.args) == 0 {
		return o.unnamed(ctx, cluster)
	}
	target, err := findUpgrade(ctx, o.Session, cluster, o.args, o.among)
	if err != nil {
		return err
	}
	return o.act(ctx, cluster, target)
}

// act changes an upgrade after the user has confirmed.
func (o *actionOptions) act(ctx context.Context, cluster *session.Cluster, target upgradeTarget) error {
	c, err := o.do(ctx, o.Session, cluster, target)
	if err != nil {
		return err
	}
	question := fmt.Sprintf("%s %s in namespace %s", o.verb, target, target.object.GetNamespace())
	return o.Commit(ctx, &o.ChangeOptions, cluster, question, target.String(), c)
}

// unnamed returns the error for a command without an argument. An object to change is never chosen on behalf
// of the user.
func (o *actionOptions) unnamed(ctx context.Context, cluster *session.Cluster) error {
	found, err := candidates(ctx, o.Session, cluster, o.among)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return session.UsageError("%s needs KIND/NAME, and no upgrade was found; name a namespace with -n", o.verb)
	}
	var commands []string
	for _, target := range found {
		commands = append(commands, fmt.Sprintf("%q", commandOn(o.Session, o.verb, target)))
	}
	slices.Sort(commands)
	return session.UsageError("%s needs KIND/NAME: %s", o.verb, text.JoinNames(commands))
}

// pause returns the action that pauses or resumes an upgrade.
func pause(paused bool) action {
	return func(ctx context.Context, p *session.Session, _ *session.Cluster, target upgradeTarget) (session.Change, error) {
		words := map[bool]string{true: "paused", false: "resumed"}
		switch target.kind {
		case kindUpgrade:
			if paused && target.hasCommenced() {
				return session.Change{}, session.Refused("not paused: the upgrade has commenced, and can no longer be paused")
			}
			return pauseUpgrade(ctx, p, target, words[paused], paused), nil
		case kindSchedule:
			return specChange(ctx, target, words[paused], map[string]any{"schedule": map[string]any{"suspend": paused}}), nil
		default:
			return session.Change{}, session.Refused("not %s: an UpgradeJob has no field for it; hold all upgrades of the cluster with \"%s annotate clusterversion version %s=REASON\", or cancel it",
				words[paused], p.Client(), upgradev1alpha1.HoldAnnotation)
		}
	}
}

// pauseUpgrade pauses an upgrade with an annotation, because Git or another program may own the spec. It also
// resumes an upgrade.
func pauseUpgrade(ctx context.Context, p *session.Session, target upgradeTarget, done string, paused bool) session.Change {
	fields := map[string]any{}
	var reason any // null removes the annotation
	switch {
	case paused:
		reason = p.Name + " pause, at " + text.FormatTime(p.Clock.Now())
	case target.upgrade.Spec.Paused != nil && *target.upgrade.Spec.Paused:
		fields["spec"] = map[string]any{"paused": false}
	}
	fields["metadata"] = map[string]any{"annotations": map[string]any{upgradev1alpha1.PauseAnnotation: reason}}
	return fieldChange(ctx, target, done, fields)
}

// cancel deletes an upgrade that has not commenced, unless it has changed since it was read.
func cancel(ctx context.Context, p *session.Session, _ *session.Cluster, target upgradeTarget) (session.Change, error) {
	record := target.current()
	switch {
	case target.kind == kindSchedule:
		return session.Change{}, session.Refused("not canceled: it schedules upgrades; cancel an UpgradeJob, or suspend the schedule with %q", commandOn(p, "pause", target))
	case target.hasCommenced():
		return session.Change{}, session.Refused("not canceled: the upgrade has commenced; follow it with %q", commandOn(p, "watch", target))
	case record != nil && record.Finished():
		return session.Change{}, session.Refused("not canceled: the upgrade has ended (%s)", record.Phase)
	}
	return session.Change{Done: "canceled", Apply: func(c client.Client) error {
		uid, version := target.object.GetUID(), target.object.GetResourceVersion()
		if err := c.Delete(ctx, target.object, client.Preconditions{UID: &uid, ResourceVersion: &version}); err != nil {
			return fmt.Errorf("canceling %s: %w", target, err)
		}
		return nil
	}}, nil
}

// retry requests another attempt of an upgrade that has ended without success.
func retry(ctx context.Context, p *session.Session, cluster *session.Cluster, target upgradeTarget) (session.Change, error) {
	record := target.current()
	switch {
	case target.kind == kindSchedule:
		return session.Change{}, session.Refused("not retried: it schedules upgrades; retry an UpgradeJob, or start an upgrade with %q", commandOn(p, "run-now", target))
	case record == nil || !record.Finished():
		return session.Change{}, session.Refused("not retried: the upgrade has not ended; follow it with %q", commandOn(p, "watch", target))
	case record.Phase == history.PhaseUpgraded:
		return session.Change{}, session.Refused("not retried: the cluster was upgraded to %s", record.Version)
	case target.pausedBy() != "":
		return session.Change{}, refusePaused(p, "retried", target)
	case target.kind == kindUpgrade:
		return requestByAnnotation(ctx, p, cluster, target, upgradev1alpha1.RetryAnnotation, "will be retried"), nil
	}
	return requestByAnnotation(ctx, p, cluster, target, maintenancev1beta1.RetryAnnotation, "will be retried"), nil
}

// runNow starts an upgrade now. For a schedule, it requests a new upgrade.
func runNow(ctx context.Context, p *session.Session, cluster *session.Cluster, target upgradeTarget) (session.Change, error) {
	switch target.kind {
	case kindUpgrade:
		record := target.current()
		switch {
		case target.inProgress():
			return session.Change{}, session.Refused("not started: the upgrade is in progress; follow it with %q", commandOn(p, "watch", target))
		case record != nil && record.Finished() && record.Phase == history.PhaseUpgraded:
			return session.Change{}, session.Refused("not started: the cluster was upgraded to %s", record.Version)
		case target.pausedBy() != "":
			return session.Change{}, refusePaused(p, "started", target)
		}
		return requestByAnnotation(ctx, p, cluster, target, upgradev1alpha1.RunNowAnnotation, "starts now"), nil
	case kindSchedule:
		return requestByAnnotation(ctx, p, cluster, target, maintenancev1beta1.RunNowAnnotation, "will create an UpgradeJob now, if an update is available"), nil
	default:
		return session.Change{}, session.Refused("not started: the window of an UpgradeJob cannot change, it starts at %s; start another upgrade with \"%s run-now uc/NAME\"", target.job.Spec.StartAfter, p.Name)
	}
}

// requestByAnnotation sets an annotation to the current time. The operator responds to it.
func requestByAnnotation(ctx context.Context, p *session.Session, cluster *session.Cluster, target upgradeTarget, annotation, done string) session.Change {
	return session.Change{Done: done + holdNote(ctx, p, cluster), Apply: func(c client.Client) error {
		if err := session.Annotate(ctx, c, target.object, annotation, text.FormatTime(p.Clock.Now())); err != nil {
			return fmt.Errorf("changing %s: %w", target, err)
		}
		return nil
	}}
}

// refusePaused returns the error for starting a paused upgrade.
func refusePaused(p *session.Session, done string, target upgradeTarget) error {
	return session.Refused("not %s: the upgrade is %s; run %q first", done, target.pausedBy(), commandOn(p, "resume", target))
}

// holdNote returns the end of a message that mentions the annotation that holds all upgrades of the cluster.
// It returns "" if the annotation is not set.
func holdNote(ctx context.Context, p *session.Session, cluster *session.Cluster) string {
	const annotation = "the annotation " + upgradev1alpha1.HoldAnnotation + " of the ClusterVersion holds the cluster"
	var version configv1.ClusterVersion
	if err := cluster.Get(ctx, clusterstate.VersionKey, &version); err != nil {
		return "; whether " + annotation + " is unknown: " + session.ReadMessage(err)
	}
	reason, held := version.Annotations[upgradev1alpha1.HoldAnnotation]
	if !held {
		return ""
	}
	remedy := p.Client() + " annotate clusterversion version " + upgradev1alpha1.HoldAnnotation + "-"
	return fmt.Sprintf("; no upgrade commences while %s (%s): remove it with %q", annotation, text.Reason(reason), remedy)
}

// commandOn returns a command line for an object, for messages.
func commandOn(p *session.Session, verb string, target upgradeTarget) string {
	return fmt.Sprintf("%s %s %s -n %s", p.Name, verb, target, target.object.GetNamespace())
}

// specChange changes fields of the spec unless the object has changed since it was read.
func specChange(ctx context.Context, target upgradeTarget, done string, spec map[string]any) session.Change {
	return fieldChange(ctx, target, done, map[string]any{"metadata": map[string]any{}, "spec": spec})
}

// fieldChange changes fields of the metadata and other fields unless the object has changed since it was
// read.
func fieldChange(ctx context.Context, target upgradeTarget, done string, fields map[string]any) session.Change {
	return session.Change{Done: done, Apply: func(c client.Client) error {
		if metadata, ok := fields["metadata"].(map[string]any); ok {
			metadata["resourceVersion"] = target.object.GetResourceVersion()
		}
		patch, err := json.Marshal(fields)
		if err != nil {
			return err
		}
		if err := c.Patch(ctx, target.object, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return fmt.Errorf("changing %s: %w", target, err)
		}
		return nil
	}}
}
