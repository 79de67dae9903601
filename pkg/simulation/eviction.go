// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// evict serves the Eviction API, with the rules of pkg/registry/core/pod/storage/eviction.go of Kubernetes.
// Tests of package devcluster compare the two; decision 0115 lists what differs.
func (w *World) evict(pod *corev1.Pod, eviction *policyv1.Eviction) error {
	if eviction.Name != "" && eviction.Name != pod.Name {
		return apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	if !ignoresBudgets(pod) {
		if err := w.disrupt(pod); err != nil {
			return err
		}
	}
	// The preconditions are checked last: a budget is charged even if they do not hold.
	options := ptr.Deref(eviction.DeleteOptions, metav1.DeleteOptions{})
	if err := checkEvictionPreconditions(pod, ptr.Deref(options.Preconditions, metav1.Preconditions{})); err != nil {
		return err
	}
	evicted := pod.DeepCopy()
	setPodCondition(evicted, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.now),
		Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
	})
	if err := w.store.Update(corev1.SchemeGroupVersion.WithResource("pods"), evicted.DeepCopy(), evicted.Namespace); err != nil {
		return err
	}
	return w.deletePod(evicted, options.GracePeriodSeconds)
}

// ignoresBudgets reports whether the removal of a pod disrupts nothing.
func ignoresBudgets(pod *corev1.Pod) bool {
	switch pod.Status.Phase {
	case corev1.PodPending, corev1.PodSucceeded, corev1.PodFailed:
		return true
	case corev1.PodRunning, corev1.PodUnknown:
	}
	return pod.DeletionTimestamp != nil
}

// disrupt charges the budget that guards a pod, or returns why it does not allow the disruption. Unready pods
// are free if the budget says so, or while the application is healthy without them.
func (w *World) disrupt(pod *corev1.Pod) error {
	budgets := w.budgetsOf(pod)
	switch len(budgets) {
	case 0:
		return nil
	case 1:
	default:
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
			Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
		}}
	}
	budget := budgets[0].DeepCopy()
	status := &budget.Status
	healthy := status.CurrentHealthy >= status.DesiredHealthy && status.DesiredHealthy > 0
	always := ptr.Deref(budget.Spec.UnhealthyPodEvictionPolicy, policyv1.IfHealthyBudget) == policyv1.AlwaysAllow
	switch {
	case !podIsReady(pod) && (always || healthy):
		return nil
	case status.ObservedGeneration < budget.Generation:
		return refuseEviction(10, fmt.Sprintf("The disruption budget %s is still being processed by the server.", budget.Name))
	case status.DisruptionsAllowed < 1:
		return refuseEviction(0, whyNoDisruption(budget))
	}
	status.DisruptionsAllowed--
	return w.store.Update(policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"), budget, budget.Namespace)
}

// refuseEviction returns the response to an eviction that a PodDisruptionBudget does not currently
// allow.
func refuseEviction(retryAfter int, cause string) error {
	refusal := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", retryAfter)
	refusal.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: cause}}
	return refusal
}

func whyNoDisruption(budget *policyv1.PodDisruptionBudget) string {
	status, prefix := budget.Status, fmt.Sprintf("The disruption budget %s does not allow evicting pods currently", budget.Name)
	condition := meta.FindStatusCondition(status.Conditions, policyv1.DisruptionAllowedCondition)
	explained := condition != nil && condition.Status == metav1.ConditionFalse && condition.Message != ""
	switch {
	case explained && condition.Reason == policyv1.SyncFailedReason: // the counts are from before
		return prefix + " because it failed sync: " + condition.Message
	case status.CurrentHealthy <= status.DesiredHealthy:
		return fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", budget.Name, status.DesiredHealthy, status.CurrentHealthy)
	case explained:
		return fmt.Sprintf("%s (%s): %s", prefix, condition.Reason, condition.Message)
	default:
		return prefix
	}
}

func checkEvictionPreconditions(pod *corev1.Pod, want metav1.Preconditions) error {
	var problem error
	switch {
	case want.UID != nil && *want.UID != pod.UID:
		problem = fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *want.UID, pod.UID)
	case want.ResourceVersion != nil && *want.ResourceVersion != pod.ResourceVersion:
		problem = fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *want.ResourceVersion, pod.ResourceVersion)
	default:
		return nil
	}
	return apierrors.NewConflict(schema.GroupResource{Resource: "Pod"}, pod.Name, problem)
}

func setPodCondition(pod *corev1.Pod, condition corev1.PodCondition) {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == condition.Type {
			if c.Status == condition.Status {
				condition.LastTransitionTime = c.LastTransitionTime
			}
			*c = condition
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, condition)
}

func (w *World) budgetsOf(pod *corev1.Pod) []*policyv1.PodDisruptionBudget {
	var budgets []*policyv1.PodDisruptionBudget
	for _, object := range w.store.sorted(policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"), pod.Namespace) {
		budget, ok := object.(*policyv1.PodDisruptionBudget)
		if ok && budgetSelects(budget, pod) {
			budgets = append(budgets, budget)
		}
	}
	return budgets
}

func budgetSelects(budget *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	return err == nil && budget.Namespace == pod.Namespace && selector.Matches(labels.Set(pod.Labels))
}
