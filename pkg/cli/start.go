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

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/informers"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

// startOptions are the flags of the commands that start an update.
type startOptions struct {
	planRequest

	preChecks bool
	// pausePools pauses the pools of workers first, so that only the control plane is updated.
	pausePools bool
}

const startDoc = "It does not start unless the UpdatePlan of the release says so: each risk is fixed or accepted, and the analysis is not\n" +
	"older than --max-age. With --pre-checks=false it starts nevertheless; an annotation of the ClusterVersion and an Event\n" +
	"record that, and an admission policy may deny it."

// startCommand starts an update of the cluster.
func (p *Program) startCommand() *cobra.Command {
	return p.newStartCommand("start", "Starts the update of the cluster to a release, once its risks are accepted.",
		"Starts the update of the cluster to a release.\n\n"+startDoc, "  oc update start --to 4.20.8", false)
}

// controlPlaneCommand starts an update of the control plane alone.
func (p *Program) controlPlaneCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "control-plane", Short: "Updates the control plane alone.", Args: manager.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.newStartCommand("start", "Starts the update of the control plane, and pauses the pools of worker nodes.",
		"Starts the update of the control plane to a release. The machine config pools of worker nodes are paused first; start\n"+
			"their update with \"worker-nodes start\".\n\n"+startDoc, "  oc update control-plane start --to 4.20.8", true))
	return cmd
}

func (p *Program) newStartCommand(use, short, long, example string, pausePools bool) *cobra.Command {
	o := &startOptions{pausePools: pausePools}
	cmd := &cobra.Command{
		Use: use + " --to RELEASE", Short: short, Long: long, Example: example, Args: manager.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.start(cmd.Context(), o) },
	}
	cmd.Flags().StringVar(&o.release, "to", "", "release to which the cluster is updated, for example 4.20.8")
	cmd.Flags().BoolVar(&o.preChecks, "pre-checks", true, "start only if the UpdatePlan of the release allows it")
	bindPlanFlags(cmd, &o.planRequest)
	return cmd
}

func (p *Program) start(ctx context.Context, o *startOptions) error {
	if err := o.validate("to"); err != nil {
		return err
	}
	cluster, err := p.connectForWrites()
	if err != nil {
		return err
	}
	return p.runStart(ctx, cluster, o)
}

// runStart checks the plan, and requests the update. What was checked and what is patched are the same
// ClusterVersion: another request in between is a conflict.
func (p *Program) runStart(ctx context.Context, cluster *Cluster, o *startOptions) error {
	var risks []string
	if o.preChecks {
		plan, err := p.analyzedPlan(ctx, cluster, o.planRequest)
		if meta.IsNoMatchError(err) {
			return refused("not started: pre-checks need the Update Status Controller, which is not installed; start without them with --pre-checks=false")
		}
		if err != nil {
			return err
		}
		if planVerdict(plan, p.Clock.Now()) != ExitDone {
			return p.refuse(plan)
		}
		risks = acceptedRisks(plan)
	}
	version := &configv1.ClusterVersion{}
	if err := cluster.Get(ctx, clusterstate.VersionKey, version); err != nil {
		return fmt.Errorf("reading the ClusterVersion: %w", err)
	}
	update, err := requestedUpdate(version, o, risks)
	if err != nil {
		return err
	}
	request := updateRequest{version: version, update: update, bypass: !o.preChecks}
	if o.pausePools {
		err = p.requestControlPlane(ctx, cluster, request)
	} else {
		err = p.sendThroughGate(ctx, cluster, request)
	}
	if err != nil {
		return err
	}
	if !o.preChecks {
		p.recordBypass(ctx, cluster, version, o.release)
	}
	_, err = fmt.Fprintf(p.Streams.Out, "Requested the update from %s to %s. Follow it with: %s status -w\n",
		clusterstate.VersionOf(version).Current.Version, o.release, p.name)
	return err
}

// refused returns the error of an update that is not started.
func refused(format string, args ...any) error {
	return &exitError{code: ExitActionRequired, err: fmt.Errorf(format, args...)}
}

// refuse returns why a plan does not allow the update, and what to do.
func (p *Program) refuse(plan *updatev1beta1.UpdatePlan) error {
	message := "the analysis is not complete"
	if c := meta.FindStatusCondition(plan.Status.Conditions, updatev1beta1.ConditionStartable); c != nil {
		message = c.Message
	}
	next := fmt.Sprintf("see %q", p.name+" pre-checks --version "+plan.Spec.TargetRelease)
	return refused("not started: %s; %s", message, next)
}

// acceptedRisks returns the names of the known risks of the release that a plan accepts.
func acceptedRisks(plan *updatev1beta1.UpdatePlan) []string {
	var names []string
	for _, of := range updateplan.Insights(&plan.Status) {
		if name, is := informers.RiskOf(of.Insight.UID); is && of.Informer == informers.NameReadiness {
			names = append(names, name)
		}
	}
	return names
}

// requestedUpdate returns the update to request, with the risks that are accepted already.
func requestedUpdate(version *configv1.ClusterVersion, o *startOptions, risks []string) (*configv1.Update, error) {
	facts := clusterstate.VersionOf(version)
	target := clusterstate.Target{Version: o.release}
	offer := facts.AvailableUpdate(target)
	change, err := clusterstate.CompareVersions(facts.Current.Version, o.release)
	switch {
	case err != nil:
		return nil, refused("not started: %w", err)
	case change == clusterstate.Same || change == clusterstate.Downgrade:
		return nil, refused("not started: the cluster is at %s or being updated to it, and %s is not later", facts.Current.Version, o.release)
	case !offer.Available:
		return nil, refused("not started: channel %q does not offer %s; list what it offers with \"oc adm upgrade\"", version.Spec.Channel, o.release)
	}
	update := &configv1.Update{Version: o.release, Image: offer.Image}
	if before := version.Spec.DesiredUpdate; before != nil {
		update.AcceptRisks = slices.Clone(before.AcceptRisks)
	}
	for _, name := range risks {
		if !slices.ContainsFunc(update.AcceptRisks, func(r configv1.AcceptRisk) bool { return r.Name == name }) {
			update.AcceptRisks = append(update.AcceptRisks, configv1.AcceptRisk{Name: name})
		}
	}
	return update, nil
}

// updateRequest is a request for an update of a ClusterVersion.
type updateRequest struct {
	version *configv1.ClusterVersion
	update  *configv1.Update
	// bypass means that pre-checks were not made.
	bypass bool
}

// send patches spec.desiredUpdate of the ClusterVersion, unless it has changed since it was read.
func (r updateRequest) send(ctx context.Context, cluster *Cluster, options ...client.PatchOption) error {
	version, update := r.version, r.update
	metadata := map[string]any{"resourceVersion": version.ResourceVersion, "annotations": map[string]any{updatev1beta1.BypassAnnotation: nil}}
	if r.bypass {
		metadata["annotations"] = map[string]any{updatev1beta1.BypassAnnotation: update.Version}
	}
	desired := map[string]any{"version": update.Version, "image": update.Image, "force": nil, "architecture": nil, "mode": nil}
	if len(update.AcceptRisks) > 0 {
		desired["acceptRisks"] = update.AcceptRisks
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata, "spec": map[string]any{"desiredUpdate": desired}})
	if err != nil {
		return err
	}
	if err := cluster.Client.Patch(ctx, version.DeepCopy(), client.RawPatch(types.MergePatchType, patch), options...); err != nil {
		if isDeniedByGate(err) {
			return refused("not started: %w", err)
		}
		return fmt.Errorf("requesting the update to %s: %w", update.Version, err)
	}
	return nil
}

// startGate is the admission policy that denies updates whose risks are not accepted.
const startGate = "update-start-gate"

func isDeniedByGate(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+startGate+"'")
}

// gateDelay is how long the Update Status Controller may take to let a release through the start gate once
// its plan is startable.
const gateDelay = 20 * time.Second

// sendThroughGate sends a request, again while the start gate denies what a plan allows since a moment.
func (p *Program) sendThroughGate(ctx context.Context, cluster *Cluster, request updateRequest, options ...client.PatchOption) error {
	end := p.Clock.Now().Add(gateDelay)
	for {
		err := request.send(ctx, cluster, options...)
		if request.bypass || !isDeniedByGate(err) || !p.Clock.Now().Before(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-p.Clock.After(planPollInterval):
		}
	}
}

// requestControlPlane pauses the pools of worker nodes and sends a request, if the API server would
// accept the request. If something fails afterwards, the error names the pools that stay paused.
func (p *Program) requestControlPlane(ctx context.Context, cluster *Cluster, request updateRequest) error {
	if err := p.sendThroughGate(ctx, cluster, request, client.DryRunAll); err != nil {
		return err
	}
	paused, err := p.pausePools(ctx, cluster)
	if err == nil {
		err = request.send(ctx, cluster)
	}
	if err != nil && len(paused) > 0 {
		names := strings.Join(paused, ",")
		return fmt.Errorf("%w; this command has paused the machine config pools %s: unpause them with \"%s worker-nodes start --pool %s\"",
			err, names, p.name, names)
	}
	return err
}

// recordBypass creates an Event that the update was started without pre-checks. The annotation of the
// ClusterVersion records that, too, so that an Event that is refused is reported only.
func (p *Program) recordBypass(ctx context.Context, cluster *Cluster, version *configv1.ClusterVersion, release string) {
	now := metav1.NewTime(p.Clock.Now())
	user, err := currentUser(ctx, cluster)
	if err != nil {
		user = "an unknown user"
	}
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "pre-checks-bypassed-"},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: configv1.GroupVersion.String(), Kind: "ClusterVersion", Name: version.Name, UID: version.UID,
		},
		Type: corev1.EventTypeWarning, Reason: "PreChecksBypassed", Message: fmt.Sprintf("%s started the update to %s without pre-checks", user, release),
		Source: corev1.EventSource{Component: "kubectl-update"}, FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
	if err := cluster.Client.Create(ctx, event); err != nil {
		fmt.Fprintf(p.Streams.ErrOut, "%s: warning: no Event records that pre-checks were bypassed: %s\n", p.name, p.explain(err))
	}
}

// workerPools returns the machine config pools of worker nodes.
func workerPools(ctx context.Context, cluster *Cluster) ([]mcfgv1.MachineConfigPool, error) {
	var list mcfgv1.MachineConfigPoolList
	if err := cluster.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing the machine config pools: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(p mcfgv1.MachineConfigPool) bool { return p.Name == clusterstate.PoolMaster }), nil
}

// pausePools pauses the pools of worker nodes. It returns the names of those that it has paused, also
// if it fails.
func (p *Program) pausePools(ctx context.Context, cluster *Cluster) (paused []string, err error) {
	pools, err := workerPools(ctx, cluster)
	if err != nil {
		return nil, err
	}
	for i := range pools {
		if pools[i].Spec.Paused {
			continue
		}
		if err := setPaused(ctx, cluster, &pools[i], true); err != nil {
			return paused, err
		}
		paused = append(paused, pools[i].Name)
		if _, err := fmt.Fprintf(p.Streams.Out, "Paused machine config pool %s.\n", pools[i].Name); err != nil {
			return paused, err
		}
	}
	return paused, nil
}

func setPaused(ctx context.Context, cluster *Cluster, pool *mcfgv1.MachineConfigPool, paused bool) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": pool.ResourceVersion}, "spec": map[string]any{"paused": paused},
	})
	if err != nil {
		return err
	}
	if err := cluster.Client.Patch(ctx, pool.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("setting spec.paused of machine config pool %s to %t: %w", pool.Name, paused, err)
	}
	return nil
}

// workerNodesCommand starts the update of worker nodes whose pools are paused.
func (p *Program) workerNodesCommand() *cobra.Command {
	var names []string
	cmd := &cobra.Command{
		Use: "worker-nodes", Short: "Updates the worker nodes.", Args: manager.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	start := &cobra.Command{
		Use:   "start",
		Short: "Unpauses the machine config pools of worker nodes.",
		Long: "Unpauses the machine config pools of worker nodes, so that their nodes are updated to the release of the control plane.\n" +
			"The control plane must have been updated. Pools that an UpgradeJob has paused are unpaused by the operator, in their\n" +
			"time, and only with --pool by this command.",
		Example: "  oc update worker-nodes start\n  oc update worker-nodes start --pool infra",
		Args:    manager.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cluster, err := p.connectForWrites()
			if err != nil {
				return err
			}
			return p.startWorkers(cmd.Context(), cluster, names)
		},
	}
	start.Flags().StringSliceVar(&names, "pool", nil, "unpause this pool only; may be repeated")
	cmd.AddCommand(start)
	return cmd
}

func (p *Program) startWorkers(ctx context.Context, cluster *Cluster, names []string) error {
	version, err := informers.ReadVersion(ctx, cluster)
	if err != nil {
		return err
	}
	if release, updating := version.UpdatingTo(); updating {
		return refused("not started: the control plane is being updated to %s; wait until \"%s status\" reports that it is done", release, p.name)
	}
	pools, err := workerPools(ctx, cluster)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !slices.ContainsFunc(pools, func(p mcfgv1.MachineConfigPool) bool { return p.Name == name }) {
			return usageError("--pool: no machine config pool of worker nodes is named %q", name)
		}
	}
	var started, left []string
	for i := range pools {
		facts := clusterstate.NewPool(&pools[i])
		switch {
		case !facts.Paused, len(names) > 0 && !slices.Contains(names, facts.Name):
			continue
		case len(names) == 0 && facts.PausedByMark():
			left = append(left, facts.Name)
			continue
		}
		if err := setPaused(ctx, cluster, &pools[i], false); err != nil {
			return err
		}
		started = append(started, facts.Name)
		if _, err := fmt.Fprintf(p.Streams.Out, "Unpaused machine config pool %s.\n", facts.Name); err != nil {
			return err
		}
	}
	return p.reportPaused(names, started, left)
}

// reportPaused prints which pools an UpgradeJob has paused, and that no pool was to be unpaused.
func (p *Program) reportPaused(names, started, left []string) error {
	line := ""
	switch {
	case len(left) > 0:
		pools := strings.Join(left, ",")
		line = fmt.Sprintf("The operator unpauses machine config pools %s when their UpgradeJob allows it. Unpause them now with: %s worker-nodes start --pool %s", pools, p.name, pools)
	case len(started) > 0:
		return nil
	case len(names) > 0:
		line = fmt.Sprintf("Of machine config pools %s, none is paused.", strings.Join(names, ","))
	default:
		line = "No machine config pool of worker nodes is paused."
	}
	_, err := fmt.Fprintln(p.Streams.Out, line)
	return err
}
