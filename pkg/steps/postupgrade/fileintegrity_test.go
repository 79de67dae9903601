// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package postupgrade_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/postupgrade"
)

// Two attempts.
const (
	first  = "2ab1/4.4.6/1"
	second = "2ab1/4.4.6/2"
)

const (
	reinitKey = "file-integrity.openshift.io/re-init"
	markKey   = "upgrade.managed.openshift.io/re-init-for"
)

var group = schema.GroupVersion{Group: "fileintegrity.openshift.io", Version: "v1alpha1"}

func integrity(namespace, name string, annotations map[string]string) client.Object {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(group.WithKind("FileIntegrity"))
	object.SetNamespace(namespace)
	object.SetName(name)
	object.SetAnnotations(annotations)
	_ = unstructured.SetNestedField(object.Object, "0.1", "spec", "config", "gracePeriod")
	return object
}

func serve(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) postupgrade.Cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(group.WithKind("FileIntegrity"), &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(group.WithKind("FileIntegrityList"), &unstructured.UnstructuredList{})
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
	return postupgrade.Cluster{Live: c, Writer: c}
}

func reinit(t *testing.T, on postupgrade.Cluster, attempt string) engine.Result {
	t.Helper()
	result, err := postupgrade.Run(on, attempt, []string{"FileIntegrityReinit"})(t.Context(), engine.Run{Started: noon, Since: noon, Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

const namespace = "openshift-file-integrity"

func TestFileIntegrityReinit(t *testing.T) {
	t.Parallel()
	asked := func(attempt string) string {
		return `{"metadata":{"annotations":{"` + reinitKey + `":"","` + markKey + `":"` + attempt + `"}}}`
	}
	for name, tc := range map[string]struct {
		objects []client.Object
		attempt string
		want    string
		patches map[string]string
	}{
		"no FileIntegrity": {want: "nothing to do, there is no FileIntegrity in namespace openshift-file-integrity"},
		"all are reinitialized": {
			objects: []client.Object{integrity(namespace, "workers", nil), integrity(namespace, "masters", map[string]string{"a": "b"})},
			want:    "requested new databases of masters, workers",
			patches: map[string]string{"masters": asked(first), "workers": asked(first)},
		},
		"other namespaces": {
			objects: []client.Object{integrity("shop", "workers", nil)},
			want:    "nothing to do, there is no FileIntegrity in namespace openshift-file-integrity",
		},
		"reinitialized once": {
			objects: []client.Object{integrity(namespace, "workers", map[string]string{markKey: first})},
			want:    "requested new databases of workers",
		},
		"another attempt reinitializes again": {
			objects: []client.Object{integrity(namespace, "workers", map[string]string{markKey: first})},
			attempt: second,
			want:    "requested new databases of workers",
			patches: map[string]string{"workers": asked(second)},
		},
		"request for some nodes becomes one for all": {
			objects: []client.Object{integrity(namespace, "workers", map[string]string{reinitKey: "worker-1"})},
			want:    "requested new databases of workers",
			patches: map[string]string{"workers": asked(first)},
		},
		"many are not all named": {
			objects: []client.Object{
				integrity(namespace, "d", map[string]string{markKey: first}), integrity(namespace, "c", map[string]string{markKey: first}),
				integrity(namespace, "b", map[string]string{markKey: first}), integrity(namespace, "a", map[string]string{markKey: first}),
			},
			want: "requested new databases of a, b, c and 1 more",
		},
		"FileIntegrity being deleted": {
			objects: []client.Object{deleted(integrity(namespace, "workers", nil))},
			want:    "nothing to do, there is no FileIntegrity in namespace openshift-file-integrity",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			patches := map[string]string{}
			on := serve(t, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
				patches[object.GetName()] += withoutResourceVersion(t, object, patch)
				return c.Patch(ctx, object, patch, opts...)
			}}, tc.objects...)
			attempt := first
			if tc.attempt != "" {
				attempt = tc.attempt
			}
			if got, want := reinit(t, on, attempt), engine.Done("%s", "FileIntegrityReinit: "+tc.want); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if tc.patches == nil {
				tc.patches = map[string]string{}
			}
			if diff := cmp.Diff(tc.patches, patches); diff != "" {
				t.Errorf("patches (-want +got):\n%s", diff)
			}
		})
	}
}

func deleted(object client.Object) client.Object {
	now := metav1.NewTime(noon)
	object.SetDeletionTimestamp(&now)
	object.SetFinalizers([]string{"example.com/held"})
	return object
}

func withoutResourceVersion(t *testing.T, object client.Object, patch client.Patch) string {
	t.Helper()
	data, err := patch.Data(object)
	if err != nil {
		t.Fatal(err)
	}
	var content map[string]any
	if err := json.Unmarshal(data, &content); err != nil {
		t.Fatal(err)
	}
	metadata, _ := content["metadata"].(map[string]any)
	if version, _ := metadata["resourceVersion"].(string); version == "" {
		t.Errorf("a patch without the resource version as its precondition: %s", data)
	}
	delete(metadata, "resourceVersion")
	rest, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	return string(rest)
}

func TestFileIntegrity_without_the_operator_is_skipped(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"the kind was never known": &meta.NoKindMatchError{GroupKind: group.WithKind("FileIntegrity").GroupKind()},
		"kind not served":          apierrors.NewNotFound(group.WithResource("fileintegrities").GroupResource(), ""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on := serve(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return err }})
			want := engine.Done("FileIntegrityReinit: nothing to do, the File Integrity Operator is not installed")
			if got := reinit(t, on, first); got != want {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// Each write fails in turn, whether or not it was applied. The next pass completes the missing
// work, and no database is initialized twice.
func TestFileIntegrity_retries_each_failed_write(t *testing.T) {
	t.Parallel()
	lost := errors.New("the connection was lost")
	conflict := apierrors.NewConflict(group.WithResource("fileintegrities").GroupResource(), "a", errors.New("it was modified"))
	for name, fails := range map[string]struct {
		err     error
		applied bool
	}{
		"refused": {lost, false}, "applied, but not answered": {lost, true}, "in conflict": {conflict, false},
	} {
		for nth := range 3 {
			t.Run(fmt.Sprintf("write %d is %s", nth+1, name), func(t *testing.T) {
				t.Parallel()
				writes, remade := 0, map[string]int{}
				on := serve(t, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
					failing := writes == nth
					writes++
					if failing && !fails.applied {
						return fails.err
					}
					if err := c.Patch(ctx, object, patch, opts...); err != nil {
						return err
					}
					remade[object.GetName()]++
					remake(ctx, t, c, object)
					if failing {
						return fails.err
					}
					return nil
				}}, integrity(namespace, "a", nil), integrity(namespace, "b", nil), integrity(namespace, "c", nil))

				if got := reinit(t, on, first); got.Passed() || got.Reason() != "NotDone" || !strings.Contains(got.Message(), "annotating FileIntegrity") {
					t.Errorf("the first look: got %+v", got)
				}
				for range 2 {
					if got, want := reinit(t, on, first), engine.Done("FileIntegrityReinit: requested new databases of a, b, c"); got != want {
						t.Errorf("a later look: got %+v", got)
					}
				}
				if diff := cmp.Diff(map[string]int{"a": 1, "b": 1, "c": 1}, remade); diff != "" {
					t.Errorf("databases made anew (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// remake acts like the File Integrity Operator: it removes the annotation.
func remake(ctx context.Context, t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	done := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+reinitKey+`":null}}}`))
	kept := &unstructured.Unstructured{}
	kept.SetGroupVersionKind(group.WithKind("FileIntegrity"))
	kept.SetNamespace(object.GetNamespace())
	kept.SetName(object.GetName())
	if err := c.Patch(ctx, kept, done); err != nil {
		t.Error(err)
	}
}

func TestFileIntegrity_reads_again_after_a_conflict(t *testing.T) {
	t.Parallel()
	changed := false
	on := serve(t, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
		if !changed {
			changed = true
			remake(ctx, t, c, object)
		}
		return c.Patch(ctx, object, patch, opts...)
	}}, integrity(namespace, "a", map[string]string{reinitKey: "worker-1"}))
	if got := reinit(t, on, first); got.Passed() || !strings.Contains(got.Message(), "annotating FileIntegrity a: ") {
		t.Errorf("the first look: got %+v", got)
	}
	if got := reinit(t, on, first); !got.Passed() {
		t.Errorf("the second look: got %+v", got)
	}
}
