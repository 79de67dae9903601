// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ListWholePodsOnNode is like ListPodsOnNode but also reads the specs of the pods.
func ListWholePodsOnNode(ctx context.Context, r client.Reader, node string) ([]Pod, error) {
	var pods []Pod
	err := EachItem(ctx, r, &corev1.PodList{}, podPageSize, func(pod *corev1.Pod) error {
		facts := podOf(&metav1.PartialObjectMetadata{ObjectMeta: pod.ObjectMeta})
		grace := pod.Spec.TerminationGracePeriodSeconds
		facts.RemovedAtOnce = grace != nil && *grace <= 0
		pods = append(pods, facts)
		return nil
	}, client.MatchingFields{"spec.nodeName": node})
	if err != nil {
		return nil, fmt.Errorf("listing the pods on node %s: %w", node, err)
	}
	slices.SortFunc(pods, func(a, b Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return pods, nil
}
