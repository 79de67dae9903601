// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
)

// IsActive reports whether an update is or may be pending. A paused update is active. A status without
// sections also counts as active, because nothing is known about the cluster.
func IsActive(status updatev1beta1.UpdateStatusStatus) bool {
	if status.ControlPlane == nil {
		return true
	}
	return slices.ContainsFunc(status.Sections(), func(s *updatev1beta1.Section) bool { return !isSettled(s) })
}

// isSettled reports whether a section is known to have no pending update.
func isSettled(s *updatev1beta1.Section) bool {
	return meta.IsStatusConditionFalse(s.Conditions, updatev1beta1.ConditionUpdatePending)
}

// HasChanged reports whether a status differs from the previous one, ignoring values that change with every
// pass.
func HasChanged(before, after updatev1beta1.UpdateStatusStatus) (bool, error) {
	// Compare the JSON encodings because the API server stores times in seconds.
	previous, err := json.Marshal(significant(before))
	current, err2 := json.Marshal(significant(after))
	if err := errors.Join(err, err2); err != nil {
		return false, fmt.Errorf("encoding the status: %w", err)
	}
	return !bytes.Equal(previous, current), nil
}

// significant returns a status without the values that change with every pass: observation times and
// estimates.
func significant(status updatev1beta1.UpdateStatusStatus) updatev1beta1.UpdateStatusStatus {
	s := *status.DeepCopy()
	s.ObservedTime = nil
	eachInsight(&s, func(i *updatev1beta1.Insight) { i.AcquisitionTime = metav1.Time{} })
	if s.Assessment != nil {
		for i := range s.Assessment.Sources {
			s.Assessment.Sources[i].ObservedTime = nil
		}
		withoutEstimates(s.Assessment.Estimate)
	}
	return s
}

// eachInsight calls the function with each insight of a status, including retained ones.
func eachInsight(status *updatev1beta1.UpdateStatusStatus, with func(*updatev1beta1.Insight)) {
	for _, section := range status.Sections() {
		for _, of := range section.UpdateInformers {
			for i := range of.Insights {
				with(&of.Insights[i])
			}
		}
	}
	for i := range status.AfterUpdate {
		with(&status.AfterUpdate[i].Insight)
	}
}

func withoutEstimates(e *updatev1beta1.Estimate) {
	if e == nil {
		return
	}
	e.Earliest, e.Latest, e.MinSeconds, e.MaxSeconds = nil, nil, 0, 0
	for i := range e.Sections {
		e.Sections[i].Earliest, e.Sections[i].Latest, e.Sections[i].MinSeconds, e.Sections[i].MaxSeconds = nil, nil, 0, 0
	}
}
