// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/objects"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

// startOptions holds the flags of the commands that start an update.
type startOptions struct {
	planRequest
	session.ChangeOptions
	session.NoArguments

	preChecks bool
	// latest selects the newest recommended release. image is the release's pull spec, or empty to use the
	// offered one.
	latest bool
	image  string
	// pausePools pauses the worker pools first, so only the control plane is updated.
	pausePools bool
}

const startDoc = "The command asks for confirmation. It refuses to start the update unless the release's UpdatePlan is ready: all risks\n" +
	"are fixed or accepted, and the analysis is not older than --max-age.\n\n" +
	"Use --pre-checks=false to skip this check. The bypass is recorded in an annotation of the ClusterVersion and in an Event,\n" +
	"and an admission policy may deny it. With --dry-run=server, the release is analyzed, but nothing else is changed."

// NewStartCommand returns the command that starts an update of the cluster.
func NewStartCommand(p *session.Session) *cobra.Command {
	return updateCommand(p, "start", "Start updating the cluster to a release after its risks are accepted",
		"Start updating the cluster to a release.\n\n"+startDoc, "  oc update start --to 4.20.8", false)
}

// NewControlPlaneCommand returns the command that starts an update of only the control plane.
func NewControlPlaneCommand(p *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use: "control-plane", Short: "Update only the control plane", Args: manager.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(updateCommand(p, "start", "Start updating the control plane and pause the worker node pools",
		"Start updating the control plane to a release. The command first pauses the machine config pools of worker nodes.\n"+
			"To update them later, run \"worker-nodes start\".\n\n"+startDoc, "  oc update control-plane start --to 4.20.8", true))
	return cmd
}

func updateCommand(p *session.Session, use, short, long, example string, pausePools bool) *cobra.Command {
	o := &startOptions{planRequest: planRequest{Session: p}, pausePools: pausePools}
	cmd := &cobra.Command{
		Use: use + " (--to RELEASE | --to-latest | --to-image IMAGE)", Short: short, Long: long, Example: example, Args: manager.NoArgs,
		RunE: session.RunE(o),
	}
	cmd.Flags().StringVar(&o.release, "to", "", "release to update to, for example 4.20.8")
	cmd.Flags().BoolVar(&o.latest, "to-latest", false, "update to the newest release recommended by the channel")
	cmd.Flags().StringVar(&o.image, "to-image", "", "pull spec (by digest) of the release image; combine it with --to for a release that is not offered")
	cmd.Flags().BoolVar(&o.preChecks, "pre-checks", true, "start only if the release's UpdatePlan allows it")
	bindPlanFlags(cmd, &o.planRequest)
	o.Bind(cmd)
	return cmd
}

// Run starts the update.
func (o *startOptions) Run(ctx context.Context) error {
	cluster, err := o.ConnectForChange(&o.ChangeOptions)
	if err != nil {
		return err
	}
	return o.runStart(ctx, cluster)
}

// imageByDigest matches pull specs that the cluster version operator can verify.
var imageByDigest = regexp.MustCompile(`^[^@\s]+@sha256:[a-f0-9]{64}$`)

// Validate checks the flags.
func (o *startOptions) Validate() error {
	switch {
	case o.image != "" && !imageByDigest.MatchString(o.image):
		return session.UsageError("--to-image: is %q, must be a pull spec by digest, for example quay.io/openshift-release-dev/ocp-release@sha256: and 64 hexadecimal digits", o.image)
	case o.latest && (o.release != "" || o.image != ""):
		return session.UsageError("--to-latest: leave out --to and --to-image")
	case o.release == "" && (o.latest || o.image != ""):
		return nil
	}
	return session.ValidateRelease("to", o.release)
}

// selectRelease determines the release for --to-latest or --to-image. An image that is not offered has no
// known release, so pre-checks are impossible.
func (o *startOptions) selectRelease(version clusterstate.Version) error {
	switch {
	case o.latest:
		if o.release = version.NewestUpdate(false).Release.Version; o.release == "" {
			return session.Refused("not started: channel %q recommends no update; list what it offers with \"oc adm upgrade --include-not-recommended\"", version.Channel)
		}
	case o.release == "":
		for _, offered := range version.OfferedVersions() {
			if update := version.AvailableUpdate(clusterstate.Target{Version: offered, Image: o.image}); !(clusterstate.Release{Image: update.Image}).HasOtherImage(o.image) {
				o.release = offered
				return nil
			}
		}
		if o.preChecks {
			return session.Refused("not started: no offered release has this image, so its pre-checks are unknown; name the release with --to, or start without them with --pre-checks=false")
		}
	}
	return nil
}

// runStart checks the plan and requests the update. It patches the same version of the ClusterVersion that it
// has checked, so a request in between causes a conflict.
func (o *startOptions) runStart(ctx context.Context, cluster *session.Cluster) error {
	facts, err := clusterstate.GetClusterVersion(ctx, cluster)
	if err != nil {
		return err
	}
	if err := o.selectRelease(facts); err != nil {
		return err
	}
	if facts.Completed && o.release != "" && facts.Current.Matches(clusterstate.Target{Version: o.release, Image: o.image}) {
		return session.Refused("not started: %s is installed already", o.release)
	}
	var risks []string
	if o.preChecks {
		plan, err := o.startablePlan(ctx, cluster)
		if err != nil {
			return err
		}
		risks = acceptedRisks(plan)
	}
	version := &configv1.ClusterVersion{}
	if err := cluster.Get(ctx, clusterstate.VersionKey, version); err != nil {
		return fmt.Errorf("reading the ClusterVersion: %w", err)
	}
	patch, err := requestPatch(version, o, risks)
	if err != nil {
		return err
	}
	return o.request(ctx, cluster, updateRequest{version: version, release: cmp.Or(o.release, o.image), patch: patch, bypass: !o.preChecks})
}

// startablePlan returns the plan of a release if it allows the update.
func (o planRequest) startablePlan(ctx context.Context, cluster *session.Cluster) (*updatev1beta1.UpdatePlan, error) {
	plan, err := o.analyzedPlan(ctx, cluster)
	switch {
	case meta.IsNoMatchError(err):
		return nil, session.Refused("not started: pre-checks need the Update Status Controller, which is not installed; start without them with --pre-checks=false")
	case err != nil:
		return nil, err
	}
	if err := requireReview(o.Session, plan, "started", nil); err != nil {
		return nil, err
	}
	if planVerdict(plan, o.Clock.Now()) != session.ExitDone {
		return nil, refuse(o.Session, plan)
	}
	return plan, nil
}

// request requests an update after the user has confirmed.
func (o *startOptions) request(ctx context.Context, cluster *session.Cluster, request updateRequest) error {
	from, what := clusterstate.VersionOf(request.version).Current.Version, "the cluster"
	if o.pausePools {
		what = "the control plane"
	}
	cluster, note, err := o.Agreed(ctx, &o.ChangeOptions, cluster, fmt.Sprintf("update %s from %s to %s", what, from, request.release))
	if err != nil {
		return err
	}
	if o.pausePools {
		err = requestControlPlane(ctx, o.Session, cluster, request, note)
	} else {
		err = sendThroughGate(ctx, o.Session, cluster, request)
	}
	if err != nil {
		return err
	}
	if request.bypass {
		recordBypass(ctx, o.Session, cluster, request.version, request.release)
	}
	if note != "" {
		_, err = fmt.Fprintf(o.Streams.Out, "Would request the update from %s to %s%s.\n", from, request.release, note)
		return err
	}
	_, err = fmt.Fprintf(o.Streams.Out, "Requested the update from %s to %s. Follow it with: %s status -w\n", from, request.release, o.Name)
	return err
}

// refuse explains why a plan does not allow the update and what to do.
func refuse(p *session.Session, plan *updatev1beta1.UpdatePlan) error {
	message := "the analysis is not complete"
	if c := meta.FindStatusCondition(plan.Status.Conditions, updatev1beta1.ConditionStartable); c != nil {
		message = c.Message
		if c.Status == metav1.ConditionTrue {
			message = cmp.Or(clocksDiffer(plan, p.Clock.Now()), message)
		}
	}
	next := fmt.Sprintf("see %q", p.Name+" pre-checks --version "+plan.Spec.TargetRelease)
	return session.Refused("not started: %s; %s", message, next)
}

// acceptedRisks returns the names of the release's known risks that a plan accepts.
func acceptedRisks(plan *updatev1beta1.UpdatePlan) []string {
	var names []string
	for _, of := range updateplan.Insights(&plan.Status) {
		if name, is := checks.RiskOf(of.Insight.UID); is && of.Informer == checks.InformerReadiness {
			names = append(names, name)
		}
	}
	return names
}

// requestPatch returns the patch that requests the update and accepts risks.
func requestPatch(version *configv1.ClusterVersion, o *startOptions, risks []string) (clusterstate.VersionPatch, error) {
	facts := clusterstate.VersionOf(version)
	offer := facts.AvailableUpdate(clusterstate.Target{Version: o.release, Image: o.image})
	release := clusterstate.Release{Version: o.release, Image: cmp.Or(o.image, offer.Image)}
	if o.release == "" {
		return clusterstate.RequestPatch(version, release), nil
	}
	change, err := clusterstate.CompareVersions(facts.Current.Version, o.release)
	switch {
	case err != nil:
		return clusterstate.VersionPatch{}, session.Refused("not started: %w", err)
	case change == clusterstate.Same && !facts.Current.HasOtherImage(o.image) || change == clusterstate.Downgrade:
		return clusterstate.VersionPatch{}, session.Refused("not started: %s is not newer than %s, the current or pending version", o.release, facts.Current.Version)
	case !offer.Available && o.image == "":
		return clusterstate.VersionPatch{}, session.Refused("not started: channel %q does not offer %s; list what it offers with \"oc adm upgrade\"", version.Spec.Channel, o.release)
	}
	return clusterstate.RequestPatch(version, release, risks...), nil
}

// updateRequest is a request for an update in a ClusterVersion.
type updateRequest struct {
	version *configv1.ClusterVersion
	release string
	patch   clusterstate.VersionPatch
	// bypass is set if pre-checks were skipped.
	bypass bool
}

// send patches spec.desiredUpdate of the ClusterVersion unless it has changed since it was read.
func (r updateRequest) send(ctx context.Context, cluster *session.Cluster, options ...client.PatchOption) error {
	var bypassed *string
	if r.bypass {
		bypassed = &r.release
	}
	patch := r.patch.WithAnnotation(updatev1beta1.BypassAnnotation, bypassed)
	if err := cluster.Client.Patch(ctx, r.version.DeepCopy(), patch, options...); err != nil {
		if session.IsDeniedByGate(err) {
			return session.Refused("not started: %w", err)
		}
		return fmt.Errorf("requesting the update to %s: %w", r.release, err)
	}
	return nil
}

// gateDelay is how long the Update Status Controller may take to open the start gate for a release after its
// plan becomes startable.
const gateDelay = 20 * time.Second

// sendThroughGate sends a request. It retries while the start gate has not caught up with the plan.
func sendThroughGate(ctx context.Context, p *session.Session, cluster *session.Cluster, request updateRequest, options ...client.PatchOption) error {
	end := p.Clock.Now().Add(gateDelay)
	for {
		err := request.send(ctx, cluster, options...)
		if request.bypass || !session.IsDeniedByGate(err) || !p.Clock.Now().Before(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-p.Clock.After(planPollInterval):
		}
	}
}

// requestControlPlane pauses the worker pools and sends a request. It first checks with a dry run that the
// API server accepts the request. If something fails later, the error names the pools that stay paused.
func requestControlPlane(ctx context.Context, p *session.Session, cluster *session.Cluster, request updateRequest, note string) error {
	if err := sendThroughGate(ctx, p, cluster, request, client.DryRunAll); err != nil {
		return err
	}
	paused, err := pausePools(ctx, p, cluster, note)
	if err == nil {
		err = request.send(ctx, cluster)
	}
	if err != nil && len(paused) > 0 {
		names := strings.Join(paused, ",")
		return fmt.Errorf("%w; this command has paused the machine config pools %s: unpause them with \"%s worker-nodes start --pool %s\"",
			err, names, p.Name, names)
	}
	return err
}

// recordBypass creates an Event to record that the update was started without pre-checks. If the Event is
// refused, this is only reported, because the annotation of the ClusterVersion records the same.
func recordBypass(ctx context.Context, p *session.Session, cluster *session.Cluster, version *configv1.ClusterVersion, release string) {
	now := metav1.NewTime(p.Clock.Now())
	user, err := currentUser(ctx, cluster)
	if err != nil {
		user = "an unknown user"
	}
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "pre-checks-bypassed-"},
		InvolvedObject: objects.Reference(version, configv1.GroupVersion.WithKind("ClusterVersion")),
		Type:           corev1.EventTypeWarning, Reason: "PreChecksBypassed", Message: fmt.Sprintf("%s started the update to %s without pre-checks", user, release),
		Source: corev1.EventSource{Component: "kubectl-update"}, FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
	if err := cluster.Client.Create(ctx, event); err != nil {
		fmt.Fprintf(p.Streams.ErrOut, "%s: warning: no Event records that pre-checks were bypassed: %s\n", p.Name, p.Explain(err))
	}
}

// workerPools returns the worker node pools, which the control plane update does not wait for.
func workerPools(ctx context.Context, cluster *session.Cluster) ([]mcfgv1.MachineConfigPool, error) {
	var list mcfgv1.MachineConfigPoolList
	if err := cluster.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing the machine config pools: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(p mcfgv1.MachineConfigPool) bool { return clusterstate.NewPool(&p).Required() }), nil
}

// pausePools pauses the worker node pools. It returns the names of the pools that it has paused, even on
// error.
func pausePools(ctx context.Context, p *session.Session, cluster *session.Cluster, note string) (paused []string, err error) {
	pools, err := workerPools(ctx, cluster)
	if err != nil {
		return nil, err
	}
	for i := range pools {
		if clusterstate.NewPool(&pools[i]).Paused {
			continue
		}
		if err := setPaused(ctx, cluster, &pools[i], true); err != nil {
			return paused, err
		}
		paused = append(paused, pools[i].Name)
		if _, err := fmt.Fprintf(p.Streams.Out, "Paused machine config pool %s%s.\n", pools[i].Name, note); err != nil {
			return paused, err
		}
	}
	return paused, nil
}

func setPaused(ctx context.Context, cluster *session.Cluster, pool *mcfgv1.MachineConfigPool, paused bool) error {
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

// workersOptions holds the flags of the command that starts the update of worker nodes.
type workersOptions struct {
	planRequest
	session.ChangeOptions
	session.NoArguments
	session.NoFlags

	pools     []string
	preChecks bool
}

// NewWorkerNodesCommand returns the command that starts the update of worker nodes in paused pools.
func NewWorkerNodesCommand(p *session.Session) *cobra.Command {
	o := &workersOptions{planRequest: planRequest{Session: p}}
	cmd := &cobra.Command{
		Use: "worker-nodes", Short: "Update the worker nodes", Args: manager.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	start := &cobra.Command{
		Use:   "start",
		Short: "Unpause the machine config pools of worker nodes",
		Long: "Unpause the machine config pools of worker nodes to update the nodes to the release of the control plane.\n\n" +
			"The control plane must be updated first, and all risks in the UpdatePlan of its release must be fixed or accepted. Use\n" +
			"--pre-checks=false to skip this check. If an UpgradeJob has paused a pool, the operator will unpause it later. To\n" +
			"unpause such a pool now, name it with --pool.",
		Example: "  oc update worker-nodes start\n  oc update worker-nodes start --pool infra",
		Args:    manager.NoArgs,
		RunE:    session.RunE(o),
	}
	start.Flags().StringSliceVar(&o.pools, "pool", nil, "unpause only this pool; may be repeated")
	start.Flags().BoolVar(&o.preChecks, "pre-checks", true, "start only if the release's UpdatePlan allows it")
	bindPlanFlags(start, &o.planRequest)
	o.Bind(start)
	cmd.AddCommand(start)
	return cmd
}

// Run unpauses the pools.
func (o *workersOptions) Run(ctx context.Context) error {
	cluster, err := o.ConnectForChange(&o.ChangeOptions)
	if err != nil {
		return err
	}
	return o.startWorkers(ctx, cluster)
}

func (o *workersOptions) startWorkers(ctx context.Context, cluster *session.Cluster) error {
	version, err := checks.ReadVersion(ctx, cluster)
	if err != nil {
		return err
	}
	if release, updating := version.UpdatingTo(); updating {
		return session.Refused("not started: the control plane is being updated to %s; wait until \"%s status\" reports that it is done", release, o.Name)
	}
	pools, err := workerPools(ctx, cluster)
	if err != nil {
		return err
	}
	for _, name := range o.pools {
		if !slices.ContainsFunc(pools, func(p mcfgv1.MachineConfigPool) bool { return p.Name == name }) {
			return session.UsageError("--pool: no machine config pool of worker nodes is named %q", name)
		}
	}
	var start []*mcfgv1.MachineConfigPool
	var names, left []string
	for i := range pools {
		facts := clusterstate.NewPool(&pools[i])
		switch {
		case !facts.Paused, len(o.pools) > 0 && !slices.Contains(o.pools, facts.Name):
		case len(o.pools) == 0 && facts.PausedByMark():
			left = append(left, facts.Name)
		default:
			start, names = append(start, &pools[i]), append(names, facts.Name)
		}
	}
	if o.preChecks && len(start) > 0 {
		o.release = version.Current.Version
		if _, err := o.startablePlan(ctx, cluster); err != nil {
			return err
		}
	}
	if err := o.unpause(ctx, cluster, start, names); err != nil {
		return err
	}
	return o.reportPaused(names, left)
}

// unpause unpauses worker node pools after the user has confirmed.
func (o *workersOptions) unpause(ctx context.Context, cluster *session.Cluster, pools []*mcfgv1.MachineConfigPool, names []string) error {
	if len(pools) == 0 {
		return nil
	}
	cluster, note, err := o.Agreed(ctx, &o.ChangeOptions, cluster, "unpause machine config pools "+strings.Join(names, ", "))
	if err != nil {
		return err
	}
	for _, pool := range pools {
		if err := setPaused(ctx, cluster, pool, false); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(o.Streams.Out, "Unpaused machine config pool %s%s.\n", pool.Name, note); err != nil {
			return err
		}
	}
	return nil
}

// reportPaused prints the pools that an UpgradeJob has paused. If no pool was unpaused, it says so.
func (o *workersOptions) reportPaused(started, left []string) error {
	line := ""
	switch {
	case len(left) > 0:
		pools := strings.Join(left, ",")
		line = fmt.Sprintf("The operator unpauses machine config pools %s when their UpgradeJob allows it. Unpause them now with: %s worker-nodes start --pool %s", pools, o.Name, pools)
	case len(started) > 0:
		return nil
	case len(o.pools) > 0:
		line = fmt.Sprintf("None of the machine config pools %s is paused.", strings.Join(o.pools, ","))
	default:
		line = "No machine config pool of worker nodes is paused."
	}
	_, err := fmt.Fprintln(o.Streams.Out, line)
	return err
}
