// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package checks_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
)

// TestPDBs_that_the_real_disruption_controller_leaves_behind creates pairs of budgets before and after the
// pods that both select. When pods change, the disruption controller updates one budget of the pair. The
// other keeps the counts from its creation. The gate must report every pair because the Eviction API refuses
// to evict the pods, whatever the counts are.
func TestPDBs_that_the_real_disruption_controller_leaves_behind(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cluster, err := devcluster.Start(ctx, devcluster.Options{Dir: t.TempDir(), Spec: openshiftsim.ClusterSpec{Masters: 1, Workers: 1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	scheme, err := devcluster.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.New(cluster.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	selectors := map[string][2]*metav1.LabelSelector{
		"same":  {selecting("app=shop"), selecting("app=shop")},
		"wider": {selecting("app=shop", "tier=web"), {}},
		"keys":  {selecting("app=shop"), selecting("tier=web")},
	}
	var namespaces []string
	for name, pair := range selectors {
		for _, order := range []string{"before", "after"} {
			namespace := "openshift-" + name + "-" + order
			namespaces = append(namespaces, namespace)
			must(t, api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
			if order == "before" {
				createPDBs(ctx, t, api, namespace, pair)
			}
			createPod(ctx, t, api, namespace)
			if order == "after" {
				createPDBs(ctx, t, api, namespace, pair)
			}
		}
	}
	slices.Sort(namespaces)
	left := waitUntilCounted(ctx, t, api, namespaces)
	t.Logf("budgets without counted pods: %v", left)
	if len(left) == 0 {
		t.Error("the disruption controller has updated every budget: the test shows nothing")
	}
	for _, namespace := range namespaces {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
		if err := api.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{}); !apierrors.IsInternalError(err) {
			t.Errorf("namespace %s: the eviction was answered with %v", namespace, err)
		}
		options := checks.GateOptions{Checks: []string{"pdbs"}, PDBNamespaces: []string{namespace}, ExcludePDBs: []string{"*/*-primary"}}
		var got, want string
		must(t, wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			before, _, err := countedPods(ctx, api)
			if err != nil {
				return false, err
			}
			got = checks.Runner{Reader: api, Live: api, Sources: sources(&prometheus{}), Options: options}.Run(ctx, time.Now()).Message()
			want = "PodDisruptionBudgets that guard the same pods: " + namespace + "/shop and " + namespace + "/shop-primary"
			if slices.Contains(before, namespace+"/shop") { // the disruption controller has updated the other budget
				want = "PodDisruptionBudgets that allow no disruption: " + namespace + "/shop; " + want
			}
			after, _, err := countedPods(ctx, api)
			return slices.Equal(before, after), err // else it has updated a budget while the gate read them
		}))
		if got != want {
			t.Errorf("the gate of namespace %s says %q, want %q", namespace, got, want)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// createPDBs creates two budgets that allow a disruption. The second is exempt by default.
func createPDBs(ctx context.Context, t *testing.T, api client.Client, namespace string, selectors [2]*metav1.LabelSelector) {
	t.Helper()
	for i, name := range []string{"shop", "shop-primary"} {
		must(t, api.Create(ctx, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(1)), Selector: selectors[i]},
		}))
	}
	must(t, wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var list policyv1.PodDisruptionBudgetList
		err := api.List(ctx, &list, client.InNamespace(namespace))
		return !slices.ContainsFunc(list.Items, func(b policyv1.PodDisruptionBudget) bool { return b.Status.ObservedGeneration == 0 }), err
	}))
}

// createPod creates a pod and its ReplicationController. The disruption controller needs the latter to
// compute a budget with maxUnavailable.
func createPod(ctx context.Context, t *testing.T, api client.Client, namespace string) {
	t.Helper()
	podLabels := map[string]string{"app": "shop", "tier": "web"}
	owner := &corev1.ReplicationController{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: corev1.ReplicationControllerSpec{Replicas: new(int32(1)), Selector: podLabels, Template: &corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: podLabels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
		}},
	}
	must(t, api.Create(ctx, owner))
	must(t, api.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", Labels: podLabels, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "ReplicationController", Name: owner.Name, UID: owner.UID, Controller: new(true),
		}}},
		Spec: corev1.PodSpec{
			NodeName: "worker-0", AutomountServiceAccountToken: new(false), Containers: []corev1.Container{{Name: "web", Image: "web"}},
		},
	}))
}

// waitUntilCounted waits until one budget in each namespace counts the ready pod. It returns the budgets that
// count no pod.
func waitUntilCounted(ctx context.Context, t *testing.T, api client.Client, namespaces []string) []string {
	t.Helper()
	var left []string
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var counted map[string]bool
		var err error
		left, counted, err = countedPods(ctx, api)
		return !slices.ContainsFunc(namespaces, func(n string) bool { return !counted[n] }), err
	})
	if err != nil {
		t.Fatalf("no budget counts the pod: %v", left)
	}
	return left
}

// countedPods returns the budgets that count no pod, and the namespaces with a budget that counts one.
func countedPods(ctx context.Context, api client.Client) (left []string, counted map[string]bool, err error) {
	counted = map[string]bool{}
	var list policyv1.PodDisruptionBudgetList
	err = api.List(ctx, &list)
	for _, b := range list.Items {
		if b.Status.CurrentHealthy > 0 {
			counted[b.Namespace] = true
		} else if strings.HasPrefix(b.Name, "shop") {
			left = append(left, b.Namespace+"/"+b.Name)
		}
	}
	return left, counted, err
}
