// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// set sets a condition of a work or a manifest with the reasons that the agent uses.
func set(conditions *[]metav1.Condition, name string, holds bool, generation int64, subject string, now time.Time) {
	c := metav1.Condition{Type: name, Status: metav1.ConditionFalse, ObservedGeneration: generation, Reason: subject + "Failed", Message: "It failed"}
	if holds {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, subject+"Complete", "It is complete"
	}
	if name == "Available" {
		c.Reason, c.Message = subject+"Available", subject+" is available"
		if !holds {
			c.Reason, c.Message = subject+"NotAvailable", subject+" is not available"
		}
	}
	setCondition(conditions, c, now)
}

func setCondition(conditions *[]metav1.Condition, c metav1.Condition, now time.Time) {
	c.LastTransitionTime = metav1.NewTime(now)
	apimeta.SetStatusCondition(conditions, c)
}
