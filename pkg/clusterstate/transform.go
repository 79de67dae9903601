// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Transforms keep only the parts of an object that are read and limit their size before the object is cached.
// Other clients therefore cannot inflate the operator's memory. A transform modifies the object in place and
// may be applied repeatedly.
const (
	// maxCachedText limits a cached reason or message, in bytes. Even less of it is displayed.
	maxCachedText = 2 << 10
	// maxCachedLabels limits the cached labels of a node or pool, in bytes.
	maxCachedLabels = 16 << 10
	// maxCachedSelector limits the cached label selector of a PodDisruptionBudget, in bytes.
	// maxCachedNodeSelector limits the selector of a pool. It is larger because a selector may list nodes by
	// name.
	maxCachedSelector     = 4 << 10
	maxCachedNodeSelector = 32 << 10
)

// maxKept limits the number of cached list elements.
const maxKept = 16

// keptAnnotations lists the annotations that are read.
var keptAnnotations = []string{
	annotationCurrentConfig, annotationDesiredConfig, annotationState, annotationReason,
	annotationDesiredDrain, annotationLastAppliedDrain, annotationMachine,
	AnnotationDrainFirstSeen, AnnotationPausedBy, annotationHold,
}

// keptFinalizers lists the finalizers that are read.
var keptFinalizers = []string{"upgrade.managed.openshift.io/upgrade-in-progress"}

// StripMetadata removes all metadata except the object's identity and the annotations and finalizers that are
// read.
func StripMetadata(obj any) (any, error) {
	if object, ok := obj.(metav1.Object); ok {
		stripMetadata(object)
	}
	return obj, nil
}

func stripMetadata(object metav1.Object) {
	object.SetGenerateName("")
	object.SetSelfLink("")
	object.SetManagedFields(nil)
	object.SetLabels(nil)
	object.SetOwnerReferences(nil)
	object.SetFinalizers(kept(object.GetFinalizers(), func(f *string) bool { return slices.Contains(keptFinalizers, *f) }))
	var annotations map[string]string
	for _, key := range keptAnnotations {
		if value, ok := object.GetAnnotations()[key]; ok {
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[key] = cachedText(value)
		}
	}
	object.SetAnnotations(annotations)
}

// kept returns a copy of the first elements that should be kept, or nil if there are none.
func kept[T any](all []T, keep func(*T) bool) []T {
	var some []T
	for i := range all {
		if len(some) < maxKept && keep(&all[i]) {
			some = append(some, all[i])
		}
	}
	return some
}

// isReadCondition reports whether a condition of a node is read.
func isReadCondition(c *corev1.NodeCondition) bool {
	_, pressure := pressureConditions[c.Type]
	return pressure || c.Type == corev1.NodeReady
}

// isReadTaint reports whether a taint of a node is read.
func isReadTaint(t *corev1.Taint) bool {
	_, pressure := pressureTaints[t.Key]
	return pressure || t.Key == corev1.TaintNodeUnschedulable || t.Key == taintAutoscalerDel
}

// StripNode removes the unused parts of a node before it is cached, mainly heartbeats and the list of images,
// which accounts for most of its size.
func StripNode(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	labels := cachedLabels(node.Labels)
	stripMetadata(node)
	node.Labels = labels
	taints := kept(node.Spec.Taints, isReadTaint)
	for i := range taints {
		taints[i].Value = ""
	}
	node.Spec = corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable, Taints: taints}
	conditions := kept(node.Status.Conditions, isReadCondition)
	for i := range conditions {
		c := &conditions[i]
		c.LastHeartbeatTime = metav1.Time{}
		c.Status, c.Reason, c.Message = corev1.ConditionStatus(cachedText(string(c.Status))), cachedText(c.Reason), cachedText(c.Message)
	}
	node.Status = corev1.NodeStatus{Conditions: conditions}
	return node, nil
}

// cachedLabels returns the labels of a node. All are kept because a pool may select nodes by any label. Above
// the size limit, the labels that the operator reads and roles come first, followed by the rest in key order.
func cachedLabels(all map[string]string) map[string]string {
	size := 0
	for key, value := range all {
		size += len(key) + len(value)
	}
	if size <= maxCachedLabels {
		return all
	}
	keys := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(labelRank(a), labelRank(b)), cmp.Compare(a, b))
	})
	some, size := map[string]string{}, 0
	for _, key := range keys {
		if size += len(key) + len(all[key]); size > maxCachedLabels {
			break
		}
		some[key] = all[key]
	}
	return some
}

// labelRank returns the priority of a node label. 0 is the highest.
func labelRank(key string) int {
	switch {
	case key == LabelExtraNodeOf || key == corev1.LabelOSStable:
		return 0
	case strings.HasPrefix(key, "node-role.kubernetes.io/"):
		return 1
	}
	return 2
}

// StripClusterVersion removes the unused parts of the ClusterVersion before it is cached. There is only one
// object, and only administrators and the cluster version operator can write it.
func StripClusterVersion(obj any) (any, error) {
	version, ok := obj.(*configv1.ClusterVersion)
	if !ok {
		return obj, nil
	}
	managers := desiredUpdateManagers(version.ManagedFields)
	stripMetadata(version)
	version.ManagedFields = managers
	stripConditions(version.Status.Conditions)
	for i := range version.Status.History {
		version.Status.History[i].AcceptedRisks = ""
	}
	return version, nil
}

// StripClusterOperator removes everything from a ClusterOperator except the conditions and version that are
// read.
func StripClusterOperator(obj any) (any, error) {
	operator, ok := obj.(*configv1.ClusterOperator)
	if !ok {
		return obj, nil
	}
	stripMetadata(operator)
	status := &operator.Status
	conditions := kept(status.Conditions, func(c *configv1.ClusterOperatorStatusCondition) bool {
		return c.Type == configv1.OperatorAvailable || c.Type == configv1.OperatorDegraded || c.Type == configv1.OperatorProgressing
	})
	stripConditions(conditions)
	versions := kept(status.Versions, func(v *configv1.OperandVersion) bool { return v.Name == operandOperator })
	for i := range versions {
		versions[i].Version = cachedText(versions[i].Version)
	}
	operator.Spec = configv1.ClusterOperatorSpec{}
	operator.Status = configv1.ClusterOperatorStatus{Conditions: conditions, Versions: versions}
	return operator, nil
}

// labelsTooLong is the key of a label that replaces labels that are too long to be cached. The API server
// does not accept this key.
const labelsTooLong = "too long/"

// cachedPoolLabels returns the labels of a pool. If they exceed the limit, it returns a placeholder, because
// partial labels are not enough to evaluate selectors.
func cachedPoolLabels(all map[string]string) map[string]string {
	size := 0
	for key, value := range all {
		size += len(key) + len(value)
	}
	if size <= maxCachedLabels {
		return all
	}
	return map[string]string{labelsTooLong: ""}
}

// StripPool removes everything from a MachineConfigPool except labels, the node selector, the configuration,
// machine counts, and the conditions that are read.
func StripPool(obj any) (any, error) {
	pool, ok := obj.(*mcfgv1.MachineConfigPool)
	if !ok {
		return obj, nil
	}
	labels := cachedPoolLabels(pool.Labels)
	if markOf(pool) == nil { // the manager of spec.paused is not cached
		delete(pool.Annotations, AnnotationPausedBy)
	}
	stripMetadata(pool)
	pool.Labels = labels
	var spec mcfgv1.MachineConfigPoolSpec
	spec.Paused, spec.NodeSelector = pool.Spec.Paused, cachedSelector(pool.Spec.NodeSelector, maxCachedNodeSelector)
	spec.Configuration.Name = cachedText(pool.Spec.Configuration.Name)
	status := mcfgv1.MachineConfigPoolStatus{
		ObservedGeneration: pool.Status.ObservedGeneration,
		MachineCount:       pool.Status.MachineCount, UpdatedMachineCount: pool.Status.UpdatedMachineCount,
	}
	status.Configuration.Name = cachedText(pool.Status.Configuration.Name)
	status.Conditions = kept(pool.Status.Conditions, func(c *mcfgv1.MachineConfigPoolCondition) bool {
		return c.Type == mcfgv1.MachineConfigPoolUpdated || isDegradedCondition(c)
	})
	for i := range status.Conditions {
		c := &status.Conditions[i]
		c.Status, c.Reason, c.Message = corev1.ConditionStatus(cachedText(string(c.Status))), cachedText(c.Reason), cachedText(c.Message)
	}
	pool.Spec, pool.Status = spec, status
	return pool, nil
}

func stripConditions(conditions []configv1.ClusterOperatorStatusCondition) {
	for i := range conditions {
		c := &conditions[i]
		c.Status, c.Reason, c.Message = configv1.ConditionStatus(cachedText(string(c.Status))), cachedText(c.Reason), cachedText(c.Message)
	}
}

// cachedText returns a copy of limited length. A substring would keep the whole text in memory.
func cachedText(long string) string {
	if len(long) <= maxCachedText {
		return long
	}
	return strings.Clone(text.Truncate(long, maxCachedText))
}

// selectorTooLong is the operator of a requirement that replaces a selector that is too long to be cached.
// The API server does not accept this operator.
const selectorTooLong metav1.LabelSelectorOperator = "TooLong"

// cachedSelector returns the selector, or a placeholder if it exceeds the limit.
func cachedSelector(selector *metav1.LabelSelector, limit int) *metav1.LabelSelector {
	if selector == nil {
		return nil
	}
	size := 0
	for key, value := range selector.MatchLabels {
		size += len(key) + len(value)
	}
	for _, e := range selector.MatchExpressions {
		size += len(e.Key) + len(e.Operator)
		for _, value := range e.Values {
			size += len(value) + 1
		}
	}
	if size <= limit {
		return selector
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Operator: selectorTooLong}}}
}

// isTooLong reports whether a selector is the placeholder.
func isTooLong(selector *metav1.LabelSelector) bool {
	return selector != nil && len(selector.MatchExpressions) == 1 && selector.MatchExpressions[0].Operator == selectorTooLong
}

// StripPDB removes everything from a PodDisruptionBudget except its selector and the allowed disruptions.
func StripPDB(obj any) (any, error) {
	budget, ok := obj.(*policyv1.PodDisruptionBudget)
	if !ok {
		return obj, nil
	}
	spec, status := budget.Spec, budget.Status
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: budget.Namespace, Name: budget.Name, UID: budget.UID,
			ResourceVersion: budget.ResourceVersion, Generation: budget.Generation,
		},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: cachedSelector(spec.Selector, maxCachedSelector), UnhealthyPodEvictionPolicy: spec.UnhealthyPodEvictionPolicy, MinAvailable: spec.MinAvailable},
		Status: policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: status.ObservedGeneration, ExpectedPods: status.ExpectedPods,
			CurrentHealthy: status.CurrentHealthy, DesiredHealthy: status.DesiredHealthy, DisruptionsAllowed: status.DisruptionsAllowed,
			Conditions: StripPDBConditions(status.Conditions),
		},
	}, nil
}
