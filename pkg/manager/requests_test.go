// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

func TestRequests(t *testing.T) {
	t.Parallel()
	pod := func(namespace, name string) client.Object {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	objects := fake.NewClientBuilder().WithObjects(pod("a", "one"), pod("a", "two"), pod("b", "one")).Build()
	unreadable := interceptor.NewClient(objects, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("unreadable")
		},
	})
	isOne := func(pod *corev1.Pod) bool { return pod.Name == "one" }
	for name, tc := range map[string]struct {
		reader  client.Reader
		include func(*corev1.Pod) bool
		options []client.ListOption
		want    []string
	}{
		"every object":           {reader: objects, want: []string{"a/one", "a/two", "b/one"}},
		"objects of a namespace": {reader: objects, options: []client.ListOption{client.InNamespace("a")}, want: []string{"a/one", "a/two"}},
		"selected objects":       {reader: objects, include: isOne, want: []string{"a/one", "b/one"}},
		"selected of one":        {reader: objects, include: isOne, options: []client.ListOption{client.InNamespace("b")}, want: []string{"b/one"}},
		"unreadable objects":     {reader: unreadable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, request := range manager.Requests(t.Context(), tc.reader, &corev1.PodList{}, tc.include, tc.options...) {
				got = append(got, request.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}
