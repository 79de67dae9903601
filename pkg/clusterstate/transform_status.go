// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"maps"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// These transforms of the Update Status Controller keep additional data that only the update status reads.
// They do not affect the operator's cache.

// maxKeptCertificates limits the number of cached certificates per pool.
const maxKeptCertificates = 64

// StripClusterOperatorForStatus also keeps the image and an annotation for cluster profiles.
func StripClusterOperatorForStatus(obj any) (any, error) {
	operator, ok := obj.(*configv1.ClusterOperator)
	if !ok {
		return obj, nil
	}
	var annotations map[string]string
	for _, key := range slices.Sorted(maps.Keys(operator.Annotations)) { // one is enough to show that the operator is part of the release
		if isProfileAnnotation(key) && len(key) <= maxCachedText {
			annotations = map[string]string{key: cachedText(operator.Annotations[key])}
			break
		}
	}
	images := kept(operator.Status.Versions, func(v *configv1.OperandVersion) bool { return v.Name == operandImage })
	for i := range images {
		images[i].Version = cachedText(images[i].Version)
	}
	if _, err := StripClusterOperator(operator); err != nil {
		return nil, err
	}
	operator.Annotations, operator.Status.Versions = annotations, append(operator.Status.Versions, images...)
	return operator, nil
}

// StripPoolForStatus also keeps the maximum number of unavailable machines, the condition Updating, and the
// expiry of machine certificates.
func StripPoolForStatus(obj any) (any, error) {
	pool, ok := obj.(*mcfgv1.MachineConfigPool)
	if !ok {
		return obj, nil
	}
	maxUnavailable := pool.Spec.MaxUnavailable
	if maxUnavailable != nil {
		maxUnavailable.StrVal = cachedText(maxUnavailable.StrVal)
	}
	updating := kept(pool.Status.Conditions, func(c *mcfgv1.MachineConfigPoolCondition) bool { return c.Type == mcfgv1.MachineConfigPoolUpdating })
	for i := range updating {
		c := &updating[i]
		c.Status, c.Reason, c.Message = corev1.ConditionStatus(cachedText(string(c.Status))), cachedText(c.Reason), cachedText(c.Message)
	}
	expirys := slices.Clone(pool.Status.CertExpirys[:min(len(pool.Status.CertExpirys), maxKeptCertificates)])
	for i := range expirys {
		expirys[i].Bundle, expirys[i].Subject = cachedText(expirys[i].Bundle), cachedText(expirys[i].Subject)
	}
	if _, err := StripPool(pool); err != nil {
		return nil, err
	}
	pool.Spec.MaxUnavailable, pool.Status.CertExpirys = maxUnavailable, expirys
	pool.Status.Conditions = append(pool.Status.Conditions, updating...)
	return pool, nil
}

// StripNodeForStatus also keeps the condition NetworkUnavailable.
func StripNodeForStatus(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	network := kept(node.Status.Conditions, func(c *corev1.NodeCondition) bool { return c.Type == corev1.NodeNetworkUnavailable })
	for i := range network {
		c := &network[i]
		c.LastHeartbeatTime = metav1.Time{}
		c.Status, c.Reason, c.Message = corev1.ConditionStatus(cachedText(string(c.Status))), cachedText(c.Reason), cachedText(c.Message)
	}
	if _, err := StripNode(node); err != nil {
		return nil, err
	}
	node.Status.Conditions = append(node.Status.Conditions, network...)
	return node, nil
}

// StripPDBForStatus also keeps the number of pods that must be healthy.
func StripPDBForStatus(obj any) (any, error) {
	budget, ok := obj.(*policyv1.PodDisruptionBudget)
	if !ok {
		return obj, nil
	}
	desired := budget.Status.DesiredHealthy
	stripped, err := StripPDB(budget)
	if result, ok := stripped.(*policyv1.PodDisruptionBudget); ok {
		result.Status.DesiredHealthy = desired
	}
	return stripped, err
}
