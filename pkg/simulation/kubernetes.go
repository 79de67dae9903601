// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// KubeControllerManager returns a program that simulates built-in controllers of Kubernetes: it
// maintains the status of PodDisruptionBudgets, Jobs, and Deployments, creates the pods of Jobs and
// Deployments, and deletes Jobs whose TTL has expired.
func KubeControllerManager() *Program {
	return &Program{
		Name: "kube-controller-manager", Direct: true,
		Controllers: func(env Env) ([]manager.Controller, error) {
			return []manager.Controller{
				disruptionController(env.Client), jobController(env.Client, env.Clock), ttlController(env.Client, env.Clock), deploymentController(env.Client),
			}, nil
		},
	}
}

// EnableKubelets makes deleted pods terminate after the duration that shutdown returns, or after
// their grace period if it is shorter. If the duration is negative, the pod never terminates.
func (w *World) EnableKubelets(shutdown func(*corev1.Pod) time.Duration) {
	w.Observe(func(change Change) {
		pod, ok := change.New.(*corev1.Pod)
		if !ok || pod.DeletionTimestamp == nil || grace(pod) == 0 {
			return
		}
		if d := shutdown(pod); d >= 0 {
			w.After(min(d, grace(pod)), func() { w.terminate(client.ObjectKeyFromObject(pod), pod.UID) })
		}
	})
}

// terminate ends the containers of a pod. The pod is removed unless a finalizer keeps it.
func (w *World) terminate(key client.ObjectKey, uid types.UID) {
	gvr := corev1.SchemeGroupVersion.WithResource("pods")
	stored, ok := w.store.get(gvr, key).(*corev1.Pod)
	if !ok || stored.UID != uid {
		return
	}
	pod := stored.DeepCopy()
	pod.DeletionGracePeriodSeconds = new(int64(0))
	err := w.as("kubelet", w.now, func() error {
		if len(pod.Finalizers) == 0 {
			return w.store.Delete(gvr, key.Namespace, key.Name)
		}
		return w.store.Update(gvr, pod, key.Namespace)
	})
	if err != nil {
		w.Fail(fmt.Errorf("terminating pod %s: %w", key, err))
	}
}

// disruptionController maintains the status of PodDisruptionBudgets.
func disruptionController(c client.Client) manager.Controller {
	return manager.Controller{
		Name: "disruption",
		Reads: []manager.Kind{
			{Object: &policyv1.PodDisruptionBudget{}, Requests: manager.Self},
			{Object: &corev1.Pod{}, Requests: func(ctx context.Context, pod client.Object) []reconcile.Request {
				return budgetsIn(ctx, c, pod.GetNamespace())
			}},
		},
		Reconciler: reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, syncBudget(ctx, c, request.NamespacedName)
		}),
	}
}

func budgetsIn(ctx context.Context, c client.Client, namespace string) []reconcile.Request {
	var budgets policyv1.PodDisruptionBudgetList
	if err := c.List(ctx, &budgets, client.InNamespace(namespace)); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range budgets.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&budgets.Items[i])})
	}
	return requests
}

func syncBudget(ctx context.Context, c client.Client, key client.ObjectKey) error {
	var budget policyv1.PodDisruptionBudget
	if err := c.Get(ctx, key, &budget); err != nil {
		return client.IgnoreNotFound(err)
	}
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(key.Namespace)); err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	var expected, healthy int32
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !budgetSelects(&budget, pod) {
			continue
		}
		expected++
		if pod.DeletionTimestamp == nil && podIsReady(pod) {
			healthy++
		}
	}
	before := budget.DeepCopy()
	desired := desiredHealthy(&budget, int(expected))
	budget.Status.ObservedGeneration = budget.Generation
	budget.Status.ExpectedPods, budget.Status.CurrentHealthy, budget.Status.DesiredHealthy = expected, healthy, desired
	budget.Status.DisruptionsAllowed = max(0, healthy-desired)
	if expected == 0 {
		budget.Status.DisruptionsAllowed = 0
	}
	if equality.Semantic.DeepEqual(before.Status, budget.Status) {
		return nil
	}
	return c.Status().Update(ctx, &budget)
}

func desiredHealthy(budget *policyv1.PodDisruptionBudget, expected int) int32 {
	scaled := func(value *intstr.IntOrString) int {
		n, err := intstr.GetScaledValueFromIntOrPercent(value, expected, true)
		if err != nil {
			return expected
		}
		return n
	}
	switch {
	case budget.Spec.MaxUnavailable != nil:
		return int32(max(0, expected-scaled(budget.Spec.MaxUnavailable)))
	case budget.Spec.MinAvailable != nil:
		return int32(scaled(budget.Spec.MinAvailable))
	default:
		return int32(min(1, expected))
	}
}

func podIsReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
