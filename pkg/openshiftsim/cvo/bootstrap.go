// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cvo

import (
	"context"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Bootstrap creates the ClusterVersion and the ClusterOperators of a cluster installed with the
// version in options, and the ConfigMap and Deployment of the machine config operator.
func Bootstrap(ctx context.Context, c client.Client, options Options, channel, upstream, clusterID string) error {
	images := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: MachineConfigNamespace, Name: MachineConfigImages},
		Data:       map[string]string{ReleaseVersionKey: options.Installed},
	}
	if err := c.Create(ctx, images); err != nil {
		return fmt.Errorf("creating the release of the machine config operator: %w", err)
	}
	if err := c.Create(ctx, machineConfigDeployment(options.Installed)); err != nil {
		return fmt.Errorf("creating the Deployment of the machine config operator: %w", err)
	}
	for _, operator := range options.Operators {
		if err := bootstrapOperator(ctx, c, options.withDefaults().Clock.Now(), operator.Name, options.Installed); err != nil {
			return err
		}
	}
	version := &configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: Name},
		Spec: configv1.ClusterVersionSpec{
			ClusterID: configv1.ClusterID(clusterID), Channel: channel, Upstream: configv1.URL(upstream),
		},
	}
	if err := c.Create(ctx, version); err != nil {
		return fmt.Errorf("creating the cluster version: %w", err)
	}
	return nil
}

func bootstrapOperator(ctx context.Context, c client.Client, now time.Time, name, version string) error {
	operator := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{
		Name: name, Annotations: map[string]string{"include.release.openshift.io/self-managed-high-availability": "true"},
	}}
	if err := c.Create(ctx, operator); err != nil {
		return fmt.Errorf("creating cluster operator %s: %w", name, err)
	}
	SetVersion(operator, version)
	SetCondition(operator, configv1.OperatorAvailable, configv1.ConditionTrue, "AsExpected", "", now)
	SetCondition(operator, configv1.OperatorProgressing, configv1.ConditionFalse, "AsExpected", "", now)
	SetCondition(operator, configv1.OperatorDegraded, configv1.ConditionFalse, "AsExpected", "", now)
	SetCondition(operator, configv1.OperatorUpgradeable, configv1.ConditionTrue, "AsExpected", "", now)
	if err := c.Status().Update(ctx, operator); err != nil {
		return fmt.Errorf("creating the status of cluster operator %s: %w", name, err)
	}
	return nil
}

// machineConfigDeployment returns the Deployment that clients read the image of the machine config operator
// from. It has no pods: the operator is simulated.
func machineConfigDeployment(version string) *appsv1.Deployment {
	podLabels := map[string]string{"k8s-app": machineConfigOperator}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: MachineConfigNamespace, Name: machineConfigOperator},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: podLabels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: podLabels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: machineConfigOperator, Image: machineConfigImage(version)}}},
			},
		},
	}
}
