// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/readiness"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// MaxConditionMessage bounds the message of a condition, in bytes.
const MaxConditionMessage = 320

// Reasons of PreflightPassed=Unknown.
const (
	reasonChecking   = "Checking"   // not all clusters are checked
	reasonClaimsOnly = "ClaimsOnly" // only claims are read, and show no obstacle
)

func isTrue(reason, message string) metav1.Condition {
	return verdict(metav1.ConditionTrue, reason, message)
}

func isFalse(reason, message string) metav1.Condition {
	return verdict(metav1.ConditionFalse, reason, message)
}

func verdict(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Status: status, Reason: reason, Message: message}
}

// conditions returns all conditions. The time of a condition whose status stays is kept.
func (t *totals) conditions(before []metav1.Condition) []metav1.Condition {
	var list []metav1.Condition
	add := func(name string, c metav1.Condition) {
		c.Type = name
		list = append(list, c)
	}
	add(fleetv1beta1.ConditionSelected, t.selected())
	add(fleetv1beta1.ConditionApplied, t.appliedVerdict(before))
	add(fleetv1beta1.ConditionInProgress, t.inProgress())
	add(fleetv1beta1.ConditionComplete, t.complete())
	add(fleetv1beta1.ConditionFailed, t.failed())
	add(fleetv1beta1.ConditionAdmitting, t.admitting())
	add(fleetv1beta1.ConditionSlow, t.slow())
	for _, c := range t.readiness().Conditions() {
		if c.Status != "" {
			add(c.Type, c)
		}
	}
	if t.Upgrade.Spec.DryRun {
		add(fleetv1beta1.ConditionPreflightPassed, t.preflight())
	}
	var conditions []metav1.Condition
	before = readiness.WithSlow(before)
	for _, c := range list {
		if old := apimeta.FindStatusCondition(before, c.Type); old != nil {
			conditions = append(conditions, *old)
		}
		c.Message = text.Truncate(c.Message, MaxConditionMessage)
		readiness.SetCondition(&conditions, c, t.Upgrade.Generation, t.Now)
	}
	return conditions
}

func (t *totals) selected() metav1.Condition {
	if t.clusters.Total == 0 {
		if t.Selection.Reason != "" {
			return isFalse(t.Selection.Reason, t.Selection.Message)
		}
		return isFalse(fleetv1beta1.ReasonNoClustersSelected, "no managed cluster is selected")
	}
	message := fmt.Sprintf("%s selected", clusters(t.clusters.Total, "is", "are"))
	if t.canaries.Total > 0 {
		message += fmt.Sprintf(", %d as canaries", t.canaries.Total)
	}
	if t.Selection.Reason != "" {
		message += "; " + t.Selection.Message
	}
	return isTrue(fleetv1beta1.ReasonManagedClustersSelected, message)
}

func (t *totals) appliedVerdict(before []metav1.Condition) metav1.Condition {
	if t.applied || apimeta.IsStatusConditionTrue(before, fleetv1beta1.ConditionApplied) {
		return isTrue(fleetv1beta1.ReasonManagedClustersUpgradeApplied, "the upgrade or its pre-upgrade action was applied to a cluster")
	}
	return isFalse(fleetv1beta1.ReasonNothingApplied, "nothing was applied to a cluster yet")
}

func (t *totals) inProgress() metav1.Condition {
	switch {
	case t.clusters.PartialUpgrade > 0:
		return isTrue(fleetv1beta1.ReasonManagedClustersUpgradeInProgress, t.progress())
	case t.isComplete():
		return isFalse(fleetv1beta1.ReasonManagedClustersUpgradeComplete, t.progress())
	}
	return isFalse(fleetv1beta1.ReasonNothingInProgress, t.progress())
}

func (t *totals) complete() metav1.Condition {
	switch {
	case t.isComplete():
		return isTrue(fleetv1beta1.ReasonManagedClustersUpgradeComplete, t.progress())
	case t.clusters.Failed+t.gone() > 0:
		return isFalse(fleetv1beta1.ReasonClustersFailed, t.progress())
	}
	return isFalse(fleetv1beta1.ReasonClustersPending, t.progress())
}

func (t *totals) failed() metav1.Condition {
	switch {
	case t.clusters.Failed+t.gone() == 0:
		return isFalse(fleetv1beta1.ReasonNoFailures, "no cluster failed")
	case t.decision.CanaryFailed && t.canaries.Failed+t.gone() > 0:
		return isTrue(fleetv1beta1.ReasonCanaryFailed, t.failures())
	case t.decision.MaxFailuresExceeded:
		return isTrue(fleetv1beta1.ReasonMaxFailuresExceeded, t.failures())
	}
	return isTrue(fleetv1beta1.ReasonManagedClustersUpgradeFailed, t.failures())
}

func (t *totals) failures() string {
	var parts []string
	for _, c := range t.sortedCauses() {
		if c.Type == fleetv1beta1.CauseFailed && len(parts) < 2 {
			parts = append(parts, describe(&c))
		}
	}
	if gone := t.gone(); gone > 0 {
		parts = append(parts, fmt.Sprintf("%s before the upgrade was complete", clusters(gone, "was detached", "were detached")))
	}
	return fmt.Sprintf("%s: %s", clusters(t.clusters.Failed+t.gone(), "failed", "failed"), strings.Join(parts, "; "))
}

func (t *totals) gone() (n int32) {
	for _, group := range t.Departed {
		n += group.Failed
	}
	return n
}

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

func (t *totals) admitting() metav1.Condition {
	stop := t.decision.Stopped
	if stop.IsZero() {
		return isTrue(fleetv1beta1.ReasonOpen, fmt.Sprintf("the next cluster may begin; %s", t.progress()))
	}
	if names := t.unapplied(); len(names) > 0 && stop == t.decision.UntilAttempt {
		stop.Message += "; annotations name " + text.JoinNames(names) + " without effect"
	}
	return isFalse(stop.Reason, stop.Message)
}

// readiness summarizes the upgrade for tools that know nothing about fleets.
func (t *totals) readiness() readiness.Verdict {
	of := func(level readiness.Level, v metav1.Condition) readiness.Verdict {
		return readiness.Verdict{Level: level, Reason: v.Reason, Message: v.Message}
	}
	inFlight := t.clusters.InFlight() > 0
	stop := t.decision.Stopped
	switch {
	case t.isComplete():
		return of(readiness.Ready, t.complete())
	case t.Upgrade.Spec.DryRun && !inFlight:
		return of(preflightLevel(t.preflight()), t.preflight())
	case slices.Contains(personReasons, stop.Reason):
		return of(readiness.Stalled, t.admitting())
	case stop.Reason == fleetv1beta1.ReasonFinished && !inFlight:
		return of(readiness.Stalled, t.failed())
	case stop.Reason == fleetv1beta1.ReasonPaused:
		return of(readiness.Waiting, t.admitting())
	case slices.Contains(earlyReasons, stop.Reason) && t.started.IsZero():
		return readiness.Verdict{}
	case slices.Contains(waitReasons, stop.Reason) && !inFlight:
		return of(readiness.Waiting, t.admitting())
	}
	return readiness.Verdict{Level: readiness.Reconciling, Reason: t.admitting().Reason, Message: t.progress()}
}

// personReasons stop the admission until a person acts.
var personReasons = []string{
	fleetv1beta1.ReasonCanaryFailed, fleetv1beta1.ReasonMaxFailuresExceeded, fleetv1beta1.ReasonCanaryNotSelected,
	fleetv1beta1.ReasonNoCanary, fleetv1beta1.ReasonCanaryNotAvailable, fleetv1beta1.ReasonRecordsLost, fleetv1beta1.ReasonInvalidStrategy,
	fleetv1beta1.ReasonDependencyMissing, fleetv1beta1.ReasonNoOperatorImage, fleetv1beta1.ReasonCancelled,
}

// earlyReasons say that the time of an upgrade has not come, if no cluster has begun.
var earlyReasons = []string{fleetv1beta1.ReasonOutsideWindow, fleetv1beta1.ReasonDependencyIncomplete}

// waitReasons say that nothing happens and nothing is wrong, if no cluster is in flight.
var waitReasons = []string{
	fleetv1beta1.ReasonHeld, fleetv1beta1.ReasonNoClustersSelected, fleetv1beta1.ReasonOutsideWindow, fleetv1beta1.ReasonDependencyIncomplete,
}

// preflightLevel summarizes a dry run. One that reads only claims never knows more.
func preflightLevel(v metav1.Condition) readiness.Level {
	switch {
	case v.Status == metav1.ConditionFalse:
		return readiness.Stalled
	case v.Reason == reasonChecking:
		return readiness.Reconciling
	}
	return readiness.Ready
}

func (t *totals) slow() metav1.Condition {
	if t.stalls == 0 {
		return isFalse(fleetv1beta1.ReasonOnTime, "every cluster in flight makes progress")
	}
	reason, message := t.first(fleetv1beta1.CauseStalled)
	return isTrue(reason, message)
}

func (t *totals) preflight() metav1.Condition {
	reason, message := t.first(fleetv1beta1.CauseBlocked)
	switch {
	case t.unchecked > 0 || t.clusters.Total == 0:
		unchecked := fmt.Sprintf("%s not checked yet", clusters(int32(t.unchecked), "is", "are"))
		if t.obstacles > 0 {
			unchecked += "; an obstacle was found: " + message
		}
		return verdict(metav1.ConditionUnknown, reasonChecking, unchecked)
	case t.obstacles > 0:
		return isFalse(reason, message)
	}
	if t.Upgrade.Spec.ClaimsOnly {
		return verdict(metav1.ConditionUnknown, reasonClaimsOnly, fmt.Sprintf("the claims of %s show no obstacle; "+
			"they do not show whether the release is offered, its risks, Upgradeable, and Failing", clusters(t.clusters.Total, "", "")))
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

// progress returns the counters in words, without states that no cluster has.
func (t *totals) progress() string {
	s := &t.clusters
	parts := []string{fmt.Sprintf("%d of %d complete", s.Complete, s.Total)}
	for _, part := range []struct {
		count int32
		what  string
	}{{s.InFlight(), "in flight"}, {s.Finishing, "finishing"}, {s.Failed, "failed"}, {t.gone(), "detached"}, {s.Pending, "pending"}} {
		if part.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.count, part.what))
		}
	}
	return strings.Join(parts, ", ")
}

func clusters(n int32, one, many string) string {
	return strings.TrimSpace(text.Plural(int(n), "cluster "+one, "clusters "+many))
}
