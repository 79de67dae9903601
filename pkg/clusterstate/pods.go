// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Pod holds the facts about a Pod that matter for drains.
type Pod struct {
	Namespace, Name string
	UID             types.UID
	Labels          labels.Set
	// IgnoredByDrain is set if a drain ignores the pod because it is bound to its node: it belongs to a
	// DaemonSet or the node, or it is the mirror of a static pod. The annotation kubernetes.io/config.source
	// is not trusted, because anyone who creates a pod can set it.
	IgnoredByDrain bool
	// TerminationDeadline is the end of a deleted pod's grace period, or zero if the pod was not deleted.
	TerminationDeadline time.Time
	// RemovedAtOnce is set if the grace period is 0. The API server then removes the pod on deletion even if
	// its containers are still running. Only ListWholePodsOnNode sets this field.
	RemovedAtOnce bool
	// Finalizers keep the pod after its deletion.
	Finalizers []string
	// KeptByFinalizers is set if only finalizers keep the pod after the kubelet is done with it.
	KeptByFinalizers bool
}

// podPageSize is the page size for pods.
const podPageSize = 250

// ListPodsOnNode lists the metadata of the Pods on a node in pages, sorted by namespace and name. The reader
// must read from the API server, because pods are not cached.
func ListPodsOnNode(ctx context.Context, r client.Reader, node string) ([]Pod, error) {
	pods, err := listPods(ctx, r, client.MatchingFields{"spec.nodeName": node})
	if err != nil {
		return nil, fmt.Errorf("listing the pods on node %s: %w", node, err)
	}
	return pods, nil
}

// ListPodsIn lists the metadata of the Pods in a namespace like ListPodsOnNode does.
func ListPodsIn(ctx context.Context, r client.Reader, namespace string) ([]Pod, error) {
	pods, err := listPods(ctx, r, client.InNamespace(namespace))
	if err != nil {
		return nil, fmt.Errorf("listing the pods in namespace %s: %w", namespace, err)
	}
	return pods, nil
}

func listPods(ctx context.Context, r client.Reader, selection client.ListOption) ([]Pod, error) {
	var pods []Pod
	list := metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	err := EachItem(ctx, r, &list, podPageSize, func(pod *metav1.PartialObjectMetadata) error {
		pods = append(pods, podOf(pod))
		return nil
	}, selection)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(pods, func(a, b Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return pods, nil
}

func podOf(pod *metav1.PartialObjectMetadata) Pod {
	facts := Pod{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		Labels: pod.Labels, IgnoredByDrain: ignoredByDrain(pod), Finalizers: pod.Finalizers,
	}
	if pod.DeletionTimestamp != nil {
		facts.TerminationDeadline = pod.DeletionTimestamp.Time
		facts.KeptByFinalizers = pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0
	}
	return facts
}

func ignoredByDrain(pod *metav1.PartialObjectMetadata) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror ||
		slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool {
			return o.APIVersion == "v1" && o.Kind == "Node" || o.Kind == "DaemonSet" && o.Controller != nil && *o.Controller
		})
}
