// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity_test

import (
	"context"
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/capacity"
)

// FuzzMachineSets uses a random MachineSet. The step must not panic, and creates at most one extra
// MachineSet.
func FuzzMachineSets(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"metadata":{"name":"a"},"spec":{"replicas":1,"template":{"metadata":{"labels":{"machine.openshift.io/cluster-api-machine-role":"worker"}}}}}`,
		`{"metadata":{"name":7,"labels":[],"deletionTimestamp":"soon"},"spec":"x","status":{"errorMessage":{}}}`,
		`{"metadata":{"name":""},"spec":{"replicas":"1","template":{"metadata":{"labels":{"machine.openshift.io/cluster-api-machine-role":"worker"}},"spec":7}}}`,
		`{"metadata":{"name":"...","labels":{"upgrade.managed.openshift.io/extra-node-of":""}},"spec":{"selector":[],"template":{"metadata":{"labels":{"machine.openshift.io/cluster-api-machine-role":"worker","x":{}}},"spec":{"metadata":[]}}}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var object map[string]any
		if json.Unmarshal(text, &object) != nil || object == nil {
			t.Skip()
		}
		w := newWorld(t)
		made := 0
		live := interceptor.NewClient(w.User, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if sets, is := list.(*unstructured.UnstructuredList); is {
					found := unstructured.Unstructured{Object: runtime.DeepCopyJSON(object)}
					found.SetGroupVersionKind(sets.GroupVersionKind())
					sets.Items = []unstructured.Unstructured{found}
					return nil
				}
				return c.List(ctx, list, opts...)
			},
			Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
				made++
				return nil
			},
			Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return nil },
		})
		w.operator = &capacity.ExtraNodes{Client: live, Live: live}
		_, _ = w.call(w.add(), 0)
		_, _ = w.call(w.remove(), 0)
		if made > 1 {
			t.Errorf("%d are made", made)
		}
	})
}
