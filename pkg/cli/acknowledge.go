// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
)

// acknowledgeCommand acknowledges what needs attention after an update.
func (p *Program) acknowledgeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "acknowledge KIND/NAME",
		Short: "Acknowledges the end of an UpgradeJob, or an insight of the last update.",
		Long: "Acknowledges what needs attention after an update.\n\n" +
			"upgradejob/NAME ends the alerts about an UpgradeJob that has ended. insight/UUID removes an insight of\n" +
			"the last update from the status; \"status --details\" prints the UUIDs.",
		Example: "  oc update acknowledge upgradejob/cluster-upgrade-1804021200 -n managed-upgrade-operator",
		Args:    cobra.MatchAll(cobra.ExactArgs(1), validTarget),
		RunE: func(cmd *cobra.Command, args []string) error {
			cluster, err := p.connectForWrites()
			if err != nil {
				return err
			}
			kind, name, _ := strings.Cut(args[0], "/")
			if strings.EqualFold(kind, "insight") {
				return p.acknowledgeInsight(cmd.Context(), cluster, name)
			}
			return p.acknowledgeJob(cmd.Context(), cluster, name)
		},
	}
}

// validTarget accepts KIND/NAME of a kind that can be acknowledged.
func validTarget(_ *cobra.Command, args []string) error {
	kind, name, found := strings.Cut(args[0], "/")
	kinds := []string{"insight", "upgradejob", "upgradejobs", "upgradejob.managedupgrade.appuio.io", "upgradejobs.managedupgrade.appuio.io"}
	if !found || name == "" || !slices.Contains(kinds, strings.ToLower(kind)) {
		return fmt.Errorf("%q must be upgradejob/NAME or insight/UUID", args[0])
	}
	return nil
}

// connectForWrites returns a cluster that can be written to.
func (p *Program) connectForWrites() (*Cluster, error) {
	if p.replay.dir != "" {
		return nil, usageError("--replay: this command changes the cluster, and a dump cannot be changed")
	}
	return p.connect()
}

func (p *Program) acknowledgeJob(ctx context.Context, cluster *Cluster, name string) error {
	namespace, _, err := p.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return &kubeconfigError{err}
	}
	job := &maintenancev1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	token := p.Clock.Now().UTC().Format(time.RFC3339)
	if err := annotate(ctx, cluster.Client, job, maintenancev1beta1.AcknowledgedAnnotation, token); err != nil {
		return fmt.Errorf("acknowledging UpgradeJob %s/%s: %w", namespace, name, err)
	}
	_, err = fmt.Fprintf(p.Streams.Out, "upgradejob/%s acknowledged\n", name)
	return err
}

// acknowledgeInsight adds an insight to those that are acknowledged. Those that no longer need attention
// are removed, so that the list stays short.
func (p *Program) acknowledgeInsight(ctx context.Context, cluster *Cluster, uuid string) error {
	status := &updatev1beta1.UpdateStatus{}
	if err := cluster.Get(ctx, client.ObjectKey{Name: updatev1beta1.UpdateStatusName}, status); err != nil {
		return fmt.Errorf("reading the UpdateStatus: %w", err)
	}
	isRetained := func(uuid string) bool {
		return slices.ContainsFunc(status.Status.AfterUpdate, func(r updatev1beta1.RetainedInsight) bool { return r.Insight.UUID == uuid })
	}
	if !isRetained(uuid) {
		return fmt.Errorf("insight %s does not need attention; list those that do with %q", uuid, p.name+" status --details")
	}
	known := strings.Split(status.Annotations[updatev1beta1.AcknowledgedAnnotation], ",")
	acknowledged := append(slices.DeleteFunc(known, func(known string) bool { return !isRetained(known) || known == uuid }), uuid)
	if err := annotate(ctx, cluster.Client, status, updatev1beta1.AcknowledgedAnnotation, strings.Join(acknowledged, ",")); err != nil {
		return fmt.Errorf("acknowledging insight %s: %w", uuid, err)
	}
	_, err := fmt.Fprintf(p.Streams.Out, "insight/%s acknowledged\n", uuid)
	return err
}

// annotate sets an annotation of an object. If the object was read, it must not have changed since.
func annotate(ctx context.Context, c client.Client, object client.Object, annotation, value string) error {
	metadata := map[string]any{"annotations": map[string]string{annotation: value}}
	if version := object.GetResourceVersion(); version != "" {
		metadata["resourceVersion"] = version
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	return c.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
}
