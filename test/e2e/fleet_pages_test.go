// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/fleet"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
)

// terminal returns a terminal connected to the hub. Its "oc logs" prints the log of the hub, if
// its pods are the ones requested.
func (w *hubWorld) terminal() terminal {
	w.t.Helper()
	bin, err := controlplane.FindBinDir()
	mustSucceed(w.t, err)
	mustSucceed(w.t, controlplane.RequirePrograms(bin, "kubectl-update"))
	script := fmt.Sprintf(`#!/usr/bin/env bash
case "$*" in
"update "*) shift; exec %[1]s/kubectl-update --kubeconfig %[2]s "$@" ;;
"logs -n managed-upgrade-operator -l app.kubernetes.io/name=managed-upgrade-hub "*) cat %[3]s ;;
"logs "*) echo "log of another program" ;;
*) exec %[1]s/kubectl --kubeconfig %[2]s "$@" ;;
esac
`, bin, w.kubeconfig, w.binary.log)
	folder := w.t.TempDir()
	mustSucceed(w.t, os.WriteFile(filepath.Join(folder, "oc"), []byte(script), 0o700))
	return terminal{folder}
}

// addRun creates the run of a cluster in an upgrade.
func (w *hubWorld) addRun(upgrade *fleetv1beta1.ManagedClustersUpgrade, cluster string, observed fleetv1alpha1.ClusterUpgradeRunStatus) {
	w.t.Helper()
	run := &fleetv1alpha1.ClusterUpgradeRun{ObjectMeta: metav1.ObjectMeta{
		Namespace: cluster, Name: admission.RunName(upgrade), Labels: map[string]string{fleetv1beta1.UpgradeLabel: string(upgrade.UID)},
	}}
	run.Spec = fleetv1alpha1.ClusterUpgradeRunSpec{
		ManagedClustersUpgrade: fleetv1alpha1.UpgradeReference{Namespace: upgrade.Namespace, Name: upgrade.Name, UID: string(upgrade.UID)},
		Attempt:                1, AdmissionTime: metav1.Now(), ClusterVersion: upgrade.Spec.ClusterVersion,
	}
	run.Status = observed
	run.Status.Attempt = 1
	w.create(run)
}

// publish publishes the status of an upgrade as the hub would.
func (w *hubWorld) publish(upgrade *fleetv1beta1.ManagedClustersUpgrade) {
	w.t.Helper()
	s, err := fleet.Read(w.t.Context(), w.typed, client.ObjectKeyFromObject(upgrade), time.Now())
	mustSucceed(w.t, err)
	s.Upgrade.Status = admission.ComputeStatus(&admission.Fleet{Upgrade: s.Upgrade, Now: s.Now}, s.Members, s.Decision)
	mustSucceed(w.t, w.typed.Status().Update(w.t.Context(), s.Upgrade))
}

// addPod creates a pod of the hub, and returns its name.
func (w *hubWorld) addPod() string {
	w.t.Helper()
	deployed := pick[appsv1.Deployment](w.t, kustomizedFrom(w.t, deployFolder+"/hub"), "Deployment")[0]
	pod := &corev1.Pod{Spec: deployed.Spec.Template.Spec}
	pod.Namespace, pod.Name, pod.Labels = deployed.Namespace, deployed.Name+"-1", deployed.Spec.Template.Labels
	mustSucceed(w.t, w.typed.Create(w.t.Context(), pod))
	return pod.Name
}

// TestAlertPages_of_fleets runs the commands of the pages about fleets in the states that the pages
// describe. The hub runs at first. It is down from the test of its page on, and then the objects remain
// as the test creates them.
func TestAlertPages_of_fleets(t *testing.T) {
	t.Parallel()
	w := newHubWorld(t)
	for _, cluster := range []string{"store-1", "store-2"} {
		w.addCluster(cluster, "4.20.5")
	}
	w.place("stores", "store-1", "store-2")
	w.place("depots", "store-1")
	var depots ocmv1beta1.Placement
	mustSucceed(t, w.typed.Get(t.Context(), client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "depots"}, &depots))
	depots.Status.NumberOfSelectedClusters = 2
	mustSucceed(t, w.typed.Status().Update(t.Context(), &depots))
	w.start()
	term := w.terminal()
	w.followSelection(t, term)
	w.followHub(t, term)
	w.followFailures(t, term)
	w.followStall(t, term)
	w.followConcepts(t, term)
}

// followConcepts follows the page that introduces fleets.
func (w *hubWorld) followConcepts(t *testing.T, term terminal) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "stores.yaml")
	_, page, _ := strings.Cut(readFile(t, filepath.Join(repository, "docs/concepts/fleets.md")), "```yaml\n")
	object, _, _ := strings.Cut(page, "```")
	mustSucceed(t, os.WriteFile(file, []byte(strings.ReplaceAll(object, "store-0001", "store-1")), 0o600))
	term.follow(t, "../concepts/fleets", map[string]string{"stores.yaml": file, "stores.html": filepath.Join(t.TempDir(), "stores.html"), "fleet start": "fleet start -y", "fleet retry": "fleet retry -y", "oc update fleet status stores -w": "timeout 5 oc update fleet status stores -w; true"}, []expectation{
		{"fleet start -y -f", "^managedclustersupgrade/stores created as a dry run"},
		{"fleet plan", `(?s)dry run.*READY +1\n +BLOCKED +1  1  waits for ManagedClustersUpgrade default/slow +store-2\n`},
		{"fleet start -y stores", "^managedclustersupgrade/stores started"},
		{"fleet status", "^stores: "},
		{"fleet clusters", "^No clusters found"}, // the hub is down
		{"fleet report", "^Wrote .*stores.html: managedclustersupgrade/stores, "},
		{"fleet retry", "the hub has not observed its last change yet"},
	})
}

func fleetNames(upgrade string) map[string]string {
	return map[string]string{"NAMESPACE": metav1.NamespaceDefault, "NAME": upgrade, "CLUSTER": "store-2"}
}

// followSelection follows the page about decisions whose number differs from the number in their Placement.
func (w *hubWorld) followSelection(t *testing.T, term terminal) {
	t.Helper()
	mustSucceed(t, w.typed.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "open-cluster-management-hub"}}))
	mustSucceed(t, w.typed.Create(t.Context(), newUpgrade("depots", fleetv1beta1.PlacementReference{Name: "depots"})))
	w.waitForReason("depots", fleetv1beta1.ConditionAdmitting, fleetv1beta1.ReasonSelectionUnstable)
	term.follow(t, "ManagedUpgradeFleetSelectionUnstable", fleetNames("depots"), []expectation{
		{"get managedclustersupgrade", "depots.*2"},
		{"get placements", `(?s)placement\S*/depots.*placementdecision\S*/depots-decision-1`},
		{"get pods", "No resources found in open-cluster-management-hub"},
	})
}

// followHub ends the hub, and follows the pages about it.
func (w *hubWorld) followHub(t *testing.T, term terminal) {
	t.Helper()
	pod := w.addPod()
	mustSucceed(t, w.binary.process.Stop(time.Minute))
	term.follow(t, "ManagedUpgradeHubDown", nil, []expectation{
		{"get pods", pod}, {"describe pods", pod}, {"logs", `"level":`}, {"get lease", "renewTime"},
	})
	term.follow(t, "ManagedUpgradeFleetNotificationsFailing", nil, []expectation{{"logs", "^$"}, {"get deployment", "name: managed-upgrade-hub"}})
	blind := newUpgrade("blind", fleetv1beta1.PlacementReference{Name: "stores"})
	blind.Status.Conditions = []metav1.Condition{{
		Type: fleetv1beta1.ConditionAdmitting, Status: metav1.ConditionFalse, Reason: fleetv1beta1.ReasonCannotObserve,
		Message: "listing Placements: forbidden", LastTransitionTime: metav1.Now(),
	}}
	w.create(blind)
	term.follow(t, "ManagedUpgradeFleetNotProgressing", fleetNames("blind"), []expectation{
		{"get managedclustersupgrade", "^listing Placements: forbidden$"}, {"logs", `"level":`},
	})
	lone := newUpgrade("lone", fleetv1beta1.PlacementReference{Name: "stores"})
	lone.Status.Conditions = []metav1.Condition{{
		Type: fleetv1beta1.ConditionAdmitting, Status: metav1.ConditionFalse, Reason: fleetv1beta1.ReasonNoCanary,
		Message: "no canary is left", LastTransitionTime: metav1.Now(),
	}}
	w.create(lone)
	term.follow(t, "ManagedUpgradeFleetNeedsAction", fleetNames("lone"), []expectation{
		{"fleet status", `^lone: `}, {"get managedclustersupgrade", "^no canary is left$"},
	})
}

// followFailures follows the pages about clusters that failed.
func (w *hubWorld) followFailures(t *testing.T, term terminal) {
	t.Helper()
	failed := fleetv1alpha1.ClusterUpgradeRunStatus{
		State: fleetv1alpha1.StateFailed, Reason: fleetv1alpha1.ReasonClusterVersionFailing, Message: "etcd is degraded",
	}
	canary := newUpgrade("canary", fleetv1beta1.PlacementReference{Name: "stores"})
	canary.Spec.UpgradeStrategy.CanaryClusters = &fleetv1beta1.CanaryClusters{
		ClusterSelector: fleetv1beta1.LabelSelector{MatchLabels: map[string]string{"name": "store-1"}},
	}
	budget := newUpgrade("budget", fleetv1beta1.PlacementReference{Name: "stores"})
	budget.Spec.UpgradeStrategy.MaxFailures = new(intstr.FromInt32(0))
	for _, upgrade := range []*fleetv1beta1.ManagedClustersUpgrade{canary, budget} {
		mustSucceed(t, w.typed.Create(t.Context(), upgrade))
		w.addRun(upgrade, "store-1", failed)
		w.publish(upgrade)
	}
	const cause = `FAILED +1  ClusterVersionFailing: etcd is degraded +store-1\n`
	term.follow(t, "ManagedUpgradeFleetCanaryFailed", fleetNames("canary"), []expectation{
		{"fleet status", `(?s)^canary: .*STOPPED: a canary failed.*` + cause + `.*fleet retry canary -n default\n$`},
		{"fleet clusters", `^CLUSTER .*\nstore-1 +Failed +canary +- +ClusterVersionFailing +etcd is degraded\s*$`},
	})
	term.follow(t, "ManagedUpgradeFleetBudgetExceeded", fleetNames("budget"), []expectation{
		{"fleet status", `(?s)^budget: .*STOPPED: too many clusters failed.*` + cause + `.*fleet retry budget -n default\n$`},
		{"fleet clusters", `^CLUSTER .*\nstore-1 +Failed +1 +- +ClusterVersionFailing +etcd is degraded\s*$`},
	})
}

// followStall follows the page about a cluster that makes no progress. Here, the cluster is the hub itself.
func (w *hubWorld) followStall(t *testing.T, term terminal) {
	t.Helper()
	upgrade := newUpgrade("slow", fleetv1beta1.PlacementReference{Name: "stores"})
	mustSucceed(t, w.typed.Create(t.Context(), upgrade))
	w.addRun(upgrade, "store-2", fleetv1alpha1.ClusterUpgradeRunStatus{
		State: fleetv1alpha1.StatePartialUpgrade, Accepted: true,
		Conditions: []metav1.Condition{{
			Type: fleetv1alpha1.ConditionSlow, Status: metav1.ConditionTrue, Reason: fleetv1alpha1.StepClusterUpgraded,
			Message:            "Working towards 4.20.6: 799 of 959 done (83% complete), waiting on machine-config",
			LastTransitionTime: metav1.NewTime(time.Now().Add(-2 * time.Minute)),
		}},
	})
	w.publish(upgrade)
	now := time.Now().UTC()
	w.updateStatus(t, now)
	w.server.create(t, stuckUpdate(now)...)
	term.follow(t, "ManagedUpgradeFleetStalled", fleetNames("slow"), []expectation{
		{"fleet status", `(?s)^slow: .*SLOW +1  no progress for 47m: machine-config +store-2\n`},
		{"get clusterupgraderun", `message: 'Working towards 4\.20\.6: 799 of`},
		{"oc update status", `^STUCK .*Pool worker has made no progress for \d+m\.`},
	})
}
