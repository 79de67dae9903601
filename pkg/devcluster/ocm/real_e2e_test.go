// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build fleet

package ocm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/ocm"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
)

// TestReal upgrades two real clusters with the hub program, Open Cluster Management, and its
// agents, using the permissions of a klusterlet.
func TestReal(t *testing.T) { //nolint:paralleltest // three control planes take all of the machine
	start := time.Now()
	limit = 5 * time.Minute
	r := newRollout(t, ocm.Spec{Real: true, Interval: 2 * time.Second}, func(u *fleetv1beta1.ManagedClustersUpgrade) {
		u.Spec.UpgradeStrategy.MinSuccessTime = "1s"
		u.Spec.OCPOperators = &fleetv1beta1.OCPOperators{ // the Job needs the namespaces of the operators to approve
			ApproveAllUpgrades: true, Exclude: []fleetv1beta1.OperatorReference{{Name: "quay", Namespace: "quay"}},
		}
		u.Spec.PreUpgradeAction = backup()
	})
	t.Logf("up after %s", time.Since(start).Round(time.Second))
	before := map[string]*observed{}
	for _, spoke := range r.fleet.Spokes {
		installOperators(t, spoke)
		before[spoke.Name] = observe(t, spoke)
	}

	checkAgentRights(t, r.fleet, r.fleet.Spokes[0])
	r.preflight(t, before)
	r.upgradeClusterVersion(t)
	for _, spoke := range r.fleet.Spokes {
		before[spoke.Name].check(t, "4.20.6")
		checkOperators(t, spoke)
		checkBackup(t, spoke)
	}
	r.delete(t)
	r.upgradeByUpgradeConfig(t, before)
	for _, spoke := range r.fleet.Spokes {
		before[spoke.Name].check(t, "4.20.7")
	}
	r.delete(t)
	r.deleteInFlight(t, before[r.fleet.Spokes[1].Name])
	r.detach(t, before[r.fleet.Spokes[1].Name])
	r.checkPermissions(t, "action-replica-sets")
	t.Logf("over after %s", time.Since(start).Round(time.Second))
}

// preflight makes a dry run that passes and leaves both clusters unchanged.
func (r *rollout) preflight(t *testing.T, before map[string]*observed) {
	t.Helper()
	r.upgrade.Spec.DryRun = true
	r.start(r.upgrade)

	t.Log("a dry run passes, and changes no cluster")
	await(t, "the dry run has passed", func(context.Context) (passed bool) {
		r.read(func() {
			passed = apimeta.IsStatusConditionTrue(r.status.Conditions, fleetv1beta1.ConditionPreflightPassed)
		})
		return passed
	})
	if plan := r.command(t, 0, "plan"); !regexp.MustCompile(`READY +2\n`).MatchString(plan) {
		t.Errorf("the plan:\n%s", plan)
	}
	r.awaitNoWorks(t)
	for _, o := range before {
		got := clusterVersion(t.Context(), t, o.spoke)
		if diff := cmp.Diff(o.version.Spec, got.Spec); diff != "" || got.Generation != o.version.Generation {
			t.Errorf("ClusterVersion of %s, whose generation was %d and is %d (-want +got):\n%s", o.spoke.Name, o.version.Generation, got.Generation, diff)
		}
		await(t, "no permissions are left behind on "+o.spoke.Name, func(ctx context.Context) bool { return slices.Equal(o.roles, roles(ctx, t, o.spoke)) })
	}
}

// upgradeClusterVersion upgrades the canary and another cluster that first fails.
func (r *rollout) upgradeClusterVersion(t *testing.T) {
	t.Helper()
	failing := r.fleet.Spokes[1]
	must(t, r.fleet.Degrade(t.Context(), failing.Name))
	r.command(t, 0, "start", "-y")

	t.Log("the canary is upgraded, the other cluster fails in the words of its cluster version operator")
	r.await("one cluster is complete, and one has failed", func(c fleetv1beta1.ClustersSummary) bool { return c.Complete == 1 && c.Failed == 1 })
	r.read(func() {
		if run := r.runs[failing.Name]; run.Status.State != fleetv1alpha1.StateFailed || !strings.Contains(run.Status.Message, "etcd is degraded") {
			t.Errorf("the run of the cluster that fails: %+v", run.Status)
		}
		if s := r.status.PreUpgradeActionSummary; s == nil || s.Total != 2 || s.Available != 2 {
			t.Errorf("actions before the upgrade: %+v", s)
		}
		r.checkReplicaSet(t)
	})
	if screen := r.command(t, int(session.ExitActionRequired), "status"); !strings.Contains(screen, "FAILED  1  ClusterVersionFailing: Cluster operator etcd") {
		t.Errorf("the status of the fleet:\n%s", screen)
	}
	if screen := r.command(t, 0, "clusters", "--state", "Failed"); !strings.Contains(screen, failing.Name) || strings.Contains(screen, r.fleet.Spokes[0].Name) {
		t.Errorf("the clusters that failed:\n%s", screen)
	}

	t.Log("a retry completes it")
	r.command(t, 0, "retry", "-y")
	must(t, r.fleet.Repair(t.Context(), failing.Name))
	r.await("all are complete", func(c fleetv1beta1.ClustersSummary) bool { return c.Complete == 2 })
	r.read(func() {
		if attempt := r.runs[failing.Name].Spec.Attempt; attempt != 2 {
			t.Errorf("it was upgraded by attempt %d", attempt)
		}
	})
	r.awaitNoWorks(t)
}

// checkReplicaSet checks that the work manager has created the works of the action.
func (r *rollout) checkReplicaSet(t *testing.T) {
	t.Helper()
	for _, spoke := range r.fleet.Spokes {
		work := &workv1.ManifestWork{}
		key := client.ObjectKey{Namespace: spoke.Name, Name: delivery.ActionName(string(r.upgrade.UID), delivery.PreUpgrade)}
		must(t, r.fleet.Client.Get(t.Context(), key, work))
		if !delivery.IsOfReplicaSet(work) || len(work.OwnerReferences) > 0 {
			t.Errorf("the work of the action on %s: labels %v, owners %v", spoke.Name, work.Labels, work.OwnerReferences)
		}
	}
}

// upgradeByUpgradeConfig upgrades both clusters with the operator that runs on them.
func (r *rollout) upgradeByUpgradeConfig(t *testing.T, before map[string]*observed) {
	t.Helper()
	for _, spoke := range r.fleet.Spokes {
		offer(spoke, "4.20.7")
		must(t, spoke.Deploy(t.Context(), "../../.."))
		before[spoke.Name].roles = roles(t.Context(), t, spoke)
		operator, err := spoke.StartOperator(t.Context(), devcluster.OperatorOptions{})
		must(t, err)
		t.Cleanup(func() {
			if err := operator.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
	upgrade, err := ocm.NewUpgrade()
	must(t, err)
	upgrade.Name, upgrade.Spec.ClusterVersion.Version, upgrade.Spec.UpgradeStrategy.MinSuccessTime = "managed", "4.20.7", "1s"
	upgrade.Spec.UpgradeConfig = &fleetv1beta1.UpgradeConfigTemplate{Type: "OSD", PDBForceDrainTimeout: new(int32(1))}
	r.start(upgrade)

	t.Log("the agents report UpgradeConfigs and that they have steps, the first one with its feature gate")
	for _, spoke := range r.fleet.Spokes {
		await(t, "the agent of "+spoke.Name+" reports an upgrade in progress", func(ctx context.Context) bool {
			work := &workv1.ManifestWork{}
			if r.fleet.Client.Get(ctx, client.ObjectKey{Namespace: spoke.Name, Name: delivery.UpgradeName(spoke.Name)}, work) != nil {
				return false
			}
			f := delivery.Read(work)
			reported := f.UpgradeConfig()
			return reported.Phase.Is("Upgrading") && reported.HasSteps
		})
	}
	r.await("all are complete", func(c fleetv1beta1.ClustersSummary) bool { return c.Complete == 2 })
	r.awaitNoWorks(t)
	for _, spoke := range r.fleet.Spokes {
		config := &upgradev1alpha1.UpgradeConfig{}
		key := client.ObjectKey{Namespace: devcluster.OperatorNamespace, Name: delivery.UpgradeConfigName(string(upgrade.UID))}
		must(t, newSpokeClient(t, spoke).Get(t.Context(), key, config))
		if len(config.OwnerReferences) > 0 || len(config.Status.History) == 0 || config.Status.History[0].Phase != history.PhaseUpgraded {
			t.Errorf("the UpgradeConfig of %s: %+v", spoke.Name, config)
		}
	}
}

// startOne requests a release for the cluster that is not a canary and whose etcd is degraded, and
// waits until its upgrade has started.
func (r *rollout) startOne(t *testing.T, o *observed, name, release string) {
	t.Helper()
	offer(o.spoke, release)
	must(t, r.fleet.Degrade(t.Context(), o.spoke.Name))
	upgrade, err := ocm.NewUpgrade()
	must(t, err)
	upgrade.Name, upgrade.Spec.ClusterVersion.Version = name, release
	upgrade.Spec.ClusterSelector.MatchLabels = map[string]string{ocm.GroupLabel: "1"}
	strategy := &upgrade.Spec.UpgradeStrategy
	strategy.CanaryClusters, strategy.FailingTimeout = nil, "1h"
	r.start(upgrade)
	r.await("it is being upgraded", func(c fleetv1beta1.ClustersSummary) bool { return c.PartialUpgrade == 1 })
}

// awaitUpgraded repairs a cluster and waits until its upgrade is complete. The hub does not observe
// it.
func (r *rollout) awaitUpgraded(t *testing.T, o *observed, release string) {
	t.Helper()
	must(t, r.fleet.Repair(t.Context(), o.spoke.Name))
	await(t, "the cluster is upgraded", func(ctx context.Context) bool {
		return clusterVersion(ctx, t, o.spoke).Status.History[0].State == configv1.CompletedUpdate
	})
	o.check(t, release)
}

// deleteInFlight deletes an upgrade while the work of a cluster still applies its ClusterVersion.
// The cluster finishes its upgrade without the hub.
func (r *rollout) deleteInFlight(t *testing.T, o *observed) {
	t.Helper()
	r.startOne(t, o, "abandoned", "4.20.8")
	work := &workv1.ManifestWork{}
	must(t, r.fleet.Client.Get(t.Context(), client.ObjectKey{Namespace: o.spoke.Name, Name: delivery.UpgradeName(o.spoke.Name)}, work))
	if form := work.Annotations[delivery.Annotation]; form != "1/"+string(delivery.FormApply) {
		t.Errorf("the work of the cluster in flight has the form %s", form)
	}
	t.Log("the upgrade is deleted while a cluster is being upgraded")
	r.delete(t)
	r.awaitUpgraded(t, o, "4.20.8")
}

// detach removes a cluster from the hub during its upgrade. The cluster finishes the upgrade
// without the hub.
func (r *rollout) detach(t *testing.T, o *observed) {
	t.Helper()
	r.startOne(t, o, "detached", "4.20.9")

	t.Log("a cluster is detached while it is being upgraded")
	must(t, r.fleet.Client.Delete(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: o.spoke.Name}}))
	r.await("its run has failed", func(c fleetv1beta1.ClustersSummary) bool { return c.Failed == 1 })
	r.read(func() {
		message := r.runs[o.spoke.Name].Status.Message
		if !strings.Contains(message, "the ManagedCluster is being deleted") && !strings.Contains(message, "there is no such ManagedCluster") {
			t.Errorf("the run has failed: %s", message)
		}
	})
	await(t, "it is detached", func(ctx context.Context) bool {
		return apierrors.IsNotFound(r.fleet.Client.Get(ctx, client.ObjectKey{Name: o.spoke.Name}, &clusterv1.ManagedCluster{}))
	})
	r.awaitNoWorks(t)
	r.awaitUpgraded(t, o, "4.20.9")
	r.delete(t)
}

// offer adds a release to the releases that a cluster is offered.
func offer(spoke *ocm.Spoke, version string) {
	spoke.Catalog.Set(updategraph.Release{Version: version, Channels: []string{"stable-4.20"}})
}

// awaitNoWorks waits until the works are gone.
func (r *rollout) awaitNoWorks(t *testing.T) {
	t.Helper()
	await(t, "the works are gone", func(ctx context.Context) bool {
		var works workv1.ManifestWorkList
		return r.fleet.Client.List(ctx, &works) == nil && len(works.Items) == 0
	})
}

// command runs a command of our plugin on the upgrade, checks its exit code, and returns its
// output.
func (r *rollout) command(t *testing.T, want int, verb string, args ...string) string {
	t.Helper()
	kubeconfig := r.fleet.Path("kubeconfig")
	must(t, r.fleet.Kubeconfig(kubeconfig))
	args = append([]string{"--kubeconfig", kubeconfig, "--namespace", r.upgrade.Namespace, "fleet", verb, r.upgrade.Name}, args...)
	command := exec.CommandContext(t.Context(), filepath.Join(r.fleet.BinDir(), "kubectl-update"), args...)
	printed, err := command.CombinedOutput()
	if got := command.ProcessState.ExitCode(); got != want {
		t.Errorf("kubectl update fleet %s exits with %d (%v), not with %d:\n%s", verb, got, err, want, printed)
	}
	return string(printed)
}

// observed holds the state of a cluster before its first upgrade.
type observed struct {
	spoke   *ocm.Spoke
	client  client.WithWatch
	version *configv1.ClusterVersion
	roles   []string
}

// observe sets fields that a user might have set or that a forced upgrade by image leaves behind,
// and returns the state of the cluster. Until the test ends, it watches that the ClusterVersion
// never gets an owner.
func observe(t *testing.T, spoke *ocm.Spoke) *observed {
	t.Helper()
	version := clusterVersion(t.Context(), t, spoke)
	changed := version.DeepCopy()
	changed.Labels, changed.Annotations = map[string]string{"team": "stores"}, map[string]string{"note": "kept"}
	changed.Spec.Capabilities = &configv1.ClusterVersionCapabilitiesSpec{BaselineCapabilitySet: configv1.ClusterVersionCapabilitySetCurrent}
	changed.Spec.Overrides = []configv1.ComponentOverride{{Kind: "Deployment", Group: "apps", Namespace: "default", Name: "any", Unmanaged: true}}
	installed := version.Status.Desired
	changed.Spec.DesiredUpdate = &configv1.Update{Version: installed.Version, Image: installed.Image, Force: true}
	must(t, spoke.Client.Patch(t.Context(), changed, client.MergeFrom(version)))

	c := newSpokeClient(t, spoke)
	events, err := c.Watch(t.Context(), &configv1.ClusterVersionList{})
	must(t, err)
	var group sync.WaitGroup
	group.Go(func() {
		for event := range events.ResultChan() {
			version, is := event.Object.(*configv1.ClusterVersion)
			if is && (len(version.OwnerReferences) > 0 || len(version.Finalizers) > 0 || version.DeletionTimestamp != nil) {
				t.Errorf("the ClusterVersion of %s belongs to others: %+v", spoke.Name, version.ObjectMeta)
			}
		}
	})
	t.Cleanup(func() {
		events.Stop()
		group.Wait()
	})
	return &observed{spoke: spoke, client: c, version: changed, roles: roles(t.Context(), t, spoke)}
}

// newSpokeClient returns a client for a cluster that knows the kinds of the agents and of the
// operator.
func newSpokeClient(t *testing.T, spoke *ocm.Spoke) client.WithWatch {
	t.Helper()
	scheme, err := devcluster.Scheme()
	must(t, err)
	must(t, workv1.Install(scheme))
	must(t, upgradev1alpha1.AddToScheme(scheme))
	c, err := client.NewWithWatch(spoke.RESTConfig(), client.Options{Scheme: scheme})
	must(t, err)
	return c
}

// check checks that the cluster was upgraded to a release, that nothing else in its ClusterVersion
// has changed, and that the agent has gained no permissions.
func (o *observed) check(t *testing.T, release string) {
	t.Helper()
	got := clusterVersion(t.Context(), t, o.spoke)
	want := o.version.DeepCopy()
	want.Spec.Channel, want.Spec.DesiredUpdate = "stable-4.20", &configv1.Update{Version: release}
	if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
		t.Errorf("ClusterVersion of %s (-want +got):\n%s", o.spoke.Name, diff)
	}
	if got.UID != want.UID || !maps.Equal(got.Labels, want.Labels) || !maps.Equal(got.Annotations, want.Annotations) {
		t.Errorf("ClusterVersion of %s: %+v", o.spoke.Name, got.ObjectMeta)
	}
	if last := got.Status.History[0]; last.Version != release || last.State != configv1.CompletedUpdate {
		t.Errorf("%s is at %s %s", o.spoke.Name, last.Version, last.State)
	}
	await(t, "no permissions are left behind on "+o.spoke.Name, func(ctx context.Context) bool { return slices.Equal(o.roles, roles(ctx, t, o.spoke)) })
	var applied workv1.AppliedManifestWorkList
	must(t, o.client.List(t.Context(), &applied))
	if len(applied.Items) > 0 {
		t.Errorf("the agent of %s still has works: %+v", o.spoke.Name, applied.Items)
	}
}

// roles describes all roles and bindings of a cluster: the permissions and their subjects.
func roles(ctx context.Context, t *testing.T, spoke *ocm.Spoke) []string {
	t.Helper()
	var found []string
	for _, list := range []client.ObjectList{&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}} {
		must(t, spoke.Client.List(ctx, list))
		encoded, err := json.Marshal(list)
		must(t, err)
		var roles struct {
			Items []struct {
				Metadata                 metav1.ObjectMeta `json:"metadata"`
				Rules, RoleRef, Subjects json.RawMessage
			} `json:"items"`
		}
		must(t, json.Unmarshal(encoded, &roles))
		for _, r := range roles.Items {
			found = append(found, fmt.Sprintf("%s/%s %s %s %s", r.Metadata.Namespace, r.Metadata.Name, r.Rules, r.RoleRef, r.Subjects))
		}
	}
	slices.Sort(found)
	return found
}

func clusterVersion(ctx context.Context, t *testing.T, spoke *ocm.Spoke) *configv1.ClusterVersion {
	t.Helper()
	version := &configv1.ClusterVersion{}
	must(t, spoke.Client.Get(ctx, client.ObjectKey{Name: "version"}, version))
	return version
}

// backup returns an action before the upgrade: a Job, and a ConfigMap whose deleteOption keeps it
// and whose completion is determined by a rule.
func backup() *fleetv1beta1.UpgradeAction {
	job := &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "backup"},
	}
	job.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: "backup", Image: "example.com/backup:1"}},
	}
	result := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "backup"}, Data: map[string]string{"done": "yes"},
	}
	id := workv1.ResourceIdentifier{Resource: "configmaps", Namespace: result.Namespace, Name: result.Name}
	action := &fleetv1beta1.UpgradeAction{}
	for _, object := range []runtime.Object{job, result} {
		action.ManifestWork.Workload.Manifests = append(action.ManifestWork.Workload.Manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Object: object}})
	}
	action.ManifestWork.ManifestConfigs = []workv1.ManifestConfigOption{{
		ResourceIdentifier: id,
		ConditionRules: []workv1.ConditionRule{{
			Condition: workv1.ManifestComplete, Type: workv1.CelConditionExpressionsType, CelExpressions: []string{`object.data.done == "yes"`},
		}},
	}}
	action.ManifestWork.DeleteOption = &workv1.DeleteOption{
		PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan,
		SelectivelyOrphan: &workv1.SelectivelyOrphan{OrphaningRules: []workv1.OrphaningRule{workv1.OrphaningRule(id)}},
	}
	return action
}

// checkBackup checks that the work of the action is deleted according to its deleteOption.
func checkBackup(t *testing.T, spoke *ocm.Spoke) {
	t.Helper()
	key := client.ObjectKey{Namespace: "default", Name: "backup"}
	await(t, "the Job of the action is gone on "+spoke.Name, func(ctx context.Context) bool {
		return apierrors.IsNotFound(spoke.Client.Get(ctx, key, &batchv1.Job{}))
	})
	result := &corev1.ConfigMap{}
	must(t, spoke.Client.Get(t.Context(), key, result))
	if len(result.OwnerReferences) > 0 {
		t.Errorf("the result of the action on %s will be deleted: %+v", spoke.Name, result.OwnerReferences)
	}
}
