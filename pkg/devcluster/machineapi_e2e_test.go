// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package devcluster_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/machineapi"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/machineconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/timescale"
)

// machines returns the phase, error, and node of all Machines except the initial ones.
func machines(t *testing.T, cluster *devcluster.Cluster, of string) string {
	t.Helper()
	var list machinev1beta1.MachineList
	if err := cluster.Client.List(t.Context(), &list, client.InNamespace(machineapi.Namespace)); err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, m := range list.Items {
		if !strings.HasPrefix(m.Name, of+"-") {
			continue
		}
		text := "new"
		if m.Status.Phase != nil {
			text = *m.Status.Phase
		}
		if m.Status.ErrorReason != nil {
			text += fmt.Sprintf(" %s: %s", *m.Status.ErrorReason, *m.Status.ErrorMessage)
		}
		if m.Status.NodeRef != nil {
			text += " " + readiness(t, cluster, m.Status.NodeRef.Name)
		}
		found = append(found, text)
	}
	slices.Sort(found)
	return strings.Join(found, ", ")
}

// readiness describes whether a node is ready.
func readiness(t *testing.T, cluster *devcluster.Cluster, name string) string {
	t.Helper()
	var node corev1.Node
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Name: name}, &node); err != nil {
		return "gone"
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return string(c.Status)
		}
	}
	return "silent"
}

func becomes(t *testing.T, what func() string, want string) {
	t.Helper()
	eventually(t, func() string {
		if got := what(); got != want {
			return fmt.Sprintf("it is %q, want %q", got, want)
		}
		return ""
	})
}

func TestMachineAPI(t *testing.T) {
	t.Parallel()
	cluster := start(t, openshiftsim.ClusterSpec{Speed: 240, Masters: 1, Workers: 3, MachineSets: []machineapi.MachineSet{
		{Name: "worker-a"},
		{Name: "worker-b", Provider: machineapi.Provider{Refused: "InsufficientResources: You have exceeded your quota."}},
		{Name: "worker-c", Provider: machineapi.Provider{NotReady: true}},
		{Name: "worker-d", Provider: machineapi.Provider{InstallTakes: timescale.Never}},
	}})
	got := func(name string) *machinev1beta1.MachineSet {
		t.Helper()
		set := &machinev1beta1.MachineSet{}
		if err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: machineapi.Namespace, Name: name}, set); err != nil {
			t.Fatal(err)
		}
		return set
	}
	scale := func(name string, replicas int) {
		t.Helper()
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
		if err := cluster.Client.Patch(t.Context(), got(name), client.RawPatch("application/merge-patch+json", patch)); err != nil {
			t.Fatal(err)
		}
	}
	count := func(name string) func() string {
		return func() string {
			set := got(name)
			return fmt.Sprintf("%d of %d of %d", set.Status.ReadyReplicas, set.Status.Replicas, *set.Spec.Replicas)
		}
	}
	for name, want := range map[string]string{"worker-a": "1 of 1 of 1", "worker-b": "1 of 1 of 1", "worker-c": "1 of 1 of 1", "worker-d": "0 of 0 of 0"} {
		becomes(t, count(name), want)
	}
	if got := machines(t, cluster, "worker"); got != "Running True, Running True, Running True" {
		t.Errorf("the machines of the workers: %s", got)
	}

	workload(t, cluster, 3, policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(1))})
	scale("worker-a", 2)
	scale("worker-b", 2)
	scale("worker-c", 2)
	scale("worker-d", 1)
	becomes(t, func() string { return machines(t, cluster, "worker-a") }, "Running True")
	becomes(t, count("worker-a"), "2 of 2 of 2")
	becomes(t, func() string { return machines(t, cluster, "worker-b") }, "Failed InsufficientResources: You have exceeded your quota.")
	becomes(t, func() string { return machines(t, cluster, "worker-c") }, "Running Unknown")
	becomes(t, func() string { return machines(t, cluster, "worker-d") }, "Provisioning")
	becomes(t, func() string {
		status := pool(t, cluster, "worker").Status
		return fmt.Sprintf("%d machines, %d ready", status.MachineCount, status.ReadyMachineCount)
	}, "5 machines, 4 ready")
	var nodes corev1.NodeList
	if err := cluster.Client.List(t.Context(), &nodes, client.HasLabels{"node-role.kubernetes.io/worker"}); err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes.Items {
		if config := node.Annotations[machineconfig.CurrentConfig]; config != machineconfig.RenderedName("worker", cluster.Spec().Version) {
			t.Errorf("node %s has the configuration %q", node.Name, config)
		}
	}

	scale("worker-a", 1)
	becomes(t, func() string { return machines(t, cluster, "worker-a") }, "")
	for _, name := range []string{"worker-b", "worker-c", "worker-d"} {
		if err := cluster.Client.Delete(t.Context(), got(name), client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
			t.Fatal(err)
		}
	}
	becomes(t, func() string {
		var sets machinev1beta1.MachineSetList
		if err := cluster.Client.List(t.Context(), &sets); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d left", len(sets.Items))
	}, "1 left")
	if got := machines(t, cluster, "worker"); got != "Running True" {
		t.Errorf("the machines that are left: %s", got)
	}
}
