// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiserverv1 "github.com/openshift/api/apiserver/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// pageReader lists objects in pages. Like a decoder, it leaves fields unchanged that a page does not set.
type pageReader struct {
	client.Reader
	pages int
	add   func(list client.ObjectList, page int)
}

func (r pageReader) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var options client.ListOptions
	options.ApplyOptions(opts)
	page := len(options.Continue)
	r.add(list, page)
	if page+1 < r.pages {
		list.SetContinue(options.Continue + "x")
	}
	return nil
}

func TestListDeprecatedAPIs_reads_pages(t *testing.T) {
	t.Parallel()
	names := [][]string{{"c", "b"}, {}, {"a"}}
	found, err := clusterstate.ListDeprecatedAPIs(t.Context(), pageReader{pages: 3, add: func(list client.ObjectList, page int) {
		for _, name := range names[page] {
			count := apiserverv1.APIRequestCount{ObjectMeta: metav1.ObjectMeta{Name: name}}
			count.Status.RemovedInRelease = "1.40"
			counts := list.(*apiserverv1.APIRequestCountList)
			counts.Items = append(counts.Items, count)
		}
	}})
	var got []string
	for _, api := range found {
		got = append(got, api.Resource)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, got); diff != "" || err != nil {
		t.Errorf("APIs (-want +got), %v:\n%s", err, diff)
	}
}

func TestListWholePodsOnNode_reads_pages(t *testing.T) {
	t.Parallel()
	pods := [][]corev1.Pod{{shopPod("b", nil), shopPod("c", new(int64(0)))}, {}, {shopPod("a", new(int64(1)))}}
	found, err := clusterstate.ListWholePodsOnNode(t.Context(), pageReader{pages: 3, add: func(list client.ObjectList, page int) {
		all := list.(*corev1.PodList)
		all.Items = append(all.Items, pods[page]...)
	}}, "worker-0")
	got := map[string]bool{}
	for _, pod := range found {
		got[pod.Name] = pod.RemovedAtOnce
	}
	if diff := cmp.Diff(map[string]bool{"a": false, "b": false, "c": true}, got); diff != "" || err != nil || len(found) != 3 || found[0].Name != "a" {
		t.Errorf("pods %v (-want +got), %v:\n%s", found, err, diff)
	}
}

// shopPod returns a pod with the given grace period in seconds.
func shopPod(name string, grace *int64) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PodSpec{TerminationGracePeriodSeconds: grace}}
}
