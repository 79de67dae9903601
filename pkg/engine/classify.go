// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// Class classifies a condition. Events, metrics, and the status all derive from it.
type Class string

const (
	// ClassWaiting is an unfinished step. Its reason is ReasonStarted until its first answer.
	ClassWaiting Class = "Waiting"
	// ClassUnknown is an unfinished step whose state cannot be determined at present.
	ClassUnknown Class = "Unknown"
	// ClassDone is a step that has completed.
	ClassDone Class = "Done"
	// ClassSkipped is a step that was left out. Its reason says why.
	ClassSkipped Class = "Skipped"
	// ClassFailed is a step that has failed.
	ClassFailed Class = "Failed"
)

// Classify returns the class of a condition.
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
