// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Action returns the state of an action, or of the Job that approves operators, and a message that
// explains it. One manifest that is Degraded, or a Job that failed, makes it Degraded. It is Available
// when all manifests of the current generation are applied, all objects exist, all Jobs have succeeded,
// and all rules for the condition Complete are met.
//
// A rule of Open Cluster Management for the completion of a Job is also met by a Job that failed, so the
// result of a Job is always read from the Job.
func (f *Feedback) Action() (fleetv1alpha1.ActionState, string) {
	pending := ""
	for i := range f.Manifests {
		m := &f.Manifests[i]
		state, message := m.state()
		if state == fleetv1alpha1.ActionDegraded {
			return state, message
		}
		if state == fleetv1alpha1.ActionProgressing {
			pending = cmp.Or(pending, message)
		}
	}
	switch {
	case f.Deleting:
		return fleetv1alpha1.ActionProgressing, "the ManifestWork is being deleted"
	case pending != "":
		return fleetv1alpha1.ActionProgressing, pending
	case f.Applied != metav1.ConditionTrue || f.Available != metav1.ConditionTrue:
		return fleetv1alpha1.ActionProgressing, "the agent has not reported all manifests"
	}
	return fleetv1alpha1.ActionAvailable, ""
}

// state returns the state of one manifest.
func (m *Manifest) state() (fleetv1alpha1.ActionState, string) {
	isJob := m.Group == "batch" && m.Kind == "Job"
	failed := m.values.condition(nameJobFailedCondition)
	object := text.Sanitize(m.Kind+" "+m.Name, maxName)
	switch {
	case m.Degraded == metav1.ConditionTrue:
		return fleetv1alpha1.ActionDegraded, explain(object+" is degraded", m.DegradedMessage)
	case isJob && failed.IsTrue():
		return fleetv1alpha1.ActionDegraded, explain(object+" failed", cmp.Or(failed.Message, failed.Reason))
	case m.Applied == metav1.ConditionFalse:
		return fleetv1alpha1.ActionProgressing, explain(object+" is not applied", m.AppliedMessage)
	case m.Applied != metav1.ConditionTrue:
		return fleetv1alpha1.ActionProgressing, fmt.Sprintf("the agent has not reported %s", object)
	case m.Available != metav1.ConditionTrue:
		return fleetv1alpha1.ActionProgressing, object + " does not exist"
	case isJob && !m.values.name(nameJobCompleteCondition+suffixStatus).Is("True"):
		return fleetv1alpha1.ActionProgressing, object + " is not complete"
	case m.NeedsComplete && m.Complete != metav1.ConditionTrue:
		return fleetv1alpha1.ActionProgressing, object + " does not meet its rule for Complete"
	}
	return fleetv1alpha1.ActionAvailable, ""
}

func explain(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}
