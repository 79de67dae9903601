// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
)

// IsActive reports whether an update is pending, or it is not known whether one is. A paused update is
// active. The conditions of a cluster without sections are not known.
func IsActive(status v1beta1.UpdateStatusStatus) bool {
	if status.ControlPlane == nil {
		return true
	}
	settled := meta.IsStatusConditionFalse(status.ControlPlane.Conditions, v1beta1.ConditionUpdatePending)
	for i := range status.WorkerPools {
		settled = settled && meta.IsStatusConditionFalse(status.WorkerPools[i].Conditions, v1beta1.ConditionUpdatePending)
	}
	return !settled
}

// HasChanged reports whether a status differs from a previous one other than by what changes although
// nothing happens.
func HasChanged(before, after v1beta1.UpdateStatusStatus) (bool, error) {
	// As JSON, since the API server keeps times by the second.
	previous, err := json.Marshal(significant(before))
	current, err2 := json.Marshal(significant(after))
	if err := errors.Join(err, err2); err != nil {
		return false, fmt.Errorf("encoding the status: %w", err)
	}
	return !bytes.Equal(previous, current), nil
}

// significant returns a status without what changes although nothing happens: times of observation, and
// estimates, which are confirmed together with the status.
func significant(status v1beta1.UpdateStatusStatus) v1beta1.UpdateStatusStatus {
	s := *status.DeepCopy()
	s.ObservedTime = nil
	if s.ControlPlane != nil {
		withoutTimes(s.ControlPlane.UpdateInformers)
	}
	for i := range s.WorkerPools {
		withoutTimes(s.WorkerPools[i].UpdateInformers)
	}
	for i := range s.AfterUpdate {
		s.AfterUpdate[i].Insight.AcquisitionTime = metav1.Time{}
	}
	if s.Assessment != nil {
		for i := range s.Assessment.Sources {
			s.Assessment.Sources[i].ObservedTime = nil
		}
		withoutEstimates(s.Assessment.Estimate)
	}
	return s
}

func withoutTimes(informers []v1beta1.InformerInsights) {
	for i := range informers {
		for j := range informers[i].Insights {
			informers[i].Insights[j].AcquisitionTime = metav1.Time{}
		}
	}
}

func withoutEstimates(e *v1beta1.Estimate) {
	if e == nil {
		return
	}
	e.Earliest, e.Latest, e.MinSeconds, e.MaxSeconds = nil, nil, 0, 0
	for i := range e.Sections {
		e.Sections[i].Earliest, e.Sections[i].Latest, e.Sections[i].MinSeconds, e.Sections[i].MaxSeconds = nil, nil, 0, 0
	}
}
