// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
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

// maxCachedText bounds a reason or a message that is cached, in bytes; less is shown of it.
const maxCachedText = 2 << 10

// keptAnnotations are the prefixes of the annotations that are read.
var keptAnnotations = []string{"machineconfiguration.openshift.io/", "machine.openshift.io/", "upgrade.managed.openshift.io/"}

// StripMetadata drops what is not read from the metadata of an object, before the object is cached:
// the managed fields and annotations of others.
func StripMetadata(obj any) (any, error) {
	if object, ok := obj.(metav1.Object); ok {
		stripMetadata(object)
	}
	return obj, nil
}

func stripMetadata(object metav1.Object) {
	object.SetManagedFields(nil)
	annotations := object.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, value string) bool {
		return len(value) > maxCachedText || !slices.ContainsFunc(keptAnnotations, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	})
	if len(annotations) == 0 {
		object.SetAnnotations(nil)
	}
}

// StripNode drops what is not read from a node, before the node is cached: above all the
// heartbeats, and the list of images, which is most of its size.
func StripNode(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	stripMetadata(node)
	var conditions []corev1.NodeCondition
	for _, c := range node.Status.Conditions {
		c.LastHeartbeatTime = metav1.Time{}
		c.Reason, c.Message = cachedText(c.Reason), cachedText(c.Message)
		conditions = append(conditions, c)
	}
	node.Status = corev1.NodeStatus{Conditions: conditions}
	return node, nil
}

// StripClusterVersion drops what is not read from the ClusterVersion, before it is cached.
func StripClusterVersion(obj any) (any, error) {
	version, ok := obj.(*configv1.ClusterVersion)
	if !ok {
		return obj, nil
	}
	stripMetadata(version)
	stripConditions(version.Status.Conditions)
	for i := range version.Status.History {
		version.Status.History[i].AcceptedRisks = ""
	}
	return version, nil
}

// StripClusterOperator drops what is not read from a ClusterOperator, before it is cached.
func StripClusterOperator(obj any) (any, error) {
	operator, ok := obj.(*configv1.ClusterOperator)
	if !ok {
		return obj, nil
	}
	stripMetadata(operator)
	stripConditions(operator.Status.Conditions)
	operator.Status.RelatedObjects, operator.Status.Extension.Raw = nil, nil
	return operator, nil
}

// StripPool drops what is not read from a MachineConfigPool, before it is cached: above all the list
// of the MachineConfigs of which its configuration consists.
func StripPool(obj any) (any, error) {
	pool, ok := obj.(*mcfgv1.MachineConfigPool)
	if !ok {
		return obj, nil
	}
	stripMetadata(pool)
	pool.Spec.Configuration.Source, pool.Status.Configuration.Source = nil, nil
	for i := range pool.Status.Conditions {
		c := &pool.Status.Conditions[i]
		c.Reason, c.Message = cachedText(c.Reason), cachedText(c.Message)
	}
	return pool, nil
}

func stripConditions(conditions []configv1.ClusterOperatorStatusCondition) {
	for i := range conditions {
		conditions[i].Reason, conditions[i].Message = cachedText(conditions[i].Reason), cachedText(conditions[i].Message)
	}
}

// cachedText returns a bounded text of its own: a part of a longer one would keep all of it in memory.
func cachedText(long string) string {
	if len(long) <= maxCachedText {
		return long
	}
	return strings.Clone(text.Truncate(long, maxCachedText))
}

// StripPDB drops everything from a PodDisruptionBudget, before it is cached, except for the pods
// that it selects and the number of disruptions that it allows.
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
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: spec.Selector, UnhealthyPodEvictionPolicy: spec.UnhealthyPodEvictionPolicy},
		Status: policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: status.ObservedGeneration, ExpectedPods: status.ExpectedPods,
			CurrentHealthy: status.CurrentHealthy, DisruptionsAllowed: status.DisruptionsAllowed,
			Conditions: StripPDBConditions(status.Conditions),
		},
	}, nil
}
