// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// PDB holds the facts about a PodDisruptionBudget.
type PDB struct {
	Namespace, Name string
	// SelectorError explains why the selector is invalid, in one line of limited length. It is empty if the
	// selector is valid. As in the API server, a budget with an invalid selector guards no pods.
	SelectorError string
	// Observed is set if the status is up to date with the spec. Until then, the Eviction API refuses to
	// evict the budget's pods.
	Observed bool
	// SyncError explains why the disruption controller cannot compute the budget, in one line of limited
	// length. It is empty if there is no problem.
	SyncError string
	// GuardsPods is set if the status counts pods.
	GuardsPods bool
	// BlocksEviction is set if the Eviction API refuses to evict all of the budget's pods.
	BlocksEviction bool
	// Allowed is the number of disruptions currently allowed. Healthy, Desired, and Expected count the
	// healthy, required, and total pods.
	Allowed, Healthy, Desired, Expected int32
	// MinAvailable is the number of pods that must be available. It is 0 if the budget uses a percentage or
	// maxUnavailable.
	MinAvailable int32

	selector labels.Selector
}

// EvictionBlock explains why the Eviction API refuses to evict a budget's pods.
type EvictionBlock int

// Reasons why evictions are blocked.
const (
	// NotBlocked is a budget that allows a disruption.
	NotBlocked EvictionBlock = iota
	// BlockedUnobserved is a budget that the disruption controller has not observed yet.
	BlockedUnobserved
	// BlockedBySyncError is a budget that cannot be computed.
	BlockedBySyncError
	// BlockedByCount is a budget that allows no disruptions.
	BlockedByCount
)

// EvictionBlock returns why the Eviction API refuses to evict the budget's pods. All code must use it to
// answer this question.
func (b PDB) EvictionBlock() EvictionBlock {
	switch {
	case !b.Observed:
		return BlockedUnobserved
	case b.SyncError != "":
		return BlockedBySyncError
	case b.BlocksEviction:
		return BlockedByCount
	}
	return NotBlocked
}

// Selects reports whether the budget guards the pod.
func (b PDB) Selects(p Pod) bool {
	return b.Namespace == p.Namespace && b.selector.Matches(p.Labels)
}

// Selector formats the selector.
func (b PDB) Selector() string { return b.selector.String() }

// ListPDBs lists the PodDisruptionBudgets in a namespace, sorted by name.
func ListPDBs(ctx context.Context, r client.Reader, namespace string) ([]PDB, error) {
	budgets, err := listPDBs(ctx, r, func(string) bool { return true }, client.InNamespace(namespace))
	if err != nil {
		return nil, fmt.Errorf("listing the PodDisruptionBudgets in namespace %s: %w", namespace, err)
	}
	return budgets, nil
}

// ListPDBsIn lists the PodDisruptionBudgets in namespaces that match a pattern, sorted by namespace and name.
func ListPDBsIn(ctx context.Context, r client.Reader, namespaces []string) ([]PDB, error) {
	budgets, err := listPDBs(ctx, r, func(namespace string) bool { return text.MatchesAny(namespace, namespaces) })
	if err != nil {
		return nil, fmt.Errorf("listing the PodDisruptionBudgets: %w", err)
	}
	return budgets, nil
}

func listPDBs(ctx context.Context, r client.Reader, include func(namespace string) bool, opts ...client.ListOption) ([]PDB, error) {
	var list policyv1.PodDisruptionBudgetList
	if err := r.List(ctx, &list, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, err
	}
	var budgets []PDB
	for i := range list.Items {
		if include(list.Items[i].Namespace) {
			budgets = append(budgets, PDBOf(&list.Items[i]))
		}
	}
	slices.SortFunc(budgets, func(a, b PDB) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return budgets, nil
}

// PDBOf converts a PodDisruptionBudget. As in policy/v1, an empty selector selects all pods in the namespace,
// and a missing selector selects none. A selector that is too long to be cached counts as empty, because
// protecting a pod needlessly is better than forcing it too early.
func PDBOf(budget *policyv1.PodDisruptionBudget) PDB {
	facts := PDB{
		Namespace: budget.Namespace, Name: budget.Name,
		Observed:       budget.Status.ObservedGeneration >= budget.Generation,
		SyncError:      syncError(budget),
		GuardsPods:     budget.Status.ExpectedPods > 0 || budget.Status.CurrentHealthy > 0,
		BlocksEviction: blocksEviction(budget),
		Allowed:        budget.Status.DisruptionsAllowed,
		Healthy:        budget.Status.CurrentHealthy,
		Desired:        budget.Status.DesiredHealthy,
		Expected:       budget.Status.ExpectedPods,
	}
	if least := budget.Spec.MinAvailable; least != nil && least.Type == intstr.Int {
		facts.MinAvailable = max(least.IntVal, 0)
	}
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	switch {
	case isTooLong(budget.Spec.Selector):
		selector = labels.Everything()
	case err != nil:
		facts.SelectorError, selector = sanitize(err.Error()), labels.Nothing()
	}
	facts.selector = selector
	return facts
}

// blocksEviction reports whether a budget allows no disruptions. If the budget cannot be computed, its counts
// are meaningless. A budget that always allows evicting unhealthy pods does not block while no pod is
// healthy. A controller scaled to 0 may leave healthy pods behind that the budget does not expect.
func blocksEviction(budget *policyv1.PodDisruptionBudget) bool {
	status, policy := &budget.Status, budget.Spec.UnhealthyPodEvictionPolicy
	switch {
	case syncError(budget) != "":
		return true
	case policy != nil && *policy == policyv1.AlwaysAllow && status.CurrentHealthy <= 0:
		return false
	}
	return (status.ExpectedPods > 0 || status.CurrentHealthy > 0) && status.DisruptionsAllowed <= 0
}

// StripPDBConditions returns the conditions that PDBOf reads, with messages of limited length.
func StripPDBConditions(conditions []metav1.Condition) []metav1.Condition {
	for i := range conditions {
		if isSyncFailure(&conditions[i]) {
			c := conditions[i]
			return []metav1.Condition{{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: sanitize(c.Message)}}
		}
	}
	return nil
}

func isSyncFailure(c *metav1.Condition) bool {
	return c.Type == policyv1.DisruptionAllowedCondition && c.Status == metav1.ConditionFalse && c.Reason == policyv1.SyncFailedReason
}

func syncError(budget *policyv1.PodDisruptionBudget) string {
	for i := range budget.Status.Conditions {
		if c := &budget.Status.Conditions[i]; isSyncFailure(c) {
			return text.Reason(c.Message)
		}
	}
	return ""
}
