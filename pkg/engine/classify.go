// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// Class says what a condition means. It is the only classification of conditions: events, metrics, and the status
// derive from it.
type Class string

const (
	// ClassWaiting is a step that is not finished. Its reason is ReasonStarted if it has not
	// answered yet.
	ClassWaiting Class = "Waiting"
	// ClassUnknown is a step that is not finished and whose state cannot be determined at present.
	ClassUnknown Class = "Unknown"
	// ClassDone is a step that is done.
	ClassDone Class = "Done"
	// ClassSkipped is a step that was left out; the reason says why.
	ClassSkipped Class = "Skipped"
	// ClassFailed is a step that has failed.
	ClassFailed Class = "Failed"
)

// Classify returns what a condition means.
func Classify(c history.StepCondition) Class {
	switch {
	case !isFinished(c) && c.Status == metav1.ConditionUnknown:
		return ClassUnknown
	case !isFinished(c):
		return ClassWaiting
	case c.Status == metav1.ConditionFalse:
		return ClassFailed
	case c.Reason == ReasonDone:
		return ClassDone
	}
	return ClassSkipped
}
