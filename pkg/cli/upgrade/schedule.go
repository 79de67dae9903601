// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// scheduleOptions holds the flags of the command schedule.
type scheduleOptions struct {
	*session.Session
	session.NoArguments
	session.ChangeOptions

	format          *session.Output
	to, at          string
	config          string // name of the UpgradeConfig
	runbook         string
	channel         string
	forceDrainAfter time.Duration
	acceptRisks     []string
}

const (
	// newestRelease is the value of --to for the newest recommended release.
	newestRelease = "latest"
	// scheduleDelay is the delay before an upgrade without a start time.
	scheduleDelay = 10 * time.Minute
	// defaultForceDrain is how long PodDisruptionBudgets may block a drain by default.
	defaultForceDrain = time.Hour
)

// NewScheduleCommand returns the command that schedules an upgrade of the cluster.
func NewScheduleCommand(p *session.Session) *cobra.Command {
	o := &scheduleOptions{Session: p}
	cmd := &cobra.Command{
		Use:   "schedule --to RELEASE",
		Short: "Schedule an upgrade of the cluster by the operator",
		Long: "Schedule an upgrade of the cluster. The command creates or changes the UpgradeConfig given by --name. An UpgradeConfig\n" +
			"whose upgrade is in progress cannot be changed. The operator runs the upgrade at the time given by --at.\n\n" +
			"With -o yaml, the command prints the UpgradeConfig, for example for a Git repository, and does not change anything.\n\n" +
			"The default namespace is managed-upgrade-operator. Use -n for another namespace watched by the operator.",
		Example: "  oc update schedule --to 4.20.8 --at 22:00\n" +
			"  oc update schedule --to latest --at 2026-11-28T22:00:00+01:00\n" +
			"  oc update schedule --to 4.20.8 --at +2h -o yaml > upgrade.yaml",
		Args: manager.NoArgs,
		RunE: session.RunE(o),
	}
	o.format = session.OutputFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.to, "to", "", "release to upgrade to, for example 4.20.8, or \"latest\" for the newest release recommended by the channel")
	flags.StringVar(&o.at, "at", "", "start time: a time of day in your time zone such as 22:00, a timestamp such as 2026-11-28T22:00:00Z, or a delay such as +2h (default: +10m)")
	flags.StringVar(&o.config, "name", "managed-upgrade-config", "name of the UpgradeConfig")
	flags.StringVar(&o.runbook, "type", "OSD", "runbook of the upgrade: OSD, ARO, or a custom type")
	flags.StringVar(&o.channel, "channel", "", "channel that offers the release (default: the channel of the cluster)")
	flags.DurationVar(&o.forceDrainAfter, "force-drain-after", defaultForceDrain, "how long PodDisruptionBudgets may block a node drain")
	flags.StringSliceVar(&o.acceptRisks, "accept-risk", nil, "name of a known risk of a conditional release to accept; may be repeated")
	o.Bind(cmd)
	return cmd
}

// Validate checks the flags.
func (o *scheduleOptions) Validate() error {
	if o.to != newestRelease {
		if err := session.ValidateRelease("to", o.to); err != nil {
			return err
		}
	}
	if minutes := o.forceDrainAfter.Minutes(); minutes < 0 || minutes > math.MaxInt32 || o.forceDrainAfter%time.Minute != 0 {
		return session.UsageError("--force-drain-after: is %s, must be a number of minutes, such as 60m", o.forceDrainAfter)
	}
	if err := o.format.Check(); err != nil {
		return err
	}
	if o.format.IsText() {
		return o.Check(o.Session)
	}
	return nil
}

// Run schedules or prints the upgrade.
func (o *scheduleOptions) Run(ctx context.Context) error {
	at, err := startTime(o.at, o.Clock.Now())
	if err != nil {
		return err
	}
	connect := o.ConnectForWrites
	if !o.format.IsText() {
		connect = o.Connect
	}
	cluster, err := connect()
	if err != nil {
		return err
	}
	version, err := clusterstate.GetClusterVersion(ctx, cluster)
	if err != nil {
		return err
	}
	upgrade, err := o.newUpgrade(version, at)
	if err != nil {
		return err
	}
	if !o.format.IsText() {
		upgrade.SetGroupVersionKind(upgradev1alpha1.GroupVersion.WithKind("UpgradeConfig"))
		return o.format.Print(o.Streams.Out, upgrade)
	}
	target := targetOf(upgrade)
	c, err := o.saveUpgrade(ctx, cluster, upgrade, at)
	if err != nil {
		return err
	}
	question := fmt.Sprintf("schedule the upgrade from %s to %s at %s in namespace %s", version.Current.Version, upgrade.Spec.Desired.Version, localTime(at), upgrade.Namespace)
	return o.Commit(ctx, &o.ChangeOptions, cluster, question, target.String(), c)
}

// newUpgrade returns the UpgradeConfig for the flags.
func (o *scheduleOptions) newUpgrade(version clusterstate.Version, at time.Time) (*upgradev1alpha1.UpgradeConfig, error) {
	target := clusterstate.Target{Version: o.to, AcceptedRisks: o.acceptRisks}
	if o.to == newestRelease {
		target.Version = version.NewestUpdate(false).Release.Version
		if target.Version == "" {
			return nil, session.Refused("not scheduled: channel %q recommends no update; list what it offers with \"oc adm upgrade --include-not-recommended\"", version.Channel)
		}
	}
	offer := version.AvailableUpdate(target)
	channel := cmp.Or(o.channel, version.Channel)
	switch {
	case channel == "":
		return nil, session.UsageError("--channel: is required, because the cluster has no channel")
	case channel == version.Channel && !offer.Available:
		return nil, session.Refused("not scheduled: channel %q does not offer %s; list what it offers with \"oc adm upgrade\"", channel, target.Version)
	}
	var names []string
	for _, risk := range offer.UnacceptedRisks(target) {
		names = append(names, fmt.Sprintf("%s (%s)", risk.Name, risk))
	}
	if len(names) > 0 {
		return nil, session.Refused("not scheduled: %s has known risks; accept each with --accept-risk NAME: %s", target.Version, strings.Join(names, "; "))
	}
	upgrade := &upgradev1alpha1.UpgradeConfig{Spec: upgradev1alpha1.UpgradeConfigSpec{
		Type: o.runbook, UpgradeAt: at.UTC().Format(time.RFC3339), PDBForceDrainTimeout: new(int32(o.forceDrainAfter / time.Minute)),
		Desired: upgradev1alpha1.Update{Version: target.Version, Channel: channel, AcceptedRisks: o.acceptRisks},
	}}
	upgrade.Namespace, upgrade.Name = cmp.Or(o.NamespaceFlag(), session.ControllerNamespace), o.config
	return upgrade, nil
}

// saveUpgrade returns the change that creates an UpgradeConfig or updates an existing one to request the
// upgrade.
func (o *scheduleOptions) saveUpgrade(ctx context.Context, cluster *session.Cluster, upgrade *upgradev1alpha1.UpgradeConfig, at time.Time) (session.Change, error) {
	done := fmt.Sprintf("starts the upgrade to %s at %s%s. Follow it with: %s watch upgrade/%s -n %s", upgrade.Spec.Desired.Version, localTime(at),
		holdNote(ctx, o.Session, cluster), o.Name, upgrade.Name, upgrade.Namespace)
	stored := &upgradev1alpha1.UpgradeConfig{}
	err := cluster.Get(ctx, client.ObjectKeyFromObject(upgrade), stored)
	switch {
	case apierrors.IsNotFound(err):
		return session.Change{Done: done, Apply: func(c client.Client) error {
			if err := c.Create(ctx, upgrade, client.FieldOwner("kubectl-update")); err != nil {
				return fmt.Errorf("creating %s in namespace %s: %w", targetOf(upgrade), upgrade.Namespace, err)
			}
			return nil
		}}, nil
	case err != nil:
		return session.Change{}, fmt.Errorf("reading %s in namespace %s: %w", targetOf(upgrade), upgrade.Namespace, err)
	}
	target := targetOf(stored)
	switch {
	case target.inProgress():
		return session.Change{}, session.Refused("not scheduled: %s in namespace %s is in progress; follow it with %q", target, upgrade.Namespace, commandOn(o.Session, "watch", target))
	case target.pausedBy() != "":
		return session.Change{}, refusePaused(o.Session, "scheduled", target)
	}
	spec, err := fieldsOf(upgrade.Spec)
	if err != nil {
		return session.Change{}, err
	}
	return specChange(ctx, target, done, spec), nil
}

// fieldsOf returns the fields of a spec for a merge patch. It removes risks accepted by an earlier request.
func fieldsOf(spec upgradev1alpha1.UpgradeConfigSpec) (map[string]any, error) {
	encoded, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	var fields struct {
		Spec map[string]any
	}
	if err := json.Unmarshal(encoded, &fields.Spec); err != nil {
		return nil, err
	}
	if desired, is := fields.Spec["desired"].(map[string]any); is {
		for _, field := range []string{"acceptedRisks", "image"} {
			if _, set := desired[field]; !set {
				desired[field] = nil
			}
		}
	}
	return fields.Spec, nil
}

// startTime parses the value of --at.
func startTime(value string, now time.Time) (time.Time, error) {
	if value == "" {
		return now.Add(scheduleDelay), nil
	}
	if delay, isDelay := strings.CutPrefix(value, "+"); isDelay {
		if d, err := time.ParseDuration(delay); err == nil && d >= 0 {
			return now.Add(d), nil
		}
	}
	if at, err := time.Parse(time.RFC3339, value); err == nil {
		if at.Before(now) {
			return time.Time{}, session.UsageError("--at: is %s, which is past", value)
		}
		return at, nil
	}
	if clock, err := time.Parse("15:04", value); err == nil {
		at := time.Date(now.Year(), now.Month(), now.Day(), clock.Hour(), clock.Minute(), 0, 0, now.Location())
		if !at.After(now) {
			at = time.Date(now.Year(), now.Month(), now.Day()+1, clock.Hour(), clock.Minute(), 0, 0, now.Location())
		}
		return at, nil
	}
	return time.Time{}, session.UsageError("--at: is %q, must be a time of day such as 22:00, a time such as 2026-11-28T22:00:00Z, or a delay such as +2h", value)
}

// localTime formats a time in the user's time zone.
func localTime(at time.Time) string { return at.Format("2006-01-02 15:04 MST") }
