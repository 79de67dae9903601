// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recording records the state of a cluster during an update and plays it back, so that
// programs that assess updates can be tested at every point of a real one.
//
// A recording is a gzip file with one JSON document per sample. Each sample contains the objects
// that changed since the previous one. The timestamps are as in a cluster at real speed: an
// accelerated dev cluster is stretched.
package recording

import (
	"compress/gzip"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/timescale"
)

// Workload holds the manifests of the workload on a cluster while its update is recorded.
//
//go:embed workload.yaml
var Workload embed.FS

// kinds returns the recorded kinds, the ones that "oc update status" reads.
func kinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Group: "config.openshift.io", Version: "v1", Kind: "ClusterVersion"},
		{Group: "config.openshift.io", Version: "v1", Kind: "ClusterOperator"},
		{Group: "machineconfiguration.openshift.io", Version: "v1", Kind: "MachineConfigPool"},
		{Group: "machineconfiguration.openshift.io", Version: "v1", Kind: "MachineConfig"},
		{Group: "machine.openshift.io", Version: "v1beta1", Kind: "MachineSet"},
		{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
		{Version: "v1", Kind: "Node"},
		{Version: "v1", Kind: "Pod"},
	}
}

// sample holds the changes since the previous sample.
type sample struct {
	Time    time.Time                    `json:"time"`
	Changed []*unstructured.Unstructured `json:"changed,omitempty"`
	Removed []string                     `json:"removed,omitempty"` // keys
}

// keyOf identifies an object in a recording.
func keyOf(object *unstructured.Unstructured) string {
	return object.GetKind() + "/" + object.GetNamespace() + "/" + object.GetName()
}

// Recorder writes a recording.
type Recorder struct {
	reader   client.Reader
	speed    timescale.Speed
	start    time.Time
	out      *gzip.Writer
	versions map[string]string // resource version by key
}

// NewRecorder returns a recorder for a cluster that runs at the given speed. Times before and after
// start are stretched relative to start.
func NewRecorder(reader client.Reader, out io.Writer, speed timescale.Speed, start time.Time) *Recorder {
	return &Recorder{reader: reader, speed: speed, start: start, out: gzip.NewWriter(out), versions: map[string]string{}}
}

// Record appends a sample.
func (r *Recorder) Record(ctx context.Context, now time.Time) error {
	taken, versions := sample{Time: r.stretch(now)}, map[string]string{}
	for _, kind := range kinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := r.reader.List(ctx, list); err != nil {
			return fmt.Errorf("recording %ss: %w", kind.Kind, err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			key, version := keyOf(object), object.GetResourceVersion()
			if versions[key] = version; r.versions[key] != version {
				taken.Changed = append(taken.Changed, r.recorded(object))
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.versions)) {
		if _, exists := versions[key]; !exists {
			taken.Removed = append(taken.Removed, key)
		}
	}
	r.versions = versions
	if err := json.NewEncoder(r.out).Encode(taken); err != nil {
		return fmt.Errorf("writing the recording: %w", err)
	}
	return nil
}

// recorded returns an object with its times stretched to real speed. A pod being deleted keeps its
// grace period, so its deletion timestamp stays at the end of that period.
func (r *Recorder) recorded(object *unstructured.Unstructured) *unstructured.Unstructured {
	object.SetManagedFields(nil)
	at, seconds := object.GetDeletionTimestamp(), object.GetDeletionGracePeriodSeconds()
	object.Object = r.stretchAll(object.Object).(map[string]any)
	if at != nil && seconds != nil {
		grace := time.Duration(*seconds) * time.Second
		object.SetDeletionTimestamp(new(metav1.NewTime(r.stretch(at.Add(-grace)).Add(grace))))
	}
	return object
}

// Close completes the recording.
func (r *Recorder) Close() error {
	if err := r.out.Close(); err != nil {
		return fmt.Errorf("writing the recording: %w", err)
	}
	return nil
}

// stretch converts a time of the cluster to real speed.
func (r *Recorder) stretch(t time.Time) time.Time {
	return r.start.Add(time.Duration(float64(t.Sub(r.start)) * float64(r.speed))).UTC()
}

// stretchAll stretches all times in a value.
func (r *Recorder) stretchAll(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name := range value {
			value[name] = r.stretchAll(value[name])
		}
	case []any:
		for i := range value {
			value[i] = r.stretchAll(value[i])
		}
	case string:
		if t, err := time.Parse(time.RFC3339, value); err == nil {
			return r.stretch(t).Format(time.RFC3339)
		}
	}
	return value
}

// Moment is the state of a cluster at one sample.
type Moment struct {
	Time    time.Time
	objects map[string]*unstructured.Unstructured
}

// Lists returns the objects by kind, like a folder of files written by "oc get -o json". Kinds
// without objects have an empty list.
func (m Moment) Lists() []*unstructured.UnstructuredList {
	var lists []*unstructured.UnstructuredList
	for _, kind := range kinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		for _, key := range slices.Sorted(maps.Keys(m.objects)) {
			if object := m.objects[key]; object.GroupVersionKind() == kind {
				list.Items = append(list.Items, *object)
			}
		}
		lists = append(lists, list)
	}
	return lists
}

// Play yields the moments of a recording. Each moment is valid until the next one is yielded.
func Play(in io.Reader) iter.Seq2[Moment, error] {
	return func(yield func(Moment, error) bool) {
		m := Moment{objects: map[string]*unstructured.Unstructured{}}
		unzipped, err := gzip.NewReader(in)
		if err != nil {
			yield(m, fmt.Errorf("reading the recording: %w", err))
			return
		}
		for decoder := json.NewDecoder(unzipped); ; {
			var next sample
			if err := decoder.Decode(&next); err != nil {
				if !errors.Is(err, io.EOF) {
					yield(m, fmt.Errorf("reading the recording: %w", err))
				}
				return
			}
			m.Time = next.Time
			for _, object := range next.Changed {
				m.objects[keyOf(object)] = object
			}
			for _, key := range next.Removed {
				delete(m.objects, key)
			}
			if !yield(m, nil) {
				return
			}
		}
	}
}
