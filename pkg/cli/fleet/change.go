// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/stored"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
)

// fleetChange is a change to an upgrade's spec.
type fleetChange struct {
	// fields holds the spec fields to set, or nil if they are already set.
	fields map[string]any
	// done describes the upgrade after the change, or why there is nothing to change.
	done string
}

// fleetEdit returns the change to an upgrade's spec, or an error if it refuses.
type fleetEdit func(*fleetv1beta1.ManagedClustersUpgrade) (fleetChange, error)

// startOptions holds the flags and the argument of the command fleet start. --dry-run without a value
// requests a dry run of the upgrade.
type startOptions struct {
	*session.Session
	session.ChangeOptions

	file     string
	asDryRun bool
	args     []string
}

// startCommand returns the command that starts an upgrade.
func startCommand(p *session.Session) *cobra.Command {
	o := &startOptions{Session: p}
	cmd := withFleetNames(p, &cobra.Command{
		Use:   "start [NAME] [-f FILE]",
		Short: "Start a fleet upgrade from a file or after a dry run",
		Long: "Start a fleet upgrade.\n\n" +
			"With --filename, the command creates the ManagedClustersUpgrade in the file. Add --dry-run to create it as a dry run, which\n" +
			"does not upgrade clusters. With NAME, the command ends the dry run of an existing upgrade.",
		Example: "  oc update fleet start -f stores.yaml --dry-run\n  oc update fleet start stores",
		Args:    cobra.MaximumNArgs(1),
		RunE:    session.RunE(o),
	})
	cmd.Flags().StringVarP(&o.file, "filename", "f", "", "file that contains the ManagedClustersUpgrade; use - for standard input (requires -y)")
	o.Bind(cmd)
	flag := cmd.Flags().Lookup("dry-run")
	flag.Value, flag.NoOptDefVal = o, "fleet"
	flag.Usage = "create a dry run that checks the clusters but does not upgrade them; with =server, the API server validates the change without making it"
	return cmd
}

// Complete takes the name of an existing upgrade from the argument.
func (o *startOptions) Complete(_ *cobra.Command, args []string) error {
	o.args = args
	return nil
}

// Validate checks the flags and the argument.
func (o *startOptions) Validate() error {
	switch named := len(o.args) == 1; {
	case named == (o.file != ""):
		return session.UsageError("start needs either the name of an upgrade or --filename")
	case named && o.asDryRun:
		return session.UsageError("--dry-run: needs --filename; an upgrade that exists becomes a dry run by its field spec.dryRun")
	}
	return nil
}

// Run creates the upgrade or ends its dry run.
func (o *startOptions) Run(ctx context.Context) error {
	if o.file != "" {
		return o.createFleet(ctx)
	}
	change := fleetChangeOptions{
		upgradeOptions: upgradeOptions{Session: o.Session, upgrade: o.args[0]}, ChangeOptions: o.ChangeOptions, verb: "start", edit: startFleet,
	}
	return change.Run(ctx)
}

// String returns the value of --dry-run as users write it.
func (o *startOptions) String() string {
	if o.asDryRun {
		return "fleet"
	}
	return o.DryRun.String()
}

// Set parses a value of --dry-run.
func (o *startOptions) Set(value string) error {
	switch value {
	case "fleet", "true":
		o.asDryRun = true
		return nil
	case "false":
		value = "none"
	}
	o.asDryRun = false
	return o.DryRun.Set(value)
}

// Type returns the type shown in the help.
func (o *startOptions) Type() string { return "string" }

// createFleet creates the upgrade in a file.
func (o *startOptions) createFleet(ctx context.Context) error {
	upgrade, err := o.readFleet(o.file)
	if err != nil {
		return err
	}
	if err := o.Check(o.Session); err != nil {
		return err
	}
	if o.file == session.StdinPlaceholder && !o.Yes && !bool(o.DryRun) {
		return session.UsageError("nothing was created: the standard input has the file, so you cannot agree; add -y")
	}
	cluster, err := o.ConnectForWrites()
	if err != nil {
		return err
	}
	namespace, explicit, err := o.Namespace()
	if err != nil {
		return err
	}
	switch {
	case upgrade.Namespace == "":
		upgrade.Namespace = namespace
	case explicit && upgrade.Namespace != namespace:
		return session.UsageError("--namespace: is %q, and the object of --filename has %q", namespace, upgrade.Namespace)
	}
	return o.sendFleet(ctx, cluster, upgrade)
}

// sendFleet creates an upgrade.
func (o *startOptions) sendFleet(ctx context.Context, cluster *session.Cluster, upgrade *fleetv1beta1.ManagedClustersUpgrade) error {
	upgrade.Spec.DryRun = upgrade.Spec.DryRun || o.asDryRun
	done, next := "started", "status"
	if upgrade.Spec.DryRun {
		done, next = "created as a dry run", "plan"
	}
	what := "managedclustersupgrade/" + upgrade.Name
	done += fmt.Sprintf(". Follow it with: %s fleet %s %s -n %s", o.Name, next, upgrade.Name, upgrade.Namespace)
	question := fmt.Sprintf("create %s in namespace %s", what, upgrade.Namespace)
	return o.Commit(ctx, &o.ChangeOptions, cluster, question, what, session.Change{Done: done, Apply: func(c client.Client) error {
		if err := c.Create(ctx, upgrade, client.FieldOwner("kubectl-update"), client.FieldValidation("Strict")); err != nil {
			return fmt.Errorf("creating ManagedClustersUpgrade %s/%s: %w", upgrade.Namespace, upgrade.Name, err)
		}
		return nil
	}})
}

// maxFleetFile limits the size of an upgrade's file, in bytes. The API server does not accept larger objects.
const maxFleetFile = 3 << 20

// readFleet reads an upgrade from a file. Unknown fields are errors.
func (o *startOptions) readFleet(file string) (*fleetv1beta1.ManagedClustersUpgrade, error) {
	in := o.Streams.In
	if file != "-" {
		opened, err := os.DirFS(filepath.Dir(file)).Open(filepath.Base(file))
		if err != nil {
			return nil, session.UsageError("--filename: %s cannot be read: %w", file, err)
		}
		defer opened.Close()
		in = opened
	}
	content, err := onlyDocument(io.LimitReader(in, maxFleetFile))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	upgrade := &fleetv1beta1.ManagedClustersUpgrade{}
	if content, err = yaml.YAMLToJSONStrict(content); err == nil {
		err = stored.DecodeStrict(content, upgrade)
	}
	if err != nil {
		return nil, session.UsageError("--filename: is not a ManagedClustersUpgrade: %w", err)
	}
	if want := fleetv1beta1.GroupVersion.WithKind("ManagedClustersUpgrade"); upgrade.GroupVersionKind() != want {
		return nil, session.UsageError("--filename: contains %s, must contain one object of kind %s", upgrade.GroupVersionKind(), want)
	}
	if upgrade.Name == "" {
		return nil, session.UsageError("--filename: the object has no metadata.name")
	}
	return upgrade, nil
}

// onlyDocument returns the only non-empty document in a file. More than one is an error.
func onlyDocument(in io.Reader) ([]byte, error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(in))
	var only []byte
	for {
		document, err := documents.Read()
		switch {
		case errors.Is(err, io.EOF):
			return only, nil
		case err != nil:
			return nil, err
		}
		var content any
		if err := yaml.Unmarshal(document, &content); err == nil && content == nil {
			continue // only comments
		}
		if only != nil {
			return nil, session.UsageError("--filename: contains more than one object, must contain one ManagedClustersUpgrade")
		}
		only = document
	}
}

// fleetChangeOptions holds the flags and the argument of commands that change an upgrade's spec.
type fleetChangeOptions struct {
	upgradeOptions
	session.ChangeOptions
	session.NoFlags

	verb string
	edit fleetEdit
}

// changeCommand returns a command that changes an upgrade's spec.
func changeCommand(p *session.Session, verb, short, long string, edit fleetEdit) *cobra.Command {
	if long != "" {
		long = short + ".\n\n" + long
	}
	o := &fleetChangeOptions{upgradeOptions: upgradeOptions{Session: p}, verb: verb, edit: edit}
	cmd := withFleetNames(p, &cobra.Command{
		Use: verb + " NAME", Short: short, Long: long, Example: "  oc update fleet " + verb + " stores", Args: cobra.ExactArgs(1), RunE: session.RunE(o),
	})
	o.Bind(cmd)
	return cmd
}

// Run changes an upgrade's spec unless the object has changed since it was read.
func (o *fleetChangeOptions) Run(ctx context.Context) error {
	if _, err := o.ConnectForChange(&o.ChangeOptions); err != nil {
		return err
	}
	cluster, key, err := o.connectFleet()
	if err != nil {
		return err
	}
	return o.apply(ctx, cluster, key)
}

func (o *fleetChangeOptions) apply(ctx context.Context, cluster *session.Cluster, key client.ObjectKey) error {
	upgrade := &fleetv1beta1.ManagedClustersUpgrade{}
	if err := cluster.Get(ctx, key, upgrade); err != nil {
		return fmt.Errorf("reading ManagedClustersUpgrade %s/%s: %w", key.Namespace, key.Name, err)
	}
	c, err := o.edit(upgrade)
	if err != nil {
		return session.Refused("%s is not changed: %w", key.Name, err)
	}
	what := "managedclustersupgrade/" + key.Name
	question := fmt.Sprintf("%s %s in namespace %s", o.verb, what, key.Namespace)
	if c.fields == nil {
		return o.Commit(ctx, &o.ChangeOptions, cluster, question, what, session.Change{Done: c.done})
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": upgrade.ResourceVersion}, "spec": c.fields})
	if err != nil {
		return err
	}
	done := c.done + ". Follow it with: " + fleetCommandLine(o.Session, "status", key.Name)
	return o.Commit(ctx, &o.ChangeOptions, cluster, question, what, session.Change{Done: done, Apply: func(c client.Client) error {
		if err := c.Patch(ctx, upgrade, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("kubectl-update")); err != nil {
			return fmt.Errorf("changing ManagedClustersUpgrade %s/%s: %w", key.Namespace, key.Name, err)
		}
		return nil
	}})
}

// errCancelled is returned if a change has no effect because the upgrade is canceled.
var errCancelled = errors.New("it is cancelled; create another ManagedClustersUpgrade")

// startFleet ends a dry run.
func startFleet(u *fleetv1beta1.ManagedClustersUpgrade) (fleetChange, error) {
	switch {
	case u.Spec.Cancelled:
		return fleetChange{}, errCancelled
	case !u.Spec.DryRun:
		return fleetChange{done: "is started already"}, nil
	}
	return fleetChange{fields: map[string]any{"dryRun": nil}, done: "started"}, nil
}

// pauseFleet pauses an upgrade.
func pauseFleet(u *fleetv1beta1.ManagedClustersUpgrade) (fleetChange, error) {
	switch {
	case u.Spec.Cancelled:
		return fleetChange{}, errCancelled
	case u.Spec.Paused:
		return fleetChange{done: "is paused already"}, nil
	}
	return fleetChange{fields: map[string]any{"paused": true}, done: "paused"}, nil
}

// resumeFleet resumes a paused upgrade.
func resumeFleet(u *fleetv1beta1.ManagedClustersUpgrade) (fleetChange, error) {
	switch {
	case u.Spec.Cancelled:
		return fleetChange{}, errCancelled
	case !u.Spec.Paused:
		return fleetChange{done: "is not paused"}, nil
	}
	return fleetChange{fields: map[string]any{"paused": nil}, done: "resumed"}, nil
}

// cancelFleet cancels an upgrade.
func cancelFleet(u *fleetv1beta1.ManagedClustersUpgrade) (fleetChange, error) {
	if u.Spec.Cancelled {
		return fleetChange{done: "is cancelled already"}, nil
	}
	return fleetChange{fields: map[string]any{"cancelled": true}, done: "cancelled"}, nil
}

// retryFleet increases the attempt number, unless the hub has not observed the current attempt yet.
func retryFleet(u *fleetv1beta1.ManagedClustersUpgrade) (fleetChange, error) {
	attempt := admission.Attempt(u)
	counters := u.Status.ClustersSummery
	switch {
	case u.Spec.Cancelled:
		return fleetChange{}, errCancelled
	case counters == nil || u.Status.ObservedGeneration != u.Generation || u.Status.Attempt != attempt:
		return fleetChange{}, errors.New("the hub has not observed its last change yet; see its status first")
	case counters.Failed == 0 && len(u.Status.Departed) == 0 && !isStopped(u):
		return fleetChange{}, errors.New("no cluster failed, and the rollout has not stopped")
	}
	return fleetChange{fields: map[string]any{"attempt": attempt + 1}, done: fmt.Sprintf("retried with attempt %d", attempt+1)}, nil
}

// isStopped reports whether the rollout needs another attempt to continue.
func isStopped(u *fleetv1beta1.ManagedClustersUpgrade) bool {
	if u.Status.Stop != nil {
		return true
	}
	for i := range u.Status.Conditions {
		if c := &u.Status.Conditions[i]; c.Type == fleetv1beta1.ConditionAdmitting {
			return c.Reason == fleetv1beta1.ReasonRecordsLost || c.Reason == fleetv1beta1.ReasonCanaryFailed || c.Reason == fleetv1beta1.ReasonMaxFailuresExceeded
		}
	}
	return false
}
