// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// evictionCase is a pod with its budgets, and what an eviction of the pod must lead to. The zero pod is running,
// ready, and bound to a node.
type evictionCase struct {
	phase     corev1.PodPhase // defaults to Running
	unready   bool
	unbound   bool // to a node
	deleting  bool
	elsewhere bool // the budgets select other pods
	stale     bool // the budgets have a newer spec than status
	always    bool // the budgets always allow the eviction of unhealthy pods
	budgets   []policyv1.PodDisruptionBudgetStatus
	eviction  policyv1.Eviction
	want      evictionOutcome
}

// evictionOutcome is what the client of an eviction can observe. Its code is 0 if the eviction succeeded.
type evictionOutcome struct {
	Code       int32
	Reason     metav1.StatusReason
	Message    string
	Cause      string
	RetryAfter int32

	Pod     string // kept, terminating, or gone
	Grace   int64  // of a terminating pod, in seconds
	Target  bool   // whether the pod has condition DisruptionTarget
	Allowed []int32
}

const (
	violates = "Cannot evict pod as it would violate the pod's disruption budget."
	manyPDBs = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
)

func budgetStatus(allowed, healthy, desired int32, conditions ...metav1.Condition) policyv1.PodDisruptionBudgetStatus {
	return policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed, CurrentHealthy: healthy, DesiredHealthy: desired, ExpectedPods: 3, Conditions: conditions}
}

func notAllowed(reason, message string) metav1.Condition {
	return metav1.Condition{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: metav1.Now()}
}

func one(status policyv1.PodDisruptionBudgetStatus) []policyv1.PodDisruptionBudgetStatus {
	return []policyv1.PodDisruptionBudgetStatus{status}
}

// evictionCases returns the cases by name. Both the simulated and the real API server must pass them.
func evictionCases() map[string]evictionCase {
	terminating := func(allowed ...int32) evictionOutcome {
		return evictionOutcome{Pod: "terminating", Grace: 30, Target: true, Allowed: allowed}
	}
	refused := func(retryAfter int32, cause string, allowed ...int32) evictionOutcome {
		return evictionOutcome{Code: 429, Reason: metav1.StatusReasonTooManyRequests, Message: violates, Cause: cause, RetryAfter: retryAfter, Pod: "kept", Allowed: allowed}
	}
	conflict := func(message string, allowed ...int32) evictionOutcome {
		return evictionOutcome{Code: 409, Reason: metav1.StatusReasonConflict, Message: `Operation cannot be fulfilled on Pod "web": ` + message, Pod: "kept", Allowed: allowed}
	}
	preconditions := func(p metav1.Preconditions) policyv1.Eviction {
		return policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{Preconditions: &p}}
	}
	const (
		processed = "The disruption budget budget-0 is still being processed by the server."
		needs3    = "The disruption budget budget-0 needs 3 healthy pods and has 2 currently"
		no        = "The disruption budget budget-0 does not allow evicting pods currently"
	)
	return map[string]evictionCase{
		"no budget":                    {want: terminating()},
		"no budget, no node":           {unbound: true, want: evictionOutcome{Pod: "gone"}},
		"grace period of the eviction": {eviction: policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: new(int64(5))}}, want: evictionOutcome{Pod: "terminating", Grace: 5, Target: true}},
		"no grace period":              {eviction: policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}}, want: evictionOutcome{Pod: "gone"}},
		"another name":                 {eviction: policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, want: evictionOutcome{Code: 400, Reason: metav1.StatusReasonBadRequest, Message: "name in URL does not match name in Eviction object", Pod: "kept"}},
		"budget of other pods":         {elsewhere: true, budgets: one(budgetStatus(0, 2, 3)), want: terminating(0)},

		"one disruption allowed":                      {budgets: one(budgetStatus(1, 3, 2)), want: terminating(0)},
		"two disruptions allowed":                     {budgets: one(budgetStatus(2, 3, 1)), want: terminating(1)},
		"too few healthy":                             {budgets: one(budgetStatus(0, 2, 3)), want: refused(0, needs3, 0)},
		"just enough healthy":                         {budgets: one(budgetStatus(0, 3, 3)), want: refused(0, "The disruption budget budget-0 needs 3 healthy pods and has 3 currently", 0)},
		"more healthy than desired":                   {budgets: one(budgetStatus(0, 3, 2)), want: refused(0, no, 0)},
		"more healthy than desired, no message":       {budgets: one(budgetStatus(0, 3, 2, notAllowed(policyv1.InsufficientPodsReason, ""))), want: refused(0, no, 0)},
		"more healthy than desired, with a message":   {budgets: one(budgetStatus(0, 3, 2, notAllowed(policyv1.InsufficientPodsReason, "a pod is leaving"))), want: refused(0, no+" (InsufficientPods): a pod is leaving", 0)},
		"failed to sync":                              {budgets: one(budgetStatus(0, 2, 3, notAllowed(policyv1.SyncFailedReason, "found no scale"))), want: refused(0, no+" because it failed sync: found no scale", 0)},
		"failed to sync, no message":                  {budgets: one(budgetStatus(0, 2, 3, notAllowed(policyv1.SyncFailedReason, ""))), want: refused(0, needs3, 0)},
		"not processed yet":                           {stale: true, budgets: one(budgetStatus(1, 3, 2)), want: refused(10, processed, 1)},
		"not processed yet, none allowed":             {stale: true, budgets: one(budgetStatus(0, 2, 3)), want: refused(10, processed, 0)},
		"two budgets":                                 {budgets: []policyv1.PodDisruptionBudgetStatus{budgetStatus(1, 3, 2), budgetStatus(1, 3, 2)}, want: evictionOutcome{Code: 500, Message: manyPDBs, Pod: "kept", Allowed: []int32{1, 1}}},
		"two budgets that always allow, unready":      {unready: true, always: true, budgets: []policyv1.PodDisruptionBudgetStatus{budgetStatus(1, 3, 2), budgetStatus(1, 3, 2)}, want: evictionOutcome{Code: 500, Message: manyPDBs, Pod: "kept", Allowed: []int32{1, 1}}},
		"unready, application healthy":                {unready: true, budgets: one(budgetStatus(0, 2, 2)), want: terminating(0)},
		"unready, application healthy, one allowed":   {unready: true, budgets: one(budgetStatus(1, 3, 2)), want: terminating(1)},
		"unready, application unhealthy":              {unready: true, budgets: one(budgetStatus(0, 2, 3)), want: refused(0, needs3, 0)},
		"unready, none desired":                       {unready: true, budgets: one(budgetStatus(0, 0, 0)), want: refused(0, "The disruption budget budget-0 needs 0 healthy pods and has 0 currently", 0)},
		"unready, none desired, one allowed":          {unready: true, budgets: one(budgetStatus(1, 1, 0)), want: terminating(0)},
		"unready, always allowed":                     {unready: true, always: true, budgets: one(budgetStatus(0, 2, 3)), want: terminating(0)},
		"unready, always allowed, not processed":      {unready: true, always: true, stale: true, budgets: one(budgetStatus(0, 2, 3)), want: terminating(0)},
		"unready, application healthy, not processed": {unready: true, stale: true, budgets: one(budgetStatus(0, 2, 2)), want: terminating(0)},
		"ready, always allowed":                       {always: true, budgets: one(budgetStatus(0, 2, 3)), want: refused(0, needs3, 0)},

		"pending":               {phase: corev1.PodPending, budgets: one(budgetStatus(0, 2, 3)), want: terminating(0)},
		"pending, no node":      {phase: corev1.PodPending, unbound: true, budgets: one(budgetStatus(0, 2, 3)), want: evictionOutcome{Pod: "gone", Allowed: []int32{0}}},
		"succeeded":             {phase: corev1.PodSucceeded, budgets: one(budgetStatus(0, 2, 3)), want: evictionOutcome{Pod: "gone", Allowed: []int32{0}}},
		"failed":                {phase: corev1.PodFailed, budgets: one(budgetStatus(1, 3, 2)), want: evictionOutcome{Pod: "gone", Allowed: []int32{1}}},
		"failed, two budgets":   {phase: corev1.PodFailed, budgets: []policyv1.PodDisruptionBudgetStatus{budgetStatus(0, 2, 3), budgetStatus(0, 2, 3)}, want: evictionOutcome{Pod: "gone", Allowed: []int32{0, 0}}},
		"unknown phase":         {phase: corev1.PodUnknown, budgets: one(budgetStatus(0, 2, 3)), want: refused(0, needs3, 0)},
		"deleted before":        {deleting: true, budgets: one(budgetStatus(0, 2, 3)), want: terminating(0)},
		"deleted, two budgets":  {deleting: true, budgets: []policyv1.PodDisruptionBudgetStatus{budgetStatus(1, 3, 2), budgetStatus(1, 3, 2)}, want: terminating(1, 1)},
		"another UID":           {eviction: preconditions(metav1.Preconditions{UID: new(types.UID("x"))}), want: conflict("the UID in the precondition (x) does not match the UID in record (UID). The object might have been deleted and then recreated")},
		"another UID, charged":  {eviction: preconditions(metav1.Preconditions{UID: new(types.UID("x"))}), budgets: one(budgetStatus(1, 3, 2)), want: conflict("the UID in the precondition (x) does not match the UID in record (UID). The object might have been deleted and then recreated", 0)},
		"another UID, refused":  {eviction: preconditions(metav1.Preconditions{UID: new(types.UID("x"))}), budgets: one(budgetStatus(0, 2, 3)), want: refused(0, needs3, 0)},
		"another UID, pending":  {phase: corev1.PodPending, eviction: preconditions(metav1.Preconditions{UID: new(types.UID("x"))}), want: conflict("the UID in the precondition (x) does not match the UID in record (UID). The object might have been deleted and then recreated")},
		"older resourceVersion": {eviction: preconditions(metav1.Preconditions{ResourceVersion: new("1")}), want: conflict("the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (VERSION). The object might have been modified")},
	}
}

// run creates the pod and its budgets in a namespace, requests the eviction, and returns what came of it.
func (c evictionCase) run(t *testing.T, api client.Client, namespace string) evictionOutcome {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", Labels: map[string]string{"app": "shop"}},
		Spec: corev1.PodSpec{
			NodeName: "worker-0", AutomountServiceAccountToken: new(false), TerminationGracePeriodSeconds: new(int64(30)),
			Containers: []corev1.Container{{Name: "web", Image: "web"}},
		},
	}
	if c.unbound {
		pod.Spec.NodeName = ""
	}
	must(api.Create(t.Context(), pod))
	pod.Status.Phase = corev1.PodRunning
	if c.phase != "" {
		pod.Status.Phase = c.phase
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	if c.unready {
		pod.Status.Conditions[0].Status = corev1.ConditionFalse
	}
	must(api.Status().Update(t.Context(), pod))
	budgets := c.createBudgets(t, api, namespace)
	if c.deleting {
		must(api.Delete(t.Context(), pod))
	}

	var got evictionOutcome
	if err := api.SubResource("eviction").Create(t.Context(), pod, c.eviction.DeepCopy()); err != nil {
		status, ok := errors.AsType[*apierrors.StatusError](err)
		if !ok {
			t.Fatal(err)
		}
		got = outcomeOf(status.Status(), pod)
	}
	err := api.Get(t.Context(), client.ObjectKeyFromObject(pod), pod)
	switch {
	case apierrors.IsNotFound(err):
		got.Pod = "gone"
	case err != nil:
		t.Fatal(err)
	case pod.DeletionTimestamp == nil:
		got.Pod = "kept"
	default:
		got.Pod, got.Grace = "terminating", *pod.DeletionGracePeriodSeconds
	}
	for _, condition := range pod.Status.Conditions {
		got.Target = got.Target || got.Pod != "gone" && condition.Type == corev1.DisruptionTarget
	}
	for _, budget := range budgets {
		must(api.Get(t.Context(), client.ObjectKeyFromObject(budget), budget))
		got.Allowed = append(got.Allowed, budget.Status.DisruptionsAllowed)
	}
	return got
}

// createBudgets creates the budgets with their statuses.
func (c evictionCase) createBudgets(t *testing.T, api client.Client, namespace string) []*policyv1.PodDisruptionBudget {
	t.Helper()
	selected := "shop"
	if c.elsewhere {
		selected = "other"
	}
	var budgets []*policyv1.PodDisruptionBudget
	for i, status := range c.budgets {
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "budget-" + string(rune('0'+i))}}
		budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": selected}}
		if c.always {
			budget.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
		}
		if err := api.Create(t.Context(), budget); err != nil {
			t.Fatal(err)
		}
		budget.Status = *status.DeepCopy()
		if !c.stale {
			budget.Status.ObservedGeneration = budget.Generation
		}
		if err := api.Status().Update(t.Context(), budget); err != nil {
			t.Fatal(err)
		}
		budgets = append(budgets, budget)
	}
	return budgets
}

// outcomeOf converts the response to an eviction. It replaces what the API server assigns.
func outcomeOf(status metav1.Status, pod *corev1.Pod) evictionOutcome {
	got := evictionOutcome{Code: status.Code, Reason: status.Reason}
	got.Message = strings.NewReplacer("("+string(pod.UID)+")", "(UID)", "("+pod.ResourceVersion+")", "(VERSION)").Replace(status.Message)
	if details := status.Details; details != nil {
		got.RetryAfter = details.RetryAfterSeconds
		var causes []string
		for _, cause := range details.Causes {
			if cause.Type == policyv1.DisruptionBudgetCause {
				causes = append(causes, cause.Message)
			}
		}
		got.Cause = strings.Join(causes, "\n")
	}
	return got
}

func TestEvictions_in_the_simulation(t *testing.T) {
	t.Parallel()
	for name, tc := range evictionCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := tc.run(t, simulation.New(simulation.WorldOptions{}).Client("test"), "shop")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
