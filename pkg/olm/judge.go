// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package olm

import (
	"fmt"
	"slices"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// ReasonSharedInstallPlan is an InstallPlan that also upgrades an operator that must not be upgraded.
const ReasonSharedInstallPlan = "SharedInstallPlan"

// verdict is how far the upgrade of an operator is.
type verdict int

const (
	// waiting is an upgrade that OLM may still install.
	waiting verdict = iota
	// approvable is an upgrade whose InstallPlan can be approved.
	approvable
	// upgraded is an operator that has the newest release.
	upgraded
	// failing is an upgrade that OLM reports as failed. OLM may repeat it.
	failing
	// refused is an upgrade that must not be approved.
	refused
)

// finding is the verdict about an operator and its explanation.
type finding struct {
	verdict verdict
	message string
}

func findingf(v verdict, format string, args ...any) finding {
	return finding{verdict: v, message: fmt.Sprintf(format, args...)}
}

// judge returns how far the upgrade of a selected Subscription is. all are the Subscriptions of the
// cluster. plan and csv are the InstallPlan and the ClusterServiceVersion to which the Subscription
// refers; nil means that it does not exist.
func judge(o *Options, s *subscription, all []subscription, plan *installPlan, csv *clusterServiceVersion) finding {
	switch {
	case s.isAtLatest():
		return judgeCSV(s.Status.CurrentCSV, csv)
	case plan == nil:
		return findingf(waiting, "waiting for an InstallPlan%s", s.problem())
	case plan.Status.Phase == planFailed:
		return findingf(failing, "InstallPlan %s failed: %s", plan.Metadata.Name, plan.problem())
	case !plan.Spec.Approved:
		return judgeApproval(o, s, all, plan)
	case csv == nil:
		return findingf(waiting, "waiting for ClusterServiceVersion %s of the approved InstallPlan %s", s.Status.CurrentCSV, plan.Metadata.Name)
	}
	if f := judgeCSV(s.Status.CurrentCSV, csv); f.verdict != upgraded {
		return f
	}
	return findingf(waiting, "waiting for OLM to report what follows %s%s", s.Status.CurrentCSV, s.problem())
}

// judgeCSV returns how far the installation of a release is.
func judgeCSV(name string, csv *clusterServiceVersion) finding {
	switch {
	case csv == nil:
		return findingf(waiting, "waiting for ClusterServiceVersion %s", name)
	case csv.Status.Phase == csvSucceeded:
		return findingf(upgraded, "%s is installed", name)
	case csv.Status.Phase == csvFailed:
		return findingf(failing, "ClusterServiceVersion %s failed: %s: %s", name, text.Reason(csv.Status.Reason), text.Reason(csv.Status.Message))
	case csv.Status.Phase == "":
		return findingf(waiting, "waiting for ClusterServiceVersion %s", name)
	}
	return findingf(waiting, "ClusterServiceVersion %s is in phase %s", name, text.Reason(csv.Status.Phase))
}

// judgeApproval returns whether an InstallPlan that is not approved can be. An InstallPlan concerns all
// Subscriptions of its namespace that OLM upgrades together.
func judgeApproval(o *Options, s *subscription, all []subscription, plan *installPlan) finding {
	var others []string
	for i := range all {
		other := &all[i]
		mustNot := o.excludes(other.name()) || other.isManual() && !o.selects(other.name())
		if mustNot && plan.upgrades(other) {
			others = append(others, other.Metadata.Name)
		}
	}
	switch {
	case len(others) > 0:
		return findingf(refused, "%s: InstallPlan %s also upgrades %s, which must not be upgraded; to upgrade all of them, approve it on the cluster",
			ReasonSharedInstallPlan, plan.Metadata.Name, text.JoinNames(others))
	case plan.Spec.Approval != approvalManual:
		return findingf(waiting, "waiting for OLM to approve InstallPlan %s", plan.Metadata.Name)
	case !slices.Contains(plan.Spec.CSVs, s.Status.CurrentCSV):
		return findingf(waiting, "waiting for an InstallPlan with %s; InstallPlan %s does not have it", s.Status.CurrentCSV, plan.Metadata.Name)
	}
	return findingf(approvable, "approving InstallPlan %s with %s", plan.Metadata.Name, text.JoinNames(plan.Spec.CSVs))
}

// unknownCSVs reports whether an InstallPlan has a release that is not the current one of a
// Subscription. It is a dependency, or the upgrade of a Subscription whose status OLM has not
// updated yet.
func unknownCSVs(plan *installPlan, all []subscription) bool {
	return slices.ContainsFunc(plan.Spec.CSVs, func(csv string) bool {
		return !slices.ContainsFunc(all, func(s subscription) bool {
			return s.Metadata.Namespace == plan.Metadata.Namespace && s.Status.CurrentCSV == csv
		})
	})
}

// problem returns what prevents OLM from upgrading the operator, for the end of a message.
func (s *subscription) problem() string {
	for _, name := range []string{resolutionFailed, unpackFailed, catalogsUnhealthy} {
		for i := range s.Status.Conditions {
			if c := &s.Status.Conditions[i]; c.Type == name && c.Status == conditionTrue {
				return fmt.Sprintf("; %s: %s", name, text.Reason(c.Message))
			}
		}
	}
	return ""
}

// problem returns why the InstallPlan failed.
func (p *installPlan) problem() string {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == planInstalled && c.Status == conditionFalse {
			return text.Reason(c.Reason) + ": " + text.Reason(c.Message)
		}
	}
	return text.Reason(p.Status.Message)
}
