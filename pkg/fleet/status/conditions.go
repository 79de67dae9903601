// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// MaxConditionMessage bounds the message of a condition, in bytes.
const MaxConditionMessage = 320

const (
	// reasonChecking is the reason of PreflightPassed until all clusters are checked.
	reasonChecking = "Checking"
	// reasonClaimsOnly is the reason of PreflightPassed if claims are read, and show no obstacle.
	reasonClaimsOnly = "ClaimsOnly"
)

// verdict is a condition without its type.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

func isTrue(reason, message string) verdict { return verdict{metav1.ConditionTrue, reason, message} }

func isFalse(reason, message string) verdict { return verdict{metav1.ConditionFalse, reason, message} }

// conditions returns all conditions. The time of a condition whose status stays is kept.
func (t *totals) conditions(before []metav1.Condition) []metav1.Condition {
	list := []struct {
		name    string
		verdict verdict
	}{
		{fleetv1beta1.ConditionSelected, t.selected()},
		{fleetv1beta1.ConditionApplied, t.appliedVerdict(before)},
		{fleetv1beta1.ConditionInProgress, t.inProgress()},
		{fleetv1beta1.ConditionComplete, t.complete()},
		{fleetv1beta1.ConditionFailed, t.failed()},
		{fleetv1beta1.ConditionAdmitting, t.admitting()},
		{fleetv1beta1.ConditionStalled, t.stalled()},
	}
	if t.Upgrade.Spec.DryRun {
		list = append(list, struct {
			name    string
			verdict verdict
		}{fleetv1beta1.ConditionPreflightPassed, t.preflight()})
	}
	var conditions []metav1.Condition
	for _, c := range list {
		if old := apimeta.FindStatusCondition(before, c.name); old != nil {
			conditions = append(conditions, *old)
		}
		apimeta.SetStatusCondition(&conditions, metav1.Condition{
			Type: c.name, Status: c.verdict.status, Reason: c.verdict.reason,
			Message:            text.Truncate(c.verdict.message, MaxConditionMessage),
			ObservedGeneration: t.Upgrade.Generation, LastTransitionTime: metav1.Time{Time: t.Now.Truncate(time.Second)},
		})
	}
	return conditions
}

func (t *totals) selected() verdict {
	if t.clusters.Total == 0 {
		if !t.Problem.IsZero() {
			return isFalse(t.Problem.Reason, t.Problem.Message)
		}
		return isFalse(fleetv1beta1.ReasonNoClustersSelected, "no managed cluster is selected")
	}
	message := fmt.Sprintf("%s selected", clusters(t.clusters.Total, "is", "are"))
	if t.canaries.Total > 0 {
		message += fmt.Sprintf(", %d as canaries", t.canaries.Total)
	}
	if !t.Problem.IsZero() {
		message += "; " + t.Problem.Message
	}
	return isTrue(fleetv1beta1.ReasonManagedClustersSelected, message)
}

func (t *totals) appliedVerdict(before []metav1.Condition) verdict {
	if t.applied || apimeta.IsStatusConditionTrue(before, fleetv1beta1.ConditionApplied) {
		return isTrue(fleetv1beta1.ReasonManagedClustersUpgradeApplied, "the upgrade or its pre-upgrade action was applied to a cluster")
	}
	return isFalse(fleetv1beta1.ReasonNothingApplied, "nothing was applied to a cluster yet")
}

func (t *totals) inProgress() verdict {
	switch {
	case t.clusters.PartialUpgrade > 0:
		return isTrue(fleetv1beta1.ReasonManagedClustersUpgradeInProgress, t.progress())
	case t.isComplete():
		return isFalse(fleetv1beta1.ReasonManagedClustersUpgradeComplete, t.progress())
	}
	return isFalse(fleetv1beta1.ReasonNothingInProgress, t.progress())
}

func (t *totals) complete() verdict {
	switch {
	case t.isComplete():
		return isTrue(fleetv1beta1.ReasonManagedClustersUpgradeComplete, t.progress())
	case t.clusters.Failed > 0:
		return isFalse(fleetv1beta1.ReasonClustersFailed, t.progress())
	}
	return isFalse(fleetv1beta1.ReasonClustersPending, t.progress())
}

func (t *totals) failed() verdict {
	switch {
	case t.clusters.Failed == 0:
		return isFalse(fleetv1beta1.ReasonNoFailures, "no cluster failed")
	case t.Decision.CanaryFailed && t.canaries.Failed > 0:
		return isTrue(fleetv1beta1.ReasonCanaryFailed, t.failures())
	case t.Decision.MaxFailuresExceeded:
		return isTrue(fleetv1beta1.ReasonMaxFailuresExceeded, t.failures())
	}
	return isTrue(fleetv1beta1.ReasonManagedClustersUpgradeFailed, t.failures())
}

// failures names the most frequent failures.
func (t *totals) failures() string {
	var parts []string
	for _, c := range t.sortedCauses() {
		if c.Type == fleetv1beta1.CauseFailed && len(parts) < 2 {
			parts = append(parts, describe(&c))
		}
	}
	return fmt.Sprintf("%s: %s", clusters(t.clusters.Failed, "failed", "failed"), strings.Join(parts, "; "))
}

// describe returns a cause in one line.
func describe(c *fleetv1beta1.Cause) string {
	line := fmt.Sprintf("%s on %s", c.Reason, strings.Join(c.Clusters, ", "))
	if more := int(c.Count) - len(c.Clusters); more > 0 {
		line += fmt.Sprintf(" and %d more", more)
	}
	if c.Message != "" {
		line += " (" + text.Excerpt(c.Message) + ")"
	}
	return line
}

func (t *totals) admitting() verdict {
	stop := t.Decision.Stopped
	if stop.IsZero() {
		return isTrue(fleetv1beta1.ReasonOpen, fmt.Sprintf("the next cluster may begin; %s", t.progress()))
	}
	return isFalse(stop.Reason, stop.Message)
}

func (t *totals) stalled() verdict {
	if t.stalls == 0 {
		return isFalse(fleetv1beta1.ReasonNotStalled, "every cluster in flight makes progress")
	}
	reason, message := t.first(fleetv1beta1.CauseStalled)
	return isTrue(reason, message)
}

func (t *totals) preflight() verdict {
	reason, message := t.first(fleetv1beta1.CauseBlocked)
	switch {
	case t.unchecked > 0 || t.clusters.Total == 0:
		unchecked := fmt.Sprintf("%s not checked yet", clusters(int32(t.unchecked), "is", "are"))
		if t.obstacles > 0 {
			unchecked += "; an obstacle was found: " + message
		}
		return verdict{metav1.ConditionUnknown, reasonChecking, unchecked}
	case t.obstacles > 0:
		return isFalse(reason, message)
	}
	if t.Upgrade.Spec.ClaimsOnly {
		return verdict{metav1.ConditionUnknown, reasonClaimsOnly, fmt.Sprintf("the claims of %s show no obstacle; "+
			"they do not show whether the release is offered, its risks, Upgradeable, and Failing", clusters(t.clusters.Total, "", ""))}
	}
	return isTrue(fleetv1beta1.ReasonPreflightPassed, fmt.Sprintf("no obstacle was found on %s", clusters(t.clusters.Total, "", "")))
}

// first returns the most frequent cause of a type.
func (t *totals) first(kind fleetv1beta1.CauseType) (reason, message string) {
	for _, c := range t.sortedCauses() {
		if c.Type == kind {
			return c.Reason, describe(&c)
		}
	}
	return "", ""
}

// progress returns the counters in words; states without clusters are left out.
func (t *totals) progress() string {
	s := &t.clusters
	parts := []string{fmt.Sprintf("%d of %d complete", s.Complete, s.Total)}
	for _, part := range []struct {
		count int32
		what  string
	}{{s.Initialized + s.PartialUpgrade, "in flight"}, {s.Failed, "failed"}, {s.Pending, "pending"}} {
		if part.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.count, part.what))
		}
	}
	return strings.Join(parts, ", ")
}

// clusters returns a number of clusters with a verb.
func clusters(n int32, one, many string) string {
	if n == 1 {
		return strings.TrimSpace("1 cluster " + one)
	}
	return strings.TrimSpace(fmt.Sprintf("%d clusters %s", n, many))
}
