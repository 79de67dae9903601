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

// ListWholePodsOnNode is ListPodsOnNode for callers that need the specs of the pods, too.
func ListWholePodsOnNode(ctx context.Context, r client.Reader, node string) ([]Pod, error) {
	var pods []Pod
	page := corev1.PodList{}
	for more := true; more; more = page.Continue != "" {
		from := page.Continue
		page = corev1.PodList{}
		if err := r.List(ctx, &page, client.MatchingFields{"spec.nodeName": node}, client.Limit(podPageSize), client.Continue(from)); err != nil {
			return nil, fmt.Errorf("listing the pods on node %s: %w", node, err)
		}
		for i := range page.Items {
			facts := podOf(&metav1.PartialObjectMetadata{ObjectMeta: page.Items[i].ObjectMeta})
			grace := page.Items[i].Spec.TerminationGracePeriodSeconds
			facts.RemovedAtOnce = grace != nil && *grace <= 0
			pods = append(pods, facts)
		}
	}
	slices.SortFunc(pods, func(a, b Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return pods, nil
}
