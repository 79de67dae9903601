// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cvo

import (
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SetCondition sets a condition of a ClusterOperator. The transition time changes only with the
// status.
func SetCondition(operator *configv1.ClusterOperator, kind configv1.ClusterStatusConditionType, status configv1.ConditionStatus, reason, message string, now time.Time) {
	operator.Status.Conditions = upsertCondition(operator.Status.Conditions, kind, status, reason, message, now)
}

// updating is the reason of a ClusterOperator that is being updated.
const updating = "Updating"

// SetUpdating reports that an operator is being updated to a release.
func SetUpdating(operator *configv1.ClusterOperator, release string, now time.Time) {
	SetCondition(operator, configv1.OperatorProgressing, configv1.ConditionTrue, updating, "Working towards "+release, now)
}

// IsUpdating reports whether an operator is being updated.
func IsUpdating(operator *configv1.ClusterOperator) bool {
	c := findCondition(operator.Status.Conditions, configv1.OperatorProgressing)
	return c != nil && c.Status == configv1.ConditionTrue && c.Reason == updating
}

func set(version *configv1.ClusterVersion, kind configv1.ClusterStatusConditionType, status configv1.ConditionStatus, reason, message string, now time.Time) {
	version.Status.Conditions = upsertCondition(version.Status.Conditions, kind, status, reason, message, now)
}

func remove(version *configv1.ClusterVersion, kind configv1.ClusterStatusConditionType) {
	version.Status.Conditions = slices.DeleteFunc(version.Status.Conditions,
		func(c configv1.ClusterOperatorStatusCondition) bool { return c.Type == kind })
}

func upsertCondition(conditions []configv1.ClusterOperatorStatusCondition, kind configv1.ClusterStatusConditionType, status configv1.ConditionStatus, reason, message string, now time.Time) []configv1.ClusterOperatorStatusCondition {
	condition := findCondition(conditions, kind)
	if condition == nil {
		conditions = append(conditions, configv1.ClusterOperatorStatusCondition{Type: kind})
		condition = &conditions[len(conditions)-1]
	}
	if condition.Status != status {
		condition.Status, condition.LastTransitionTime = status, metav1.NewTime(now.Truncate(time.Second))
	}
	condition.Reason, condition.Message = reason, message
	return conditions
}

func findCondition(conditions []configv1.ClusterOperatorStatusCondition, kind configv1.ClusterStatusConditionType) *configv1.ClusterOperatorStatusCondition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}
