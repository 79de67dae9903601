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

// Pod holds what a drain needs to know of a Pod.
type Pod struct {
	Namespace, Name string
	UID             types.UID
	Labels          labels.Set
	// IgnoredByDrain reports that a drain leaves the pod alone, because it comes and goes with its
	// node: a DaemonSet or the node owns it, or it is the mirror of a static pod. The annotation
	// kubernetes.io/config.source does not count: any creator of a pod may set it.
	IgnoredByDrain bool
	// TerminationDeadline is the end of the grace period of a deleted pod; zero if the pod was not
	// deleted.
	TerminationDeadline time.Time
	// RemovedAtOnce reports that the grace period of the pod is 0: the API server removes it when it
	// is deleted, whether its containers have ended or not. Only ListWholePodsOnNode reads it.
	RemovedAtOnce bool
	// Finalizers keep the pod after its deletion.
	Finalizers []string
	// KeptByFinalizers reports that the kubelet is finished with the pod: finalizers alone keep it.
	KeptByFinalizers bool
}

// podPageSize is the number of pods in one page of a list.
const podPageSize = 250

// ListPodsOnNode lists the metadata of the Pods on a node, page by page, and returns them sorted by
// namespace and name. The reader must read from the API server: pods are not cached.
func ListPodsOnNode(ctx context.Context, r client.Reader, node string) ([]Pod, error) {
	pods, err := listPods(ctx, r, client.MatchingFields{"spec.nodeName": node})
	if err != nil {
		return nil, fmt.Errorf("listing the pods on node %s: %w", node, err)
	}
	return pods, nil
}

// ListPodsIn lists the metadata of the Pods in a namespace, as ListPodsOnNode does.
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
