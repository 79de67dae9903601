// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"
)

// podStart matches the beginning of a pod as written by API servers.
var podStart = regexp.MustCompile(`^\{\s*"apiVersion"\s*:\s*"v1"\s*,\s*"kind"\s*:\s*"Pod"`)

func isPodJSON(value []byte) bool { return podStart.Match(value[:min(len(value), 256)]) }

// podFields contains the fields kept of a pod. Most objects in a dump are pods, and containers make up most
// of a pod.
type podFields struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		NodeName                      string `json:"nodeName"`
		TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds"`
	} `json:"spec"`
	Status struct {
		Phase      corev1.PodPhase `json:"phase"`
		Conditions []struct {
			LastTransitionTime metav1.Time `json:"lastTransitionTime"`
		} `json:"conditions"`
	} `json:"status"`
}

// podBytes is the approximate size of a pod in memory.
const podBytes = 2 << 10

// addPod adds a pod.
func (d *Dump) addPod(name string, value []byte) error {
	var fields podFields
	if err := kjson.UnmarshalCaseSensitivePreserveInts(value, &fields); err != nil {
		return err
	}
	m := &fields.Metadata
	if m.Name == "" {
		d.problem(name, "Pod", "is broken: an object without a name")
		return nil
	}
	newest := m.CreationTimestamp.Time
	later := func(at time.Time) {
		if at.After(newest) {
			newest = at
		}
	}
	for i := range m.ManagedFields {
		if at := m.ManagedFields[i].Time; at != nil {
			later(at.Time)
		}
	}
	for i := range fields.Status.Conditions {
		later(fields.Status.Conditions[i].LastTransitionTime.Time)
	}
	pod := &corev1.Pod{ObjectMeta: *m}
	pod.ManagedFields, pod.Annotations = nil, nil
	if mirror, found := m.Annotations[corev1.MirrorPodAnnotationKey]; found {
		pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: mirror}
	}
	pod.Spec.NodeName, pod.Spec.TerminationGracePeriodSeconds = fields.Spec.NodeName, fields.Spec.TerminationGracePeriodSeconds
	pod.Status.Phase = fields.Status.Phase
	d.kept += podBytes
	d.store(corev1.SchemeGroupVersion.WithKind("Pod"), types.NamespacedName{Namespace: m.Namespace, Name: m.Name}, pod, newest)
	return nil
}
