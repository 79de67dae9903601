// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/olm/report"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Action returns the state of an action, or of the Job that approves operators, and explains it. One manifest in state
// Degraded, or a Job that failed, makes it Degraded. It is Available when all manifests of the current generation are
// applied, all objects exist, all Jobs have succeeded, and all rules for the condition Complete are met.
//
// A Job that failed also meets the rule of Open Cluster Management for its completion: its result is read from the Job.
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
	case !f.IsApplied() || f.Available != metav1.ConditionTrue:
		return fleetv1alpha1.ActionProgressing, "the agent has not reported all manifests"
	}
	return fleetv1alpha1.ActionAvailable, ""
}

func (m *Manifest) state() (fleetv1alpha1.ActionState, string) {
	isJob := m.Group == "batch" && m.Kind == "Job"
	failed := m.values.condition(jobFailed)
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
	case isJob && !m.values.name(jobComplete+"Status").Is("True"):
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

// ReportsFailure reports whether the agent reports what fails a run, now or if it lasts: a Degraded manifest, a Job
// that failed, a cluster version operator that fails or refuses the release, or an UpgradeConfig that failed.
func (f *Feedback) ReportsFailure() bool {
	if state, _ := f.Action(); state == fleetv1alpha1.ActionDegraded {
		return true
	}
	version, config := f.ClusterVersion(), f.UpgradeConfig()
	return version.Failing.IsTrue() || version.Invalid.IsTrue() || version.ReleaseAccepted.IsFalse() || config.Phase.Is("Failed")
}

// OLM is the group of the kinds of the Operator Lifecycle Manager, and KindInstallPlan is one of them.
const (
	OLM             = "operators.coreos.com"
	KindInstallPlan = "InstallPlan"
)

// Approval holds what the agent reports about the Job that approves operators.
type Approval struct {
	Report   report.Report
	Reported bool // the report is complete and valid
	Over     bool // the Job has succeeded
}

// Approval returns what the agent reports about the Job that approves operators.
func (f *Feedback) Approval() Approval {
	job := f.find("batch", "Job", "", "")
	if job == nil || job.Available != metav1.ConditionTrue {
		return Approval{}
	}
	over := job.values.name(jobComplete + "Status").Is("True")
	operators := job.values.name("operators")
	var parts []string
	for i := range report.Parts {
		part := job.values.name(operatorsPart(i))
		if !part.IsKnown() && part.Quality != Missing {
			return Approval{Over: over}
		}
		parts = append(parts, part.Text)
	}
	found, err := report.Parse(operators.Text, parts)
	return Approval{Report: found, Reported: operators.IsKnown() && err == nil, Over: over}
}

// Operators returns how far the operators are, and explains it. The Job only names the InstallPlans that decide.
func (f *Feedback) Operators() (fleetv1alpha1.ActionState, string) {
	state, message := f.Action()
	if state != fleetv1alpha1.ActionAvailable {
		return state, message
	}
	approval := f.Approval()
	if !approval.Reported {
		return fleetv1alpha1.ActionProgressing, "the Job is complete, and has not reported which InstallPlans it has approved"
	}
	for _, plan := range approval.Report.Plans {
		if plan.Name == "" {
			continue
		}
		if state, message := f.installPlan(plan.Namespace, plan.Name); state != fleetv1alpha1.ActionAvailable {
			return state, message
		}
	}
	return fleetv1alpha1.ActionAvailable, ""
}

func (f *Feedback) installPlan(namespace, name string) (fleetv1alpha1.ActionState, string) {
	m := f.find(OLM, KindInstallPlan, namespace, name)
	if m == nil {
		return fleetv1alpha1.ActionProgressing, fmt.Sprintf("the agent does not observe InstallPlan %s/%s", namespace, name)
	}
	switch phase := m.values.name("phase"); {
	case phase.Is("Failed"):
		return fleetv1alpha1.ActionDegraded, fmt.Sprintf("InstallPlan %s/%s failed, although the Job is complete", namespace, name)
	case !m.values.read("approved", workv1.Boolean).Is("true"):
		return fleetv1alpha1.ActionProgressing, fmt.Sprintf("InstallPlan %s/%s is not approved, although the Job is complete", namespace, name)
	case !phase.Is("Complete"):
		return fleetv1alpha1.ActionProgressing, fmt.Sprintf("InstallPlan %s/%s is not complete, although the Job is", namespace, name)
	}
	return fleetv1alpha1.ActionAvailable, ""
}

// Namespace holds what the agent reports about a namespace.
type Namespace struct {
	Exists     metav1.ConditionStatus // Unknown until the agent has looked for it
	IsApprover bool                   // it has the ApproverLabel
}

// Namespace returns what the agent reports about a namespace.
func (f *Feedback) Namespace(name string) Namespace {
	m := f.find("", "Namespace", "", name)
	if m == nil {
		return Namespace{Exists: metav1.ConditionUnknown}
	}
	return Namespace{Exists: m.Available, IsApprover: m.values.name("approver").Is("true")}
}

// HasUnknown reports whether the agent has not reported of each object whether it exists.
func (f *Feedback) HasUnknown() bool {
	return slices.ContainsFunc(f.Manifests, func(m Manifest) bool { return m.Available == metav1.ConditionUnknown })
}
