// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejob

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/readiness"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// The reasons of the condition Acknowledged.
const (
	reasonAcknowledged = "Acknowledged"
	reasonBeforeEnd    = "BeforeEnd"
)

// CompleteStatus answers the annotations of users, and shows the state of the machine config pools. A request
// has no effect if it was made before the attempt ended: annotations may come from the template of an
// UpgradeConfig, and they stay when another attempt begins.
func (k kind) CompleteStatus(job *maintenancev1beta1.UpgradeJob) {
	ended := meta.FindStatusCondition(job.Status.Conditions, maintenancev1beta1.ConditionSucceeded) != nil
	if token := maintenance.RequestToken(job, maintenancev1beta1.RetryAnnotation); token != "" && !ended {
		job.Status.Retry = &maintenancev1beta1.RetryStatus{Token: token}
	}
	k.acknowledge(job, ended)
	if observed, found := k.facts.get(job); found {
		job.Status.MachineConfigPools = observed.statuses
	}
}

// acknowledge sets the condition Acknowledged. It is True if a token that was set after the end of the attempt
// acknowledges that end.
func (k kind) acknowledge(job *maintenancev1beta1.UpgradeJob, ended bool) {
	token := maintenance.RequestToken(job, maintenancev1beta1.AcknowledgedAnnotation)
	if token == "" {
		meta.RemoveStatusCondition(&job.Status.Conditions, maintenancev1beta1.ConditionAcknowledged)
		return
	}
	c := metav1.Condition{
		Type: maintenancev1beta1.ConditionAcknowledged, Status: metav1.ConditionTrue, Reason: reasonAcknowledged,
		Message: "the annotation " + maintenancev1beta1.AcknowledgedAnnotation + " is " + text.Sanitize(token, maintenancev1beta1.MaxTokenLength),
	}
	old := meta.FindStatusCondition(job.Status.Conditions, maintenancev1beta1.ConditionAcknowledged)
	if !ended || old != nil && old.Status != metav1.ConditionTrue && old.Message == c.Message {
		c.Status, c.Reason = metav1.ConditionFalse, reasonBeforeEnd
	}
	readiness.SetCondition(&job.Status.Conditions, c, job.Generation, k.Clock.Now())
}
