// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// A recording of a cluster that runs at ten times the real speed plays back at real speed: the same
// objects at each moment, with all times since the start multiplied by ten.
func TestRecording(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	node := func(name string, readyAfter time.Duration) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, LastTransitionTime: metav1.NewTime(start.Add(readyAfter)), Message: "10:00"},
		}}}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme.Scheme)
	for _, kind := range kinds() {
		if kind.Group != "" && kind.Group != "policy" {
			builder = builder.WithLists(emptyList(kind.GroupVersion().String(), kind.Kind))
		}
	}
	c := builder.WithObjects(node("a", -time.Minute), node("b", 0)).Build()
	var out bytes.Buffer
	r := NewRecorder(c, &out, 10, start)
	record := func(after time.Duration) {
		t.Helper()
		if err := r.Record(t.Context(), start.Add(after)); err != nil {
			t.Fatal(err)
		}
	}
	record(0)
	changed := &corev1.Node{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "a"}, changed); err != nil {
		t.Fatal(err)
	}
	changed.Status = node("a", time.Second).Status
	if err := c.Status().Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), node("b", 0)); err != nil {
		t.Fatal(err)
	}
	record(1500 * time.Millisecond)
	record(3 * time.Second)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}

	var got []string
	for moment, err := range Play(bytes.NewReader(out.Bytes())) {
		if err != nil {
			t.Fatal(err)
		}
		lists := moment.Lists()
		if len(lists) != len(kinds()) {
			t.Fatalf("%d lists", len(lists))
		}
		var nodes []string
		for _, object := range lists[slices.IndexFunc(kinds(), isNode)].Items {
			conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
			condition := conditions[0].(map[string]any)
			nodes = append(nodes, object.GetName()+" "+condition["lastTransitionTime"].(string)+" "+condition["message"].(string))
		}
		got = append(got, moment.Time.Format(time.RFC3339)+": "+strings.Join(nodes, ", "))
	}
	want := []string{
		"2026-11-22T10:00:00Z: a 2026-11-22T09:50:00Z 10:00, b 2026-11-22T10:00:00Z 10:00",
		"2026-11-22T10:00:15Z: a 2026-11-22T10:00:10Z 10:00",
		"2026-11-22T10:00:30Z: a 2026-11-22T10:00:10Z 10:00",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, broken := range map[string][]byte{"no recording": []byte("{}"), "cut off": out.Bytes()[:out.Len()/2]} {
		var last error
		for _, err := range Play(bytes.NewReader(broken)) {
			last = err
		}
		if last == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func isNode(kind schema.GroupVersionKind) bool { return kind.Kind == "Node" }

func emptyList(apiVersion, kind string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(apiVersion)
	list.SetKind(kind + "List")
	return list
}
