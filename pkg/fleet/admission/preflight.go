// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	workv1 "open-cluster-management.io/api/work/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Reasons of obstacles. The reasons of refusals and of the condition Upgradeable of a cluster are others.
const (
	ReasonNoFeedback         = "NoFeedback"         // the agent has not answered in time
	ReasonVersionUnknown     = "VersionUnknown"     // only claims are read, and the cluster does not claim its release
	ReasonUpgradeInProgress  = "UpgradeInProgress"  // to another release
	ReasonPreflightRequested = "PreflightRequested" // a check alone; the hub cannot remove a field that a cluster may not declare
	ReasonInvalid            = "InvalidClusterVersion"
	ReasonNotUpgradeable     = "NotUpgradeable"   // Upgradeable=False without a usable reason
	ReasonNotOffered         = "NotOffered"       // by the update service
	ReasonOfferUnknown       = "OfferUnknown"     // the channel of the cluster is not the channel of the upgrade
	ReasonConditionalRisks   = "ConditionalRisks" // the release is not recommended for the cluster
)

// Preflight is the state of knowledge about the upgrade of a cluster before it is requested. Missing data
// is an obstacle, or is waited for; it is never good news. Nothing is acknowledged, and no risk is accepted.
type Preflight struct {
	Checked  bool         // the result is final
	Obstacle rollout.Stop // what prevents the upgrade, if anything
}

var passed = Preflight{Checked: true}

// IsHold reports whether the obstacle is what the administrators of the cluster do, and none of the release: a run waits for its end.
func (p *Preflight) IsHold() bool {
	return slices.Contains([]string{fleetv1beta1.ReasonHeld, ReasonUpgradeInProgress, ReasonPreflightRequested}, p.Obstacle.Reason)
}

func blocked(reason, format string, args ...any) Preflight {
	return Preflight{Checked: true, Obstacle: rollout.Stop{Reason: reason, Message: fmt.Sprintf(format, args...)}}
}

// CheckClaims checks a member by what the hub knows without writing to the cluster. If that does not suffice, its agent
// must report.
func (f *Fleet) CheckClaims(m *FleetMember) Preflight {
	spec, cluster := &f.Upgrade.Spec, f.Clusters[m.Name]
	switch {
	case cluster == nil, m.HoldReason == fleetv1beta1.ReasonHeld, m.HoldReason == fleetv1alpha1.ReasonClusterDetached:
		return blocked(fleetv1beta1.ReasonHeld, "%s", cmp.Or(m.Hold, Detached(cluster)))
	case m.HoldReason == fleetv1beta1.ReasonDependencyIncomplete:
		return blocked(m.HoldReason, "%s", m.Hold)
	case f.Locked[m.Name] != "":
		return blocked(fleetv1alpha1.ReasonLockedBy, "ManagedClustersUpgrade %s is upgrading it", f.Locked[m.Name])
	}
	outcome := Outcome(spec, cluster, false)
	switch {
	case outcome != nil && outcome.State == fleetv1alpha1.StateComplete:
		return passed
	case outcome != nil:
		return blocked(outcome.Reason, "%s", outcome.Message)
	case Unreachable(cluster) != "":
		return blocked(fleetv1beta1.ReasonUnreachable, "unreachable")
	case spec.ClusterVersion == nil:
		return passed
	case spec.ClaimsOnly && clusterstate.ValidateVersion(Claims(cluster)[ClaimVersion]) != nil:
		return blocked(ReasonVersionUnknown, "it does not claim its release")
	}
	return Preflight{Checked: spec.ClaimsOnly}
}

// Check checks a member by its claims, or by what its agent reports in a work, if there is one. The agent must
// have answered once its time has expired.
func (f *Fleet) Check(m *FleetMember, work *workv1.ManifestWork, expired bool) Preflight {
	spec := &f.Upgrade.Spec
	if result := f.CheckClaims(m); result.Checked {
		return result
	}
	unknown := func(message string) Preflight {
		if expired {
			return blocked(ReasonNoFeedback, "%s", message)
		}
		return Preflight{}
	}
	if work == nil {
		return unknown("the agent has not answered")
	}
	feedback := delivery.Read(work)
	version := feedback.ClusterVersion()
	if !feedback.IsApplied() || !version.Version.IsKnown() || !version.State.IsKnown() {
		return unknown(cmp.Or(feedback.Message, "the agent does not report the ClusterVersion"))
	}
	target := delivery.Target{Version: spec.ClusterVersion.Version, Image: spec.ClusterVersion.Image}
	if result := CheckHistory(&version, target); result.Checked {
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

// CheckHistory checks a cluster by its history, whose newest entry must be known, and by what its administrators have set
// on the ClusterVersion. An upgrade in progress to another release is an obstacle, even if the installed release
// is older than the target.
func CheckHistory(version *delivery.ClusterVersion, target delivery.Target) Preflight {
	switch version.Stage(target) {
	case delivery.StageCompleted, delivery.StagePartial: // the run continues from there
		return passed
	case delivery.StageNotAccepted, delivery.StageSuperseded, delivery.StageUnknown:
	}
	for _, release := range []string{version.Version.Text, version.Installed.Text} {
		if IsNewer(release, target.Version) {
			return blocked(fleetv1alpha1.ReasonNewerVersionInstalled, "it has %s, which is newer than %s", release, target.Version)
		}
	}
	switch {
	case !version.State.Is("Completed"):
		return blocked(ReasonUpgradeInProgress, "it is being upgraded to %s", version.Version.Text)
	case version.Hold.Quality != delivery.Missing:
		return blocked(fleetv1beta1.ReasonHeld, "the annotation %s of its ClusterVersion holds it: %s",
			upgradev1alpha1.HoldAnnotation, text.Reason(version.Hold.Text))
	case version.Mode.Quality != delivery.Missing:
		return blocked(ReasonPreflightRequested, "spec.desiredUpdate.mode of its ClusterVersion is %s, so that a release would be checked and not installed: "+
			"remove it with \"oc patch clusterversion version --type merge -p '{\"spec\":{\"desiredUpdate\":{\"mode\":null}}}'\"", text.Excerpt(version.Mode.Text))
	}
	return Preflight{}
}

// checkConditions checks a cluster by what its operator and the update service say about the release.
func checkConditions(release *fleetv1beta1.ClusterVersionSpec, version *delivery.ClusterVersion) Preflight {
	switch {
	case version.Invalid.IsTrue():
		return blocked(ReasonInvalid, "the ClusterVersion is invalid: %s", version.Invalid.Message)
	case version.Failing.IsTrue():
		return blocked(fleetv1alpha1.ReasonClusterVersionFailing, "Failing=True: %s", explain(&version.Failing))
	case version.Upgradeable.IsFalse() && isMinorUpgrade(version.Version.Text, release.Version):
		reason := version.Upgradeable.Reason
		if !usableReason.MatchString(reason) {
			reason = ReasonNotUpgradeable
		}
		return blocked(reason, "Upgradeable=False: %s", explain(&version.Upgradeable))
	case version.Offered.IsKnown(), version.Conditional.IsKnown() && version.Recommended.IsTrue():
		return passed
	case version.Conditional.IsKnown():
		return blocked(ReasonConditionalRisks, "not recommended: %s", explain(&version.Recommended))
	case release.Version == "":
		return passed // an image need not be offered
	case release.Channel != "" && !version.Channel.Is(release.Channel):
		return blocked(ReasonOfferUnknown, "it is in channel %s; whether %s offers the release is known once the channel is set",
			cmp.Or(version.Channel.Text, "none"), release.Channel)
	}
	return blocked(ReasonNotOffered, "not offered in %s", cmp.Or(version.Channel.Text, "its channel"))
}

var usableReason = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,99}$`) // as the reason of a condition of the hub

// isMinorUpgrade reports whether Upgradeable=False applies. A version that cannot be read counts as a minor upgrade.
func isMinorUpgrade(from, to string) bool {
	change, err := clusterstate.CompareVersions(from, to)
	return err != nil || change.CrossesMinor()
}

func explain(c *delivery.Condition) string {
	switch {
	case c.Reason == "":
		return cmp.Or(c.Message, "no reason is given")
	case c.Message == "":
		return c.Reason
	}
	return c.Reason + ": " + c.Message
}
