// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// reported returns the work that upgrades a cluster, with the answer of its agent, as an API server sends it.
func reported(tb testing.TB, cluster string) []byte {
	tb.Helper()
	run, mcu := testRun(), testUpgrade()
	run.Namespace = cluster
	work, err := UpgradeWork(run, mcu, FormApply, time.Time{}, clusterstate.Release{})
	if err != nil {
		tb.Fatal(err)
	}
	condition := func(name string) metav1.Condition {
		return metav1.Condition{Type: name, Status: metav1.ConditionTrue, Reason: name + "Complete", Message: "Apply manifest work complete"}
	}
	work.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "work", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{}}`)}}}
	work.Status.Conditions = []metav1.Condition{condition("Applied"), condition("Available")}
	for i := range work.Spec.ManifestConfigs {
		config := &work.Spec.ManifestConfigs[i]
		manifest := workv1.ManifestCondition{
			ResourceMeta: workv1.ManifestResourceMeta{Group: config.ResourceIdentifier.Group, Resource: config.ResourceIdentifier.Resource, Name: config.ResourceIdentifier.Name},
			Conditions:   []metav1.Condition{condition("Applied"), condition("Available"), condition("StatusFeedbackSynced")},
		}
		for _, path := range config.FeedbackRules[0].JsonPaths {
			manifest.StatusFeedbacks.Values = append(manifest.StatusFeedbacks.Values, workv1.FeedbackValue{
				Name: path.Name, Value: workv1.FieldValue{Type: workv1.String, String: new(strings.Repeat(path.Name, 2))},
			})
		}
		work.Status.ResourceStatus.Manifests = append(work.Status.ResourceStatus.Manifests, manifest)
	}
	data, err := json.Marshal(work)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func decodeWork(tb testing.TB, data []byte) *workv1.ManifestWork {
	tb.Helper()
	work := &workv1.ManifestWork{}
	if err := json.Unmarshal(data, work); err != nil {
		tb.Fatal(err)
	}
	return work
}

func trim(tb testing.TB, work *workv1.ManifestWork) *workv1.ManifestWork {
	tb.Helper()
	trimmed, err := TrimWork(work)
	if err != nil {
		tb.Fatal(err)
	}
	return trimmed.(*workv1.ManifestWork) //nolint:forcetypeassert // a panic fails the test
}

// Works of two clusters share what is equal, and nothing of them changes but the managed fields.
func TestTrimWork(t *testing.T) {
	t.Parallel()
	data := reported(t, "store-0001")
	one := trim(t, decodeWork(t, data))
	runtime.GC() // what is shared is known as long as a work has it
	two := trim(t, decodeWork(t, reported(t, "store-0002")))
	if &one.Spec.ManifestConfigs[0] != &two.Spec.ManifestConfigs[0] || &one.Spec.Workload.Manifests[0].Raw[0] != &two.Spec.Workload.Manifests[0].Raw[0] {
		t.Error("the works have a spec each")
	}
	value := func(w *workv1.ManifestWork) *byte {
		return unsafe.StringData(*w.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values[0].Value.String)
	}
	if value(one) != value(two) || unsafe.StringData(one.Status.Conditions[0].Message) != unsafe.StringData(two.Status.Conditions[0].Message) {
		t.Error("the works have a copy each of what their agents report")
	}
	want := decodeWork(t, data)
	want.ManagedFields = nil
	if diff := cmp.Diff(want, one); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	other := decodeWork(t, data)
	other.Spec.ManifestConfigs[0].FeedbackRules[0].JsonPaths[0].Path = ".other"
	if trim(t, other); other.Spec.ManifestConfigs[0].FeedbackRules[0].JsonPaths[0].Path != ".other" || one.Spec.ManifestConfigs[0].FeedbackRules[0].JsonPaths[0].Path == ".other" {
		t.Error("works with other specs share them")
	}
}

// maxTrimmed limits the memory in bytes of a trimmed work.
const maxTrimmed = 6_000

// BenchmarkTrimWork reports the memory of a work in the cache, with and without its transform.
func BenchmarkTrimWork(b *testing.B) {
	for name, trimmed := range map[string]bool{"trimmed": true, "decoded": false} {
		b.Run(name, func(b *testing.B) {
			const works = 2000
			data := reported(b, "store-0001")
			cached := make([]*workv1.ManifestWork, works)
			for b.Loop() {
				clear(cached)
				before := heap()
				for i := range cached {
					if cached[i] = decodeWork(b, data); trimmed {
						cached[i] = trim(b, cached[i])
					}
				}
				size := float64(heap()-before) / works
				b.ReportMetric(size, "B/work")
				if trimmed && size > maxTrimmed {
					b.Errorf("a work takes %.0f B, limit %d B", size, maxTrimmed)
				}
			}
			runtime.KeepAlive(cached)
			runtime.KeepAlive(data)
		})
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
