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

// Pod is what a Pod says that is in the way of a drain, or could be.
type Pod struct {
	Namespace, Name string
	UID             types.UID
	Labels          labels.Set
	// IgnoredByDrain says that the pod comes and goes with its node, so that a drain
	// leaves it alone: it is a DaemonSet's, a static one, or the mirror of one.
	IgnoredByDrain bool
	// TerminationDeadline is when the pod, which was deleted, should be gone, its grace
	// period included; zero if it was not deleted.
	TerminationDeadline time.Time
	// RemovedAtOnce reports that the grace period of the pod is 0: the API server removes it when it
	// is deleted, whether its containers have ended or not. Only ListWholePodsOnNode reads it.
	RemovedAtOnce bool
	// Finalizers are what is waited for before it goes, beside the kubelet.
	Finalizers []string
	// KeptByFinalizers says that the kubelet is not waited for any more: of a pod that
	// is still there, it is the finalizers alone that keep it.
	KeptByFinalizers bool
}

// podPageSize is how many pods are asked for at a time.
const podPageSize = 250

// ListPodsOnNode asks for the metadata of the Pods that are on a node, page by page,
// and returns them sorted by namespace and name. The reader should be one that
// asks the API server: pods are cached nowhere.
func ListPodsOnNode(ctx context.Context, r client.Reader, node string) ([]Pod, error) {
	var pods []Pod
	page := metav1.PartialObjectMetadataList{}
	for more := true; more; more = page.Continue != "" {
		from := page.Continue
		page = metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		if err := r.List(ctx, &page, client.MatchingFields{"spec.nodeName": node}, client.Limit(podPageSize), client.Continue(from)); err != nil {
			return nil, fmt.Errorf("listing the pods on node %s: %w", node, err)
		}
		for i := range page.Items {
			pods = append(pods, podOf(&page.Items[i]))
		}
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
