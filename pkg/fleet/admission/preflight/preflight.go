// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preflight decides what prevents the upgrade of a managed cluster before it is requested, by
// the claims of the cluster and by what the agent reports about its ClusterVersion.
//
// It is pure: it reads and writes no object. Missing data is an obstacle, or is waited for; it is never
// good news. It acknowledges nothing and accepts no risk.
package preflight

import (
	"cmp"
	"fmt"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// The reasons of obstacles, in addition to those for which a cluster is refused, and to the reasons
// that the cluster version operator gives for Upgradeable=False.
const (
	ReasonUnreachable       = fleetv1beta1.ReasonUnreachable // a cluster whose agent does not report to the hub
	ReasonNoFeedback        = "NoFeedback"                   // a cluster whose agent has not answered in time
	ReasonVersionUnknown    = "VersionUnknown"               // a cluster that does not claim its release, if only claims are read
	ReasonUpgradeInProgress = "UpgradeInProgress"            // a cluster that is being upgraded to another release
	// ReasonPreflightRequested is a request for a check alone. The hub cannot remove a field that a cluster may not declare.
	ReasonPreflightRequested = "PreflightRequested"
	ReasonInvalid            = "InvalidClusterVersion" // a ClusterVersion that the cluster version operator reports as invalid
	ReasonNotUpgradeable     = "NotUpgradeable"        // a cluster with Upgradeable=False and without a usable reason
	ReasonNotOffered         = "NotOffered"            // a release that the update service does not offer to the cluster
	ReasonOfferUnknown       = "OfferUnknown"          // the reason of a cluster whose channel differs from the channel of the upgrade
	ReasonConditionalRisks   = "ConditionalRisks"      // a release that is not recommended for the cluster
)

// Cluster holds what is known about a cluster.
type Cluster struct {
	// ManagedCluster is the object; nil means that there is none.
	ManagedCluster *clusterv1.ManagedCluster
	// Hold is why the cluster must not begin; empty means that it may.
	Hold string
	// LockedBy names the ManagedClustersUpgrade that upgrades the cluster; empty means none.
	LockedBy string
	// Work is the work that observes the ClusterVersion; nil means that there is none.
	Work *workv1.ManifestWork
	// Expired reports whether the agent has had enough time for its answer.
	Expired bool
}

// Result holds what is known about the upgrade of a cluster.
type Result struct {
	// Checked reports whether the result is final.
	Checked bool
	// Obstacle says what prevents the upgrade; its zero value means nothing.
	Obstacle rollout.Stop
}

var passed = Result{Checked: true}

func blocked(reason, format string, args ...any) Result {
	return Result{Checked: true, Obstacle: rollout.Stop{Reason: reason, Message: fmt.Sprintf(format, args...)}}
}

// CheckClaims returns what the hub knows without writing to the cluster. A result that is not checked needs a work.
func CheckClaims(spec *fleetv1beta1.ManagedClustersUpgradeSpec, c *Cluster) Result {
	switch {
	case c.ManagedCluster == nil || c.Hold != "":
		return blocked(fleetv1beta1.ReasonHeld, "%s", cmp.Or(c.Hold, "there is no such ManagedCluster"))
	case c.LockedBy != "":
		return blocked(fleetv1alpha1.ReasonLockedBy, "ManagedClustersUpgrade %s is upgrading it", c.LockedBy)
	}
	if outcome := admission.Outcome(spec, c.ManagedCluster, false); outcome != nil {
		if outcome.State == fleetv1alpha1.StateComplete {
			return passed
		}
		return blocked(outcome.Reason, "%s", outcome.Message)
	}
	if admission.Unreachable(c.ManagedCluster) != "" {
		return blocked(ReasonUnreachable, "unreachable")
	}
	switch {
	case spec.ClusterVersion == nil:
		return passed
	case spec.ClaimsOnly && clusterstate.ValidateVersion(admission.Claims(c.ManagedCluster)[admission.ClaimVersion]) != nil:
		return blocked(ReasonVersionUnknown, "it does not claim its release")
	case spec.ClaimsOnly:
		return passed
	}
	return Result{}
}

// Check returns what is known about a cluster. A result that is not checked waits for the agent.
func Check(spec *fleetv1beta1.ManagedClustersUpgradeSpec, c *Cluster) Result {
	if result := CheckClaims(spec, c); result.Checked {
		return result
	}
	unknown := func(message string) Result {
		if c.Expired {
			return blocked(ReasonNoFeedback, "%s", message)
		}
		return Result{}
	}
	if c.Work == nil {
		return unknown("the agent has not answered")
	}
	f := delivery.Read(c.Work)
	version := f.ClusterVersion()
	if f.Applied != metav1.ConditionTrue || !version.Version.IsKnown() || !version.State.IsKnown() {
		return unknown(cmp.Or(f.Message, "the agent does not report the ClusterVersion"))
	}
	target := delivery.Target{Version: spec.ClusterVersion.Version, Image: spec.ClusterVersion.Image}
	if result, decided := CheckHistory(&version, target); decided {
		return result
	}
	for _, value := range []delivery.Value{version.Channel, version.Offered, version.Conditional, version.Upgradeable.Status} {
		if !value.IsKnown() && value.Quality != delivery.Missing {
			return unknown("the agent reports a value of the ClusterVersion that cannot be used")
		}
	}
	if !version.IsObserved() {
		return unknown("the cluster version operator has not observed the ClusterVersion")
	}
	return checkConditions(spec.ClusterVersion, &version)
}

// CheckHistory returns the result if the history of the cluster decides it, or the annotation by which its
// administrators hold upgrades that have not begun. The newest entry must be known. An upgrade to another
// release that is in progress is an obstacle, even if the installed release is older than the target.
func CheckHistory(version *delivery.ClusterVersion, target delivery.Target) (Result, bool) {
	switch version.Stage(target) {
	case delivery.StageCompleted, delivery.StagePartial: // the run continues from there
		return passed, true
	case delivery.StageNotAccepted, delivery.StageSuperseded, delivery.StageUnknown:
	}
	for _, release := range []string{version.Version.Text, version.Installed.Text} {
		if admission.IsNewer(release, target.Version) {
			return blocked(fleetv1alpha1.ReasonNewerVersionInstalled, "it has %s, which is newer than %s", release, target.Version), true
		}
	}
	if !version.State.Is("Completed") {
		return blocked(ReasonUpgradeInProgress, "it is being upgraded to %s", version.Version.Text), true
	}
	if version.Hold.Quality != delivery.Missing {
		return blocked(fleetv1beta1.ReasonHeld, "the annotation %s of its ClusterVersion holds it: %s",
			upgradev1alpha1.HoldAnnotation, text.Reason(version.Hold.Text)), true
	}
	if version.Mode.Quality != delivery.Missing {
		return blocked(ReasonPreflightRequested, "spec.desiredUpdate.mode of its ClusterVersion is %s, so that a release would be checked and not installed: "+
			"remove it with \"oc patch clusterversion version --type merge -p '{\"spec\":{\"desiredUpdate\":{\"mode\":null}}}'\"", text.Excerpt(version.Mode.Text)), true
	}
	return Result{}, false
}

// checkConditions returns what the cluster version operator and the update service say about the release.
func checkConditions(release *fleetv1beta1.ClusterVersionSpec, version *delivery.ClusterVersion) Result {
	switch {
	case version.Invalid.IsTrue():
		return blocked(ReasonInvalid, "the ClusterVersion is invalid: %s", version.Invalid.Message)
	case version.Failing.IsTrue():
		return blocked(fleetv1alpha1.ReasonClusterVersionFailing, "Failing=True: %s", describe(&version.Failing))
	case version.Upgradeable.IsFalse() && isMinorUpgrade(version.Version.Text, release.Version):
		return blocked(conditionReason(&version.Upgradeable), "Upgradeable=False: %s", describe(&version.Upgradeable))
	case version.Offered.IsKnown():
		return passed
	case version.Conditional.IsKnown() && version.Recommended.IsTrue():
		return passed
	case version.Conditional.IsKnown():
		return blocked(ReasonConditionalRisks, "not recommended: %s", describe(&version.Recommended))
	case release.Version == "":
		return passed // an image need not be offered
	case release.Channel != "" && !version.Channel.Is(release.Channel):
		return blocked(ReasonOfferUnknown, "it is in channel %s; whether %s offers the release is known once the channel is set",
			cmp.Or(version.Channel.Text, "none"), release.Channel)
	}
	return blocked(ReasonNotOffered, "not offered in %s", cmp.Or(version.Channel.Text, "its channel"))
}

// isMinorUpgrade reports whether Upgradeable=False applies. A version that cannot be read counts as a minor upgrade.
func isMinorUpgrade(from, to string) bool {
	change, err := clusterstate.CompareVersions(from, to)
	return err != nil || change.CrossesMinor()
}

func describe(c *delivery.Condition) string {
	switch {
	case c.Reason == "":
		return cmp.Or(c.Message, "no reason is given")
	case c.Message == "":
		return c.Reason
	}
	return c.Reason + ": " + c.Message
}

var usableReason = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,99}$`)

// conditionReason returns the reason of a condition of the cluster, if it can be the reason of one of the hub.
func conditionReason(c *delivery.Condition) string {
	if usableReason.MatchString(c.Reason) {
		return c.Reason
	}
	return ReasonNotUpgradeable
}
