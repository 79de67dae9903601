// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Time until an operator that is unavailable or degraded, or does not report this, becomes a warning and then
// an error.
const (
	unreportedWarning  = 10 * time.Minute
	unavailableWarning = 5 * time.Minute
	unavailableError   = 20 * time.Minute
	degradedWarning    = 5 * time.Minute
	degradedError      = 40 * time.Minute
)

var versionResource = Resource{Group: configv1.GroupName, Kind: "ClusterVersion", Name: clusterstate.VersionKey.Name}

func operatorResource(name string) Resource {
	return Resource{Group: configv1.GroupName, Kind: "ClusterOperator", Name: name}
}

// controlPlane is the scope of control plane findings.
var controlPlane = scope{scope: ScopeControlPlane}

// findVersion returns findings about the ClusterVersion. It needs the findings about operators as possible
// causes.
func (f Facts) findVersion(operators []Finding) []Finding {
	if !f.Has(SourceClusterVersion) {
		return nil
	}
	var found []Finding
	if f.UpdatingControlPlane() {
		found = append(found, f.controlPlaneProgress())
	}
	if failing, is := f.versionFailing(operators); is {
		found = append(found, failing)
	}
	if refused, is := f.releaseRefused(); is {
		found = append(found, refused)
	}
	if updates := f.Version.Updates; f.UpdatingControlPlane() && len(updates) > 1 && !updates[1].Completed {
		finding := controlPlane.finding(LevelWarning, TypeUpdateStalled, "PreviousUpdateIncomplete",
			"the previous update was not completed", versionResource)
		finding.Since = f.NewestUpdate().Start
		finding.Description = fmt.Sprintf("The update to %s was replaced before it was completed. Parts of the cluster may run any of the releases.", updates[1].Release)
		found = append(found, finding)
	}
	return found
}

// controlPlaneProgress reports the update in progress. The first entry of the history is the installation of
// the cluster. An update to the same version installs another image.
func (f Facts) controlPlaneProgress() Finding {
	newest := f.NewestUpdate()
	reason, summary := "ControlPlaneUpdating", "the control plane is being updated"
	switch f.Version.UpdateKind(0) {
	case clusterstate.UpdateInstallation:
		reason, summary = "ControlPlaneInstalling", "the cluster is being installed"
	case clusterstate.UpdateMigration:
		reason, summary = "ControlPlaneMigrating", "the control plane is being updated to another image of its version"
	default:
	}
	finding := controlPlane.finding(LevelStatus, TypeUnknown, reason, summary, versionResource)
	finding.Since, finding.Description = newest.Start, f.Version.Progressing.MessageOrReason()
	return finding
}

// FailingLimit is how long the cluster version operator may be failing before this is an error and the update
// is stuck.
const FailingLimit = 10 * time.Minute

// FailingSince returns since when the cluster version operator has been failing during the newest update. It
// returns zero if it is not failing or the time is unknown.
func (f Facts) FailingSince() time.Time {
	failing := f.Version.Failing
	if !failing.IsTrue() || !clusterstate.IsPlausible(failing.Since, f.Now) {
		return time.Time{}
	}
	if start := f.NewestUpdate().Start; f.UpdatingControlPlane() && start.After(failing.Since) {
		return start
	}
	return failing.Since
}

// versionFailing returns a finding unless the cluster version operator reports that it is not failing. Its
// causes are the operators that the message names or, if it names none, all operators with findings.
func (f Facts) versionFailing(operators []Finding) (Finding, bool) {
	failing := f.Version.Failing
	if failing.IsFalse() {
		return Finding{}, false
	}
	finding := controlPlane.finding(LevelWarning, TypeUpdateStalled, "ClusterVersionFailing", "the cluster version operator is failing", versionResource)
	finding.Since = failing.Since
	finding.Description = describeCondition(failing, "Failing")
	if failing.IsTrue() {
		if since := f.FailingSince(); !since.IsZero() && f.Now.Sub(since) >= FailingLimit {
			finding.Level = LevelError
		}
		finding.CausedBy = causedByOperators(failing, operators)
	} else {
		finding.Reason, finding.Summary = "ClusterVersionFailingUnknown", "it is unknown whether the cluster version operator is failing"
	}
	return finding, true
}

// describeCondition returns the reason and message of a condition, or its status if it has neither.
func describeCondition(c clusterstate.Condition, name string) string {
	switch {
	case c.Status == "":
		return fmt.Sprintf("The condition %s is not reported.", name)
	case c.Reason == "" && c.Message == "":
		return fmt.Sprintf("The condition %s is %s, without a reason or a message.", name, text.Excerpt(c.Status))
	}
	return c.ReasonAndMessage()
}

// causedByOperators returns the UIDs of warnings and errors about the operators that a message names. If it
// names none, it returns all of them.
func causedByOperators(failing clusterstate.Condition, operators []Finding) []string {
	var named, all []string
	for i := range operators {
		if operators[i].Level < LevelWarning {
			continue
		}
		all = append(all, operators[i].UID())
		if failing.Mentions(operators[i].Resources[0].Name) {
			named = append(named, operators[i].UID())
		}
	}
	if len(named) > 0 {
		return named
	}
	return all
}

func (f Facts) releaseRefused() (Finding, bool) {
	refused := f.Version.ReleaseAccepted
	if release, is := f.Version.RefusedElsewhere(); is && !f.Version.Invalid.IsTrue() {
		finding := controlPlane.finding(LevelWarning, TypeUnknown, "RequestRefused",
			"the cluster version operator refuses another requested release", versionResource)
		finding.Since = refused.Since
		finding.Description = fmt.Sprintf("The request of %s is refused while %s is being installed, which goes on. %s", release, f.NewestUpdate().Release, describeCondition(refused, "ReleaseAccepted"))
		return finding, true
	}
	switch _, about := f.Version.Refusal(); {
	case f.Version.Invalid.IsTrue():
		refused = f.Version.Invalid
	case !refused.IsFalse() || f.Version.Requested != nil && !about: // about an earlier request
		return Finding{}, false
	}
	finding := controlPlane.finding(LevelError, TypeUpdateStalled, "ReleaseRefused",
		"the cluster version operator refuses the requested release", versionResource)
	finding.Since, finding.Description = refused.Since, describeCondition(refused, "ReleaseAccepted")
	return finding, true
}

func (f Facts) isInstalling() bool {
	return f.UpdatingControlPlane() && f.Version.UpdateKind(0) == clusterstate.UpdateInstallation
}

func (f Facts) findOperators() []Finding {
	if !f.Has(SourceOperators) {
		return nil
	}
	operators, known := f.ReleaseOperators()
	var found []Finding
	for i := range operators {
		found = append(found, f.findOperator(&operators[i])...)
	}
	if !known {
		note := controlPlane.finding(LevelInfo, TypeUnknown, "OperatorsNotAnnotated", "all ClusterOperators count as parts of the release")
		note.Key = "ClusterOperators"
		note.Description = "No ClusterOperator reports the version of a release, or is annotated with the cluster profiles that include or exclude it."
		found = append(found, note)
	}
	return found
}

func (f Facts) findOperator(operator *clusterstate.ClusterOperator) []Finding {
	var found []Finding
	resource := operatorResource(operator.Name)
	if operator.Available.IsTrue() || !f.isInstalling() { // an installing operator is not judged until it is available
		found = f.judgeOperator(operator, resource)
	}
	found = slices.DeleteFunc(found, func(finding Finding) bool { return finding.Level < LevelWarning })
	if f.UpdatingControlPlane() && operator.Progressing.IsTrue() && !f.IsOperatorUpdated(*operator) {
		finding := controlPlane.finding(LevelStatus, TypeUnknown, "OperatorUpdating", "cluster operators being updated", resource)
		finding.Since, finding.Description = operator.Progressing.Since, text.Excerpt(operator.Progressing.MessageOrReason())
		found = append(found, finding)
	}
	return found
}

// judgeOperator returns findings about an operator. Their level depends on how long the problem has lasted.
func (f Facts) judgeOperator(operator *clusterstate.ClusterOperator, resource Resource) []Finding {
	var found []Finding
	add := func(reason, summary, description string, level Level, since time.Time) {
		finding := controlPlane.finding(level, TypeClusterAvailability, reason, summary, resource)
		finding.Description, finding.Since = description, since
		found = append(found, finding)
	}
	if c := operator.Available; operator.IsUnavailable() {
		add("OperatorUnavailable", "cluster operators unavailable", describeCondition(c, "Available"), f.levelSince(c.Since, unavailableWarning, unavailableError), c.Since)
	}
	if c := operator.Degraded; operator.IsDegraded() {
		add("OperatorDegraded", "cluster operators degraded", describeCondition(c, "Degraded"), f.levelSince(c.Since, degradedWarning, degradedError), c.Since)
	}
	if missing := operator.Unreported(); len(missing) > 0 {
		level := min(f.levelSince(operator.Created, unreportedWarning, unreportedWarning), LevelWarning)
		add("OperatorStateUnknown", "cluster operators that do not report their state", "The operator reports "+missingConditions(missing)+".", level, operator.Created)
	}
	return found
}

// levelSince returns the level of a problem that started at the given time. If the time is unknown, the level
// is warning and never error. During an update, a problem that predates it is not an error, because the
// update continues in spite of it.
func (f Facts) levelSince(since time.Time, warning, severe time.Duration) Level {
	if !clusterstate.IsPlausible(since, f.Now) {
		return LevelWarning
	}
	switch age := f.Now.Sub(since); {
	case age > severe && (!f.UpdatingControlPlane() || !since.Before(f.NewestUpdate().Start)):
		return LevelError
	case age > warning:
		return LevelWarning
	}
	return LevelStatus
}
