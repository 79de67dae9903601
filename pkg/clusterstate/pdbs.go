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

// PDB holds the facts of a PodDisruptionBudget.
type PDB struct {
	Namespace, Name string
	// SelectorError is why the selector is invalid, in one bounded line; empty if it is valid. A
	// budget with an invalid selector guards no pod, as for the API server.
	SelectorError string
	// Observed reports that the status belongs to the current spec. Until then the Eviction API refuses to evict the
	// pods of the budget.
	Observed bool
	// SyncError is why the disruption controller cannot compute the budget, in one bounded line;
	// empty if it can.
	SyncError string
	// GuardsPods reports that the status counts pods that the budget selects.
	GuardsPods bool
	// BlocksEviction reports that the Eviction API refuses to evict any pod of the budget.
	BlocksEviction bool
	// Allowed is the number of disruptions that the budget allows now. Healthy, Desired, and Expected
	// are the numbers of pods that are healthy, that must be healthy, and that it counts.
	Allowed, Healthy, Desired, Expected int32
	// MinAvailable is the number of pods that must be available; 0 means that the budget demands a
	// percentage of them, or limits those that are not available.
	MinAvailable int32

	selector labels.Selector
}

// EvictionBlock is why the Eviction API refuses to evict the pods of a budget.
type EvictionBlock int

// The reasons.
const (
	// NotBlocked means that the budget allows a disruption.
	NotBlocked EvictionBlock = iota
	// BlockedUnobserved means that the disruption controller has not observed the budget yet.
	BlockedUnobserved
	// BlockedBySyncError means that the budget cannot be computed.
	BlockedBySyncError
	// BlockedByCount means that the budget allows no disruption.
	BlockedByCount
)

// EvictionBlock returns why the Eviction API refuses to evict any pod of the budget. It is the only answer to
// that question.
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

// Selector returns the selector as text.
func (b PDB) Selector() string { return b.selector.String() }

// ListPDBs lists the PodDisruptionBudgets of a namespace, sorted by name.
func ListPDBs(ctx context.Context, r client.Reader, namespace string) ([]PDB, error) {
	budgets, err := listPDBs(ctx, r, func(string) bool { return true }, client.InNamespace(namespace))
	if err != nil {
		return nil, fmt.Errorf("listing the PodDisruptionBudgets in namespace %s: %w", namespace, err)
	}
	return budgets, nil
}

// ListPDBsIn lists the PodDisruptionBudgets of the namespaces that match one of the patterns,
// sorted by namespace and name.
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

// PDBOf returns the facts of a PodDisruptionBudget. As in policy/v1, an empty selector selects every pod of the
// namespace, and a missing one selects no pod. A selector that is too long to be cached counts as empty: it is better
// to protect a pod than to force it too early.
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

// blocksEviction reports whether a budget allows no disruption. The counts of a budget that cannot
// be computed mean nothing. A budget that always allows to evict unhealthy pods does not block as
// long as no pod is healthy. A controller whose scale is 0 may leave healthy pods behind for which
// the budget expects none.
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

// StripPDBConditions returns the conditions from which PDBOf reads facts, with bounded messages.
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
