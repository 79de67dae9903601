// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// KubeControllerManager returns the program that simulates what Kubernetes does by itself: the
// status of PodDisruptionBudgets, Jobs, and Deployments.
func KubeControllerManager() *Program {
	return &Program{
		Name: "kube-controller-manager", Direct: true,
		Controllers: func(env Env) ([]manager.Controller, error) {
			return []manager.Controller{disruptionController(env.Client), jobController(env.Client, env.Clock), deploymentController(env.Client)}, nil
		},
	}
}

// EnableKubelets has each pod that is deleted terminate after the time that the function returns,
// or after its grace period if that is shorter. A negative time means that it never terminates.
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

// terminate ends the containers of a pod. It is gone if no finalizer keeps it.
func (w *World) terminate(key client.ObjectKey, uid types.UID) {
	gvr := corev1.SchemeGroupVersion.WithResource("pods")
	stored, ok := w.store.get(gvr, key).(*corev1.Pod)
	if !ok || stored.UID != uid {
		return
	}
	pod := stored.DeepCopy()
	pod.DeletionGracePeriodSeconds = new(int64(0))
	err := w.as("kubelet", func() error {
		if len(pod.Finalizers) == 0 {
			return w.store.Delete(gvr, key.Namespace, key.Name)
		}
		return w.store.Update(gvr, pod, key.Namespace)
	})
	if err != nil {
		w.Fail(fmt.Errorf("terminating pod %s: %w", key, err))
	}
}

// EnableGarbageCollection deletes the dependents of each deleted object, in the background.
func (w *World) EnableGarbageCollection() {
	c := w.Client("garbage-collector")
	w.Observe(func(change Change) {
		if change.New == nil {
			owner := change.Old.GetUID()
			w.After(0, func() { w.deleteDependents(c, owner) })
		}
	})
}

func (w *World) deleteDependents(c client.Client, owner types.UID) {
	for _, gvr := range w.store.kinds() {
		for _, object := range w.store.sorted(gvr, "") {
			owned := slices.ContainsFunc(object.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner })
			if !owned {
				continue
			}
			dependent, ok := object.DeepCopyObject().(client.Object)
			if !ok {
				continue
			}
			if err := client.IgnoreNotFound(c.Delete(background(), dependent)); err != nil {
				w.Fail(fmt.Errorf("collecting %T %s: %w", object, object.GetName(), err))
			}
		}
	}
}

// disruptionController keeps the status of PodDisruptionBudgets.
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

// jobController runs Jobs: one pod at a time, until one succeeds or the backoff limit is reached.
func jobController(c client.Client, now clock.PassiveClock) manager.Controller {
	return manager.Controller{
		Name: "job",
		Reads: []manager.Kind{
			{Object: &batchv1.Job{}, Requests: manager.Self},
			{Object: &corev1.Pod{}, Requests: ownerOf("Job")},
		},
		Reconciler: reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			return syncJob(ctx, c, now, request.NamespacedName)
		}),
	}
}

// ownerOf requests the reconcile of the owner of that kind.
func ownerOf(kind string) func(context.Context, client.Object) []reconcile.Request {
	return func(_ context.Context, object client.Object) []reconcile.Request {
		owner := metav1.GetControllerOf(object)
		if owner == nil || owner.Kind != kind {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: object.GetNamespace(), Name: owner.Name}}}
	}
}

func syncJob(ctx context.Context, c client.Client, clk clock.PassiveClock, key client.ObjectKey) (reconcile.Result, error) {
	var job batchv1.Job
	if err := c.Get(ctx, key, &job); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if job.Status.CompletionTime != nil || jobFailed(&job) {
		return reconcile.Result{}, nil
	}
	before, now := job.DeepCopy(), metav1.NewTime(clk.Now().Truncate(time.Second))
	if job.Status.StartTime == nil {
		job.Status.StartTime = &now
	}
	if err := countPods(ctx, c, &job); err != nil {
		return reconcile.Result{}, err
	}
	limit := int32(6)
	if job.Spec.BackoffLimit != nil {
		limit = *job.Spec.BackoffLimit
	}
	var result reconcile.Result
	switch {
	case job.Status.Succeeded > 0:
		job.Status.CompletionTime = &now
		finishJob(&job, batchv1.JobComplete, "CompletionsReached", now)
	case job.Status.Failed > limit:
		finishJob(&job, batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded, now)
	case overdue(&job, now.Time, &result):
		finishJob(&job, batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded, now)
	case job.Status.Active == 0:
		if err := c.Create(ctx, podOf(&job)); err != nil {
			return reconcile.Result{}, fmt.Errorf("creating a pod of Job %s: %w", key, err)
		}
		job.Status.Active = 1
	}
	if equality.Semantic.DeepEqual(before.Status, job.Status) {
		return result, nil
	}
	return result, c.Status().Update(ctx, &job)
}

func jobFailed(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == batchv1.JobFailed })
}

func countPods(ctx context.Context, c client.Client, job *batchv1.Job) error {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(job.Namespace)); err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	job.Status.Active, job.Status.Succeeded, job.Status.Failed = 0, 0, 0
	for i := range pods.Items {
		if !metav1.IsControlledBy(&pods.Items[i], job) {
			continue
		}
		switch pods.Items[i].Status.Phase {
		case corev1.PodSucceeded:
			job.Status.Succeeded++
		case corev1.PodFailed:
			job.Status.Failed++
		default:
			job.Status.Active++
		}
	}
	return nil
}

// overdue reports whether the deadline of a Job has passed; if not, it requests a reconcile then.
func overdue(job *batchv1.Job, now time.Time, result *reconcile.Result) bool {
	if job.Spec.ActiveDeadlineSeconds == nil {
		return false
	}
	left := job.Status.StartTime.Add(time.Duration(*job.Spec.ActiveDeadlineSeconds) * time.Second).Sub(now)
	result.RequeueAfter = max(left, 0)
	return left <= 0
}

func finishJob(job *batchv1.Job, condition batchv1.JobConditionType, reason string, now metav1.Time) {
	job.Status.Active = 0
	job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
		Type: condition, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: now,
	})
}

func podOf(job *batchv1.Job) *corev1.Pod {
	template := job.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.GenerateName = job.Namespace, job.Name+"-"
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	return pod
}
