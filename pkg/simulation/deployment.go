// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// deploymentController maintains the number of pods and the status of Deployments. The pods belong
// directly to the Deployment, with names and labels as if there were a ReplicaSet. Changing the
// template has no effect.
func deploymentController(c client.Client) manager.Controller {
	return manager.Controller{
		Name: "deployment",
		Reads: []manager.Kind{
			{Object: &appsv1.Deployment{}, Requests: manager.Self},
			{Object: &corev1.Pod{}, Requests: ownerOf("Deployment")},
		},
		Reconciler: reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, syncDeployment(ctx, c, request.NamespacedName)
		}),
	}
}

func syncDeployment(ctx context.Context, c client.Client, key client.ObjectKey) error {
	var deployment appsv1.Deployment
	if err := c.Get(ctx, key, &deployment); err != nil {
		return client.IgnoreNotFound(err)
	}
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(key.Namespace)); err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	var replicas, ready int32
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !metav1.IsControlledBy(pod, &deployment) || pod.DeletionTimestamp != nil {
			continue
		}
		replicas++
		if podIsReady(pod) {
			ready++
		}
	}
	for ; replicas < ptr.Deref(deployment.Spec.Replicas, 1); replicas++ {
		if err := c.Create(ctx, podOfDeployment(&deployment)); err != nil {
			return fmt.Errorf("creating a pod of Deployment %s: %w", key, err)
		}
	}
	before := deployment.Status.DeepCopy()
	deployment.Status.ObservedGeneration = deployment.Generation
	deployment.Status.Replicas, deployment.Status.ReadyReplicas, deployment.Status.AvailableReplicas = replicas, ready, ready
	if equality.Semantic.DeepEqual(*before, deployment.Status) {
		return nil
	}
	return c.Status().Update(ctx, &deployment)
}

// templateHash takes the place of the hash that a ReplicaSet adds to the names and labels of its
// pods.
const templateHash = "7c9f4d68b5"

func podOfDeployment(deployment *appsv1.Deployment) *corev1.Pod {
	template := deployment.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.GenerateName = deployment.Namespace, deployment.Name+"-"+templateHash+"-"
	pod.Labels = maps.Clone(pod.Labels)
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = templateHash
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		pod.Spec.TerminationGracePeriodSeconds = new(int64(corev1.DefaultTerminationGracePeriodSeconds))
	}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
	return pod
}
