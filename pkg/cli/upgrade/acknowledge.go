// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updatestatus"
)

// acknowledgeOptions holds the flags and the argument of the command acknowledge.
type acknowledgeOptions struct {
	*session.Session
	session.NoFlags
	session.ChangeOptions

	kind, object string
}

// NewAcknowledgeCommand returns the command that acknowledges what needs attention after an update.
func NewAcknowledgeCommand(p *session.Session) *cobra.Command {
	o := &acknowledgeOptions{Session: p}
	cmd := &cobra.Command{
		Use:   "acknowledge KIND/NAME",
		Short: "Acknowledge a finished UpgradeJob or an insight of the last update",
		Long: "Acknowledge something that needs attention after an update.\n\n" +
			"upgradejob/NAME resolves the alerts about a finished UpgradeJob. insight/UUID removes an insight of the last update\n" +
			"from the status. Run \"status --details\" to find the UUIDs.",
		Example: "  oc update acknowledge upgradejob/cluster-upgrade-1804021200 -n managed-upgrade-operator",
		Args:    cobra.MatchAll(cobra.ExactArgs(1), validTarget),
		RunE:    session.RunE(o),
	}
	o.Bind(cmd)
	return cmd
}

// validTarget accepts KIND/NAME for kinds that can be acknowledged.
func validTarget(_ *cobra.Command, args []string) error {
	kind, name, found := strings.Cut(args[0], "/")
	kinds := []string{"insight", "upgradejob", "upgradejobs", "upgradejob.managedupgrade.appuio.io", "upgradejobs.managedupgrade.appuio.io"}
	if !found || name == "" || !slices.Contains(kinds, strings.ToLower(kind)) {
		return fmt.Errorf("%q must be upgradejob/NAME or insight/UUID", args[0])
	}
	return nil
}

// Complete takes the object from the argument.
func (o *acknowledgeOptions) Complete(_ *cobra.Command, args []string) error {
	o.kind, o.object, _ = strings.Cut(args[0], "/")
	return nil
}

// Run acknowledges the object.
func (o *acknowledgeOptions) Run(ctx context.Context) error {
	cluster, err := o.ConnectForChange(&o.ChangeOptions)
	if err != nil {
		return err
	}
	if strings.EqualFold(o.kind, "insight") {
		return o.acknowledgeInsight(ctx, cluster, o.object)
	}
	return o.acknowledgeJob(ctx, cluster, o.object)
}

func (o *acknowledgeOptions) acknowledgeJob(ctx context.Context, cluster *session.Cluster, name string) error {
	namespace, _, err := o.Namespace()
	if err != nil {
		return err
	}
	job := &maintenancev1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	what := "upgradejob/" + name
	return o.Commit(ctx, &o.ChangeOptions, cluster, "acknowledge "+what+" in namespace "+namespace, what, session.Change{Done: "acknowledged", Apply: func(c client.Client) error {
		token := text.FormatTime(o.Clock.Now())
		if err := session.Annotate(ctx, c, job, maintenancev1beta1.AcknowledgedAnnotation, token); err != nil {
			return fmt.Errorf("acknowledging UpgradeJob %s/%s: %w", namespace, name, err)
		}
		return nil
	}})
}

// acknowledgeInsight adds an insight to the acknowledged ones.
func (o *acknowledgeOptions) acknowledgeInsight(ctx context.Context, cluster *session.Cluster, uuid string) error {
	status := &updatev1beta1.UpdateStatus{}
	if err := cluster.Get(ctx, client.ObjectKey{Name: updatev1beta1.UpdateStatusName}, status); err != nil {
		return fmt.Errorf("reading the UpdateStatus: %w", err)
	}
	if !slices.ContainsFunc(status.Status.AfterUpdate, func(r updatev1beta1.RetainedInsight) bool { return r.Insight.UUID == uuid }) {
		return fmt.Errorf("insight %s does not need attention; list those that do with %q", uuid, o.Name+" status --details")
	}
	what := "insight/" + uuid
	return o.Commit(ctx, &o.ChangeOptions, cluster, "acknowledge "+what, what, session.Change{Done: "acknowledged", Apply: func(c client.Client) error {
		if err := session.Annotate(ctx, c, status, updatev1beta1.AcknowledgedAnnotation, updatestatus.Acknowledge(status, uuid)); err != nil {
			return fmt.Errorf("acknowledging insight %s: %w", uuid, err)
		}
		return nil
	}})
}
