// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package olm

import (
	"fmt"
	"slices"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
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
// refers; nil if there is none. The InstallPlan decides. The state of the Subscription alone proves
// nothing: OLM reports AtLatestKnown about each release until its next resolution, and also while it
// cannot resolve.
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

// isApprovedHere reports whether a user has to approve the InstallPlans of a Subscription: OLM waits for
// an approval of each InstallPlan of a namespace if a single Subscription of the namespace is manual.
func isApprovedHere(s *clusterstate.Subscription, all []clusterstate.Subscription, plan *clusterstate.InstallPlan) bool {
	return plan != nil && plan.Manual || slices.ContainsFunc(all, func(other clusterstate.Subscription) bool {
		return other.Namespace == s.Namespace && other.Manual
	})
}

// judgeCSV returns how far the installation of a release is.
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

// judgeApproval returns whether an InstallPlan that is not approved can be. An InstallPlan concerns all
// Subscriptions of its namespace that OLM upgrades together.
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

// unknownCSVs reports whether an InstallPlan has a release that is not the current one of a
// Subscription. It is a dependency, or the upgrade of a Subscription whose status OLM has not
// updated yet.
func unknownCSVs(plan *clusterstate.InstallPlan, all []clusterstate.Subscription) bool {
	return slices.ContainsFunc(plan.CSVs, func(csv string) bool {
		return !slices.ContainsFunc(all, func(s clusterstate.Subscription) bool {
			return s.Namespace == plan.Namespace && s.CurrentCSV == csv
		})
	})
}
