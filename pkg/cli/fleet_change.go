// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

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
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
)

// fleetChange is a change of the spec of an upgrade.
type fleetChange struct {
	// fields are the fields of the spec to set; nil means that they are set already.
	fields map[string]any
	// done describes the upgrade afterwards, or why there is nothing to set.
	done string
}

// fleetStartCommand starts an upgrade.
func (p *Program) fleetStartCommand() *cobra.Command {
	var file string
	var dryRun bool
	cmd := p.withFleetNames(&cobra.Command{
		Use:   "start [NAME] [-f FILE]",
		Short: "Starts the upgrade of a fleet: creates it from a file, or ends its dry run.",
		Long: "Starts the upgrade of a fleet. With --filename, it creates the ManagedClustersUpgrade in the file, with --dry-run as a\n" +
			"dry run, which upgrades no cluster. With a name, it ends the dry run of an upgrade that exists.",
		Example: "  oc update fleet start -f stores.yaml --dry-run\n  oc update fleet start stores",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case (len(args) == 1) == (file != ""):
				return usageError("start needs either the name of an upgrade or --filename")
			case len(args) == 1 && dryRun:
				return usageError("--dry-run: needs --filename; an upgrade that exists becomes a dry run by its field spec.dryRun")
			case file != "":
				return p.createFleet(cmd.Context(), file, dryRun)
			}
			return p.changeFleet(cmd.Context(), args[0], startFleet)
		},
	})
	cmd.Flags().StringVarP(&file, "filename", "f", "", "create the ManagedClustersUpgrade in this file; - means the standard input")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "create it as a dry run, which checks the clusters and upgrades none")
	return cmd
}

// createFleet creates the upgrade in a file.
func (p *Program) createFleet(ctx context.Context, file string, dryRun bool) error {
	upgrade, err := p.readFleet(file)
	if err != nil {
		return err
	}
	cluster, err := p.connectForWrites()
	if err != nil {
		return err
	}
	namespace, explicit, err := p.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return &kubeconfigError{err}
	}
	switch {
	case upgrade.Namespace == "":
		upgrade.Namespace = namespace
	case explicit && upgrade.Namespace != namespace:
		return usageError("--namespace: is %q, and the object of --filename has %q", namespace, upgrade.Namespace)
	}
	return p.sendFleet(ctx, cluster, upgrade, dryRun)
}

// sendFleet creates an upgrade.
func (p *Program) sendFleet(ctx context.Context, cluster *Cluster, upgrade *fleetv1beta1.ManagedClustersUpgrade, dryRun bool) error {
	upgrade.Spec.DryRun = upgrade.Spec.DryRun || dryRun
	if err := cluster.Client.Create(ctx, upgrade, client.FieldOwner("kubectl-update"), client.FieldValidation("Strict")); err != nil {
		return fmt.Errorf("creating ManagedClustersUpgrade %s/%s: %w", upgrade.Namespace, upgrade.Name, err)
	}
	done, next := "started", "status"
	if upgrade.Spec.DryRun {
		done, next = "created as a dry run", "plan"
	}
	_, err := fmt.Fprintf(p.Streams.Out, "managedclustersupgrade/%s %s. Follow it with: %s fleet %s %s -n %s\n",
		upgrade.Name, done, p.name, next, upgrade.Name, upgrade.Namespace)
	return err
}

// maxFleetFile bounds the file of an upgrade, in bytes. The API server does not accept larger objects.
const maxFleetFile = 3 << 20

// readFleet reads an upgrade from a file. A field that does not exist is an error.
func (p *Program) readFleet(file string) (*fleetv1beta1.ManagedClustersUpgrade, error) {
	in := p.Streams.In
	if file != "-" {
		opened, err := os.DirFS(filepath.Dir(file)).Open(filepath.Base(file))
		if err != nil {
			return nil, usageError("--filename: %w", err)
		}
		defer opened.Close()
		in = opened
	}
	content, err := onlyDocument(io.LimitReader(in, maxFleetFile))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	upgrade := &fleetv1beta1.ManagedClustersUpgrade{}
	if err := yaml.UnmarshalStrict(content, upgrade); err != nil {
		return nil, usageError("--filename: is not a ManagedClustersUpgrade: %w", err)
	}
	if want := fleetv1beta1.GroupVersion.WithKind("ManagedClustersUpgrade"); upgrade.GroupVersionKind() != want {
		return nil, usageError("--filename: contains %s, must contain one object of kind %s", upgrade.GroupVersionKind(), want)
	}
	if upgrade.Name == "" {
		return nil, usageError("--filename: the object has no metadata.name")
	}
	return upgrade, nil
}

// onlyDocument returns the document of a file that is not empty. A second one is an error.
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
			continue // nothing but comments
		}
		if only != nil {
			return nil, usageError("--filename: contains more than one object, must contain one ManagedClustersUpgrade")
		}
		only = document
	}
}

// fleetChangeCommand changes the spec of an upgrade.
func (p *Program) fleetChangeCommand(verb, short, long string, change func(*fleetv1beta1.ManagedClustersUpgrade) (fleetChange, error)) *cobra.Command {
	if long != "" {
		long = short + " " + long
	}
	return p.withFleetNames(&cobra.Command{
		Use: verb + " NAME", Short: short, Long: long, Example: "  oc update fleet " + verb + " stores", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return p.changeFleet(cmd.Context(), args[0], change) },
	})
}

// changeFleet changes the spec of an upgrade, unless it has changed since it was read.
func (p *Program) changeFleet(ctx context.Context, name string, change func(*fleetv1beta1.ManagedClustersUpgrade) (fleetChange, error)) error {
	if _, err := p.connectForWrites(); err != nil {
		return err
	}
	cluster, key, err := p.connectFleet(name)
	if err != nil {
		return err
	}
	return p.applyFleetChange(ctx, cluster, key, change)
}

func (p *Program) applyFleetChange(
	ctx context.Context, cluster *Cluster, key client.ObjectKey, change func(*fleetv1beta1.ManagedClustersUpgrade) (fleetChange, error),
) error {
	upgrade := &fleetv1beta1.ManagedClustersUpgrade{}
	if err := cluster.Get(ctx, key, upgrade); err != nil {
		return fmt.Errorf("reading ManagedClustersUpgrade %s/%s: %w", key.Namespace, key.Name, err)
	}
	c, err := change(upgrade)
	if err != nil {
		return refused("%s is not changed: %w", key.Name, err)
	}
	if c.fields == nil {
		_, err := fmt.Fprintf(p.Streams.Out, "managedclustersupgrade/%s %s\n", key.Name, c.done)
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": upgrade.ResourceVersion}, "spec": c.fields})
	if err != nil {
		return err
	}
	if err := cluster.Client.Patch(ctx, upgrade, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("kubectl-update")); err != nil {
		return fmt.Errorf("changing ManagedClustersUpgrade %s/%s: %w", key.Namespace, key.Name, err)
	}
	_, err = fmt.Fprintf(p.Streams.Out, "managedclustersupgrade/%s %s. Follow it with: %s\n", key.Name, c.done, p.fleetCommandLine("status", key.Name))
	return err
}

// errCancelled is returned if a change has no effect because the upgrade is cancelled.
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

// resumeFleet continues an upgrade that is paused.
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

// retryFleet raises the attempt. An attempt that the hub has not observed yet is not raised again.
func retryFleet(u *fleetv1beta1.ManagedClustersUpgrade) (fleetChange, error) {
	attempt := admission.Attempt(u)
	counters := u.Status.ClustersSummery
	switch {
	case u.Spec.Cancelled:
		return fleetChange{}, errCancelled
	case counters == nil || u.Status.ObservedGeneration != u.Generation || u.Status.Attempt != attempt:
		return fleetChange{}, errors.New("the hub has not observed its last change yet; see its status first")
	case counters.Failed == 0 && !isStopped(u):
		return fleetChange{}, errors.New("no cluster failed, and the rollout has not stopped")
	}
	return fleetChange{fields: map[string]any{"attempt": attempt + 1}, done: fmt.Sprintf("retried with attempt %d", attempt+1)}, nil
}

// isStopped reports whether only another attempt continues the rollout.
func isStopped(u *fleetv1beta1.ManagedClustersUpgrade) bool {
	for i := range u.Status.Conditions {
		if c := &u.Status.Conditions[i]; c.Type == fleetv1beta1.ConditionAdmitting {
			return c.Reason == fleetv1beta1.ReasonRecordsLost || c.Reason == fleetv1beta1.ReasonCanaryFailed || c.Reason == fleetv1beta1.ReasonMaxFailuresExceeded
		}
	}
	return false
}
