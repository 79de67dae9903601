// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package devcluster_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/machineconfig"
)

// eventually polls until the function returns an empty string. It fails with the last string after
// a minute.
func eventually(t *testing.T, what func() string) {
	t.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		last = what()
		return last == "", nil
	})
	if err != nil {
		t.Fatalf("%s (%v)", last, err)
	}
}

func pool(t *testing.T, cluster *devcluster.Cluster, name string) *mcfgv1.MachineConfigPool {
	t.Helper()
	found := &mcfgv1.MachineConfigPool{}
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Name: name}, found); err != nil {
		t.Fatal(err)
	}
	return found
}

func at(t *testing.T, cluster *devcluster.Cluster, name, release string) string {
	t.Helper()
	status := pool(t, cluster, name).Status
	if want := machineconfig.RenderedName(name, release); status.Configuration.Name != want {
		return fmt.Sprintf("pool %s is not at %s: %+v", name, release, status)
	}
	return ""
}

func ready(t *testing.T, cluster *devcluster.Cluster, namespace string, want int32) string {
	t.Helper()
	var deployments appsv1.DeploymentList
	if err := cluster.Client.List(t.Context(), &deployments, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	for _, deployment := range deployments.Items {
		if deployment.Status.ReadyReplicas != want {
			return fmt.Sprintf("deployment %s has %d ready replicas, want %d", deployment.Name, deployment.Status.ReadyReplicas, want)
		}
	}
	return ""
}

func workload(t *testing.T, cluster *devcluster.Cluster, replicas int32, budget policyv1.PodDisruptionBudgetSpec) {
	t.Helper()
	labels := map[string]string{"app": "shop"}
	budget.Selector = &metav1.LabelSelector{MatchLabels: labels}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop"}, Spec: budget},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop"}, Spec: appsv1.DeploymentSpec{
			Replicas: new(replicas), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "shop", Image: "shop"}},
			}},
		}},
	} {
		if err := cluster.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, func() string { return ready(t, cluster, "shop", replicas) })
}

func TestNodes_are_updated_after_a_drain_that_honors_PDBs(t *testing.T) {
	t.Parallel()
	cluster := start(t, openshiftsim.ClusterSpec{Speed: 480, Masters: 1, Workers: 2, Pools: []machineconfig.Pool{
		{Name: "infra", Nodes: 2, Paused: true},
	}})
	workload(t, cluster, 4, policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(0))})

	patch(t, cluster, `{"spec":{"desiredUpdate":{"version":"4.20.6"}}}`)
	await(t, cluster, "the control plane completes", history("4.20.6 Completed", "4.20.5 Completed"))
	if missing := at(t, cluster, "master", "4.20.6"); missing != "" {
		t.Errorf("the control plane completed before its nodes: %s", missing)
	}

	// The PDB allows no eviction, so the drain of the first worker is blocked until the pool is
	// degraded.
	var cordoned corev1.Node
	eventually(t, func() string {
		var nodes corev1.NodeList
		if err := cluster.Client.List(t.Context(), &nodes); err != nil {
			t.Fatal(err)
		}
		for _, node := range nodes.Items {
			for _, taint := range node.Spec.Taints {
				if node.Spec.Unschedulable && taint.Key == corev1.TaintNodeUnschedulable && taint.TimeAdded != nil {
					cordoned = node
					return ""
				}
			}
		}
		return "no node is cordoned"
	})
	eventually(t, func() string {
		if pool(t, cluster, "worker").Status.DegradedMachineCount == 1 {
			return ""
		}
		return "a drain that takes an hour does not make the pool degraded"
	})
	if missing := ready(t, cluster, "shop", 4); missing != "" {
		t.Errorf("a pod was evicted in spite of its budget: %s", missing)
	}

	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop"}}
	if err := cluster.Client.Patch(t.Context(), budget, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"maxUnavailable":1}}`))); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string { return at(t, cluster, "worker", "4.20.6") })
	eventually(t, func() string { return ready(t, cluster, "shop", 4) })
	after := &corev1.Node{}
	if err := cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(&cordoned), after); err != nil {
		t.Fatal(err)
	}
	if after.Spec.Unschedulable || after.Annotations[machineconfig.State] != machineconfig.StateDone || after.Status.NodeInfo.BootID == cordoned.Status.NodeInfo.BootID {
		t.Errorf("node %s was not rebooted and uncordoned: %+v", after.Name, after.Annotations)
	}

	// The pool infra stays paused until a client resumes it.
	if got := pool(t, cluster, "infra").Status; got.UpdatedMachineCount != 0 || got.MachineCount != 2 {
		t.Errorf("a paused pool moved: %+v", got)
	}
	if got := pool(t, cluster, "worker").Status.MachineCount; got != 2 {
		t.Errorf("pool worker counts %d nodes, want 2 without those of the custom pool", got)
	}
	infra := pool(t, cluster, "infra")
	if err := cluster.Client.Patch(t.Context(), infra, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"paused":false}}`))); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string { return at(t, cluster, "infra", "4.20.6") })
}
