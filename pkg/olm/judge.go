// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package olm

import (
	"fmt"
	"slices"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// ReasonSharedInstallPlan is the reason if an InstallPlan would also upgrade an operator that must
// not be upgraded.
const ReasonSharedInstallPlan = "SharedInstallPlan"

// verdict is the progress of an operator's upgrade.
type verdict int

const (
	// waiting: OLM may still install the upgrade.
	waiting verdict = iota
	// approvable: the InstallPlan can be approved.
	approvable
	// upgraded: the operator has the newest release.
	upgraded
	// failing: OLM reports the upgrade as failed, but may retry it.
	failing
	// refused: the upgrade must not be approved.
	refused
)

// finding is the verdict about an operator with an explanation.
type finding struct {
	verdict verdict
	message string
}

func findingf(v verdict, format string, args ...any) finding {
	return finding{verdict: v, message: fmt.Sprintf(format, args...)}
}

// judge assesses the upgrade of a selected Subscription. all contains the Subscriptions of the
// cluster. plan and csv are the InstallPlan and the ClusterServiceVersion that the Subscription
// refers to, or nil. The InstallPlan is decisive. The state of the Subscription alone proves
// nothing, because OLM reports AtLatestKnown for every release until its next resolution, and also
// while it cannot resolve.
func judge(o *Options, s *clusterstate.Subscription, all []clusterstate.Subscription, plan *clusterstate.InstallPlan, csv *clusterstate.ClusterServiceVersion) finding {
	switch {
	case plan != nil && !plan.Approved:
		return judgeApproval(o, s, all, plan)
	case plan != nil && plan.Failed():
		return findingf(failing, "InstallPlan %s failed: %s", plan.Name, plan.Problem)
	case plan == nil && !s.AtLatest:
		return findingf(waiting, "waiting for an InstallPlan%s", s.Problem)
	}
	f := judgeCSV(s.CurrentCSV, csv)
	switch {
	case f.verdict != upgraded:
		return f
	case plan != nil && !plan.Complete():
		return findingf(waiting, "InstallPlan %s is in phase %s", plan.Name, text.Reason(plan.Phase))
	case !s.AtLatest || s.Problem != "":
		return findingf(waiting, "waiting for OLM to report what follows %s%s", s.CurrentCSV, s.Problem)
	}
	return f
}

// isApprovedHere reports whether the InstallPlans of a Subscription need approval by a user. OLM
// waits for approval of all InstallPlans in a namespace if any of its Subscriptions is manual.
func isApprovedHere(s *clusterstate.Subscription, all []clusterstate.Subscription, plan *clusterstate.InstallPlan) bool {
	return plan != nil && plan.Manual || slices.ContainsFunc(all, func(other clusterstate.Subscription) bool {
		return other.Namespace == s.Namespace && other.Manual
	})
}

// judgeCSV assesses the installation of a release.
func judgeCSV(name string, csv *clusterstate.ClusterServiceVersion) finding {
	switch {
	case csv == nil:
		return findingf(waiting, "waiting for ClusterServiceVersion %s", name)
	case csv.Succeeded():
		return findingf(upgraded, "%s is installed", name)
	case csv.Failed():
		return findingf(failing, "ClusterServiceVersion %s failed: %s: %s", name, text.Reason(csv.Reason), text.Reason(csv.Message))
	case csv.Phase == "":
		return findingf(waiting, "waiting for ClusterServiceVersion %s", name)
	}
	return findingf(waiting, "ClusterServiceVersion %s is in phase %s", name, text.Reason(csv.Phase))
}

// judgeApproval assesses whether an InstallPlan can be approved. An InstallPlan may affect several
// Subscriptions in its namespace that OLM upgrades together.
func judgeApproval(o *Options, s *clusterstate.Subscription, all []clusterstate.Subscription, plan *clusterstate.InstallPlan) finding {
	var others []string
	for i := range all {
		other := &all[i]
		mustNot := o.excludes(other.NamespacedName) || other.Manual && !o.selects(other.NamespacedName)
		if mustNot && plan.Upgrades(other) {
			others = append(others, other.Name)
		}
	}
	switch {
	case len(others) > 0:
		return findingf(refused, "%s: InstallPlan %s also upgrades %s, which must not be upgraded; to upgrade all of them, approve it on the cluster",
			ReasonSharedInstallPlan, plan.Name, text.JoinNames(others))
	case !plan.Manual:
		return findingf(waiting, "waiting for OLM to approve InstallPlan %s", plan.Name)
	case !slices.Contains(plan.CSVs, s.CurrentCSV):
		return findingf(waiting, "waiting for an InstallPlan with %s; InstallPlan %s does not have it", s.CurrentCSV, plan.Name)
	}
	return findingf(approvable, "approving InstallPlan %s with %s", plan.Name, text.JoinNames(plan.CSVs))
}

// unknownCSVs reports whether an InstallPlan contains a release that is not the current release of
// any Subscription. Such a release is either a dependency or the upgrade of a Subscription whose
// status is not up to date.
func unknownCSVs(plan *clusterstate.InstallPlan, all []clusterstate.Subscription) bool {
	return slices.ContainsFunc(plan.CSVs, func(csv string) bool {
		return !slices.ContainsFunc(all, func(s clusterstate.Subscription) bool {
			return s.Namespace == plan.Namespace && s.CurrentCSV == csv
		})
	})
}
