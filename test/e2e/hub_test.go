// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/ocm/crds"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/hub"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/manifests"
)

const hubAccount = "managed-upgrade-hub"

// hubWorld is an API server with the API of Open Cluster Management and the manifests of the hub.
type hubWorld struct {
	*server
	t      testing.TB
	typed  client.Client
	binary *replica
}

func newHubWorld(tb testing.TB) *hubWorld {
	tb.Helper()
	w := &hubWorld{server: startServer(tb), t: tb}
	w.openshift(tb)
	folder, err := fs.Sub(crds.Files, "hub")
	mustSucceed(tb, err)
	objects, err := manifests.Read(folder)
	mustSucceed(tb, err)
	w.apply(tb, objects)
	w.apply(tb, kustomizedFrom(tb, deployFolder+"/hub"))
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.Install, ocmv1beta1.Install, fleetv1beta1.AddToScheme, fleetv1alpha1.AddToScheme,
	} {
		mustSucceed(tb, add(scheme))
	}
	w.typed, err = client.New(w.RESTConfig(), client.Options{Scheme: scheme})
	mustSucceed(tb, err)
	return w
}

func (w *hubWorld) start(flags ...string) {
	w.t.Helper()
	bin, err := controlplane.FindBinDir()
	mustSucceed(w.t, err)
	mustSucceed(w.t, controlplane.RequirePrograms(bin, "hub"))
	kubeconfig, _ := w.account(w.t, hubAccount)
	w.binary = startProgram(w.t, filepath.Join(bin, "hub"), kubeconfig, flags...)
	waitUntil(w.t, "the hub is ready", func(ctx context.Context) bool { return w.binary.probe(ctx, "/readyz") == http.StatusOK })
}

// create creates an object, and then its status, because creation ignores it.
func (w *hubWorld) create(object client.Object) {
	w.t.Helper()
	withStatus := object.DeepCopyObject().(client.Object)
	mustSucceed(w.t, w.typed.Create(w.t.Context(), object))
	withStatus.SetResourceVersion(object.GetResourceVersion())
	withStatus.SetUID(object.GetUID())
	mustSucceed(w.t, w.typed.Status().Update(w.t.Context(), withStatus))
}

// addCluster creates a managed cluster with its namespace, as an import does. The cluster reports to the hub.
func (w *hubWorld) addCluster(name, version string) {
	w.t.Helper()
	mustSucceed(w.t, w.typed.Create(w.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	w.create(&clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		Status: clusterv1.ManagedClusterStatus{
			Conditions: []metav1.Condition{{
				Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue, Reason: "ManagedClusterAvailable",
				LastTransitionTime: metav1.Now(),
			}},
			ClusterClaims: []clusterv1.ManagedClusterClaim{{Name: "version.openshift.io", Value: version}},
		},
	})
}

// place creates a Placement in the namespace default, with the decisions that its controller would make.
func (w *hubWorld) place(name string, clusters ...string) {
	w.t.Helper()
	placement := &ocmv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
	placement.Status.NumberOfSelectedClusters = int32(len(clusters))
	placement.Status.DecisionGroups = []ocmv1beta1.DecisionGroupStatus{{Decisions: []string{name + "-decision-1"}, ClustersCount: int32(len(clusters))}}
	placement.Status.Conditions = []metav1.Condition{{
		Type: ocmv1beta1.PlacementConditionSatisfied, Status: metav1.ConditionTrue, Reason: "AllDecisionsScheduled", LastTransitionTime: metav1.Now(),
	}}
	w.create(placement)
	decision := &ocmv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: metav1.NamespaceDefault, Name: name + "-decision-1",
		Labels: map[string]string{ocmv1beta1.PlacementLabel: name, ocmv1beta1.DecisionGroupIndexLabel: "0"},
	}}
	for _, cluster := range clusters {
		decision.Status.Decisions = append(decision.Status.Decisions, ocmv1beta1.ClusterDecision{ClusterName: cluster})
	}
	w.create(decision)
}

func (w *hubWorld) upgrade(ctx context.Context, name string) *fleetv1beta1.ManagedClustersUpgrade {
	upgrade := &fleetv1beta1.ManagedClustersUpgrade{}
	if err := w.typed.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: name}, upgrade); err != nil {
		return &fleetv1beta1.ManagedClustersUpgrade{}
	}
	return upgrade
}

func (w *hubWorld) waitForReason(name, conditionType, reason string) {
	w.t.Helper()
	waitUntil(w.t, "condition "+conditionType+" has reason "+reason, func(ctx context.Context) bool {
		c := apimeta.FindStatusCondition(w.upgrade(ctx, name).Status.Conditions, conditionType)
		return c != nil && c.Reason == reason
	})
}

// newUpgrade returns an upgrade of the clusters of a Placement.
func newUpgrade(name string, placement fleetv1beta1.PlacementReference) *fleetv1beta1.ManagedClustersUpgrade {
	upgrade := &fleetv1beta1.ManagedClustersUpgrade{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
	upgrade.Spec.Placement = []fleetv1beta1.PlacementReference{placement}
	upgrade.Spec.ClusterVersion = &fleetv1beta1.ClusterVersionSpec{Version: "4.20.6", Channel: "stable-4.20"}
	return upgrade
}

// TestHub_runs_with_its_deployed_permissions runs the program as it is deployed.
func TestHub_runs_with_its_deployed_permissions(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	w.addCluster("store-1", "4.20.6") // there is nothing to deliver
	w.place("stores", "store-1")
	w.start("--allow-placement-namespaces=false")
	mustSucceed(t, w.typed.Create(t.Context(), newUpgrade("stores", fleetv1beta1.PlacementReference{Name: "stores"})))
	w.waitForReason("stores", fleetv1beta1.ConditionComplete, fleetv1beta1.ReasonManagedClustersUpgradeComplete)

	mustSucceed(t, w.typed.Create(t.Context(), newUpgrade("foreign", fleetv1beta1.PlacementReference{Namespace: "kube-public", Name: "stores"})))
	w.waitForReason("foreign", fleetv1beta1.ConditionSelected, fleetv1beta1.ReasonPlacementNotAllowed)

	t.Log("deletion removes the runs")
	mustSucceed(t, w.typed.Delete(t.Context(), newUpgrade("stores", fleetv1beta1.PlacementReference{})))
	waitUntil(t, "the runs are gone", func(ctx context.Context) bool {
		var runs fleetv1alpha1.ClusterUpgradeRunList
		return w.typed.List(ctx, &runs) == nil && len(runs.Items) == 0 && w.upgrade(ctx, "stores").Name == ""
	})
	_, token := w.account(t, hubAccount)
	if status, _ := w.binary.scrape(t, token); status != http.StatusForbidden {
		t.Errorf("a client without permission reads the metrics: %d", status)
	}
	for _, forbidden := range w.forbidden(t, hubAccount) {
		t.Errorf("a permission is missing: %s", forbidden)
	}
}

// The Deployment runs the program with valid flags.
func TestHub_deployment(t *testing.T) {
	t.Parallel()
	deployments := pick[appsv1.Deployment](t, kustomizedFrom(t, deployFolder+"/hub"), "Deployment")
	if len(deployments) != 1 {
		t.Fatalf("%d Deployments, want 1", len(deployments))
	}
	container := deployments[0].Spec.Template.Spec.Containers[0]
	if !slices.Equal(container.Command, []string{"/hub"}) {
		t.Errorf("command %v", container.Command)
	}
	args := make([]string, 0, len(container.Args))
	for _, arg := range container.Args {
		args = append(args, strings.NewReplacer("$(NAMESPACE)", home, "/etc/metrics-tls", t.TempDir()).Replace(arg))
	}
	command := hub.Command("")
	if err := command.ParseFlags(args); err != nil || len(command.Flags().Args()) > 0 {
		t.Errorf("flags %v: %v", args, err)
	}
}
