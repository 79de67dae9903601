// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

var controlPlaneInformer = Informer{
	Name:     NameControlPlane,
	Doc:      "Reports how the update of the control plane goes, and which ClusterOperators are unavailable or degraded.",
	Requires: []Source{SourceClusterVersion, SourceOperators},
	Find:     findControlPlane,
}

// After these times an operator that is unavailable or degraded is a warning, and an error.
const (
	unavailableWarning = 5 * time.Minute
	unavailableError   = 20 * time.Minute
	degradedWarning    = 5 * time.Minute
	degradedError      = 40 * time.Minute
)

func findControlPlane(f Facts) []checks.Finding {
	operators := f.findOperators()
	return append(f.findVersion(operators), operators...)
}

var versionResource = checks.Resource{Group: configv1.GroupName, Kind: "ClusterVersion", Name: clusterstate.VersionKey.Name}

func operatorResource(name string) checks.Resource {
	return checks.Resource{Group: configv1.GroupName, Kind: "ClusterOperator", Name: name}
}

// controlPlaneFinding returns a finding about one object of the control plane.
func controlPlaneFinding(level checks.Level, kind checks.Type, reason, summary string, resource checks.Resource) checks.Finding {
	return checks.Finding{
		Scope: checks.ScopeControlPlane, Resources: []checks.Resource{resource}, Level: level, Type: kind, Reason: reason, Summary: summary,
	}
}

// findVersion returns what the ClusterVersion reports, given the findings about operators.
func (f Facts) findVersion(operators []checks.Finding) []checks.Finding {
	if !f.Has(SourceClusterVersion) {
		return nil
	}
	var found []checks.Finding
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
		finding := controlPlaneFinding(checks.LevelWarning, checks.TypeUpdateStalled, "PreviousUpdateIncomplete",
			"the previous update was not completed", versionResource)
		finding.Since = f.NewestUpdate().Start
		finding.Description = fmt.Sprintf("The update to %s was replaced before it was completed. Parts of the cluster may run any of the releases.", updates[1].Release)
		found = append(found, finding)
	}
	return found
}

// controlPlaneProgress reports the update that is in progress. The first entry of the history is the
// installation of the cluster; an update to the same version installs another image.
func (f Facts) controlPlaneProgress() checks.Finding {
	newest := f.NewestUpdate()
	reason, summary := "ControlPlaneUpdating", "the control plane is being updated"
	switch f.Version.UpdateKind(0) {
	case clusterstate.UpdateInstallation:
		reason, summary = "ControlPlaneInstalling", "the cluster is being installed"
	case clusterstate.UpdateMigration:
		reason, summary = "ControlPlaneMigrating", "the control plane is being updated to another image of its version"
	default:
	}
	finding := controlPlaneFinding(checks.LevelStatus, checks.TypeUnknown, reason, summary, versionResource)
	finding.Since, finding.Description = newest.Start, f.Version.Progressing.MessageOrReason()
	return finding
}

// versionFailing returns a finding unless the cluster version operator reports that it is not failing.
// The operators that its message names cause that; if it names none, all of those with findings.
func (f Facts) versionFailing(operators []checks.Finding) (checks.Finding, bool) {
	failing := f.Version.Failing
	if failing.IsFalse() {
		return checks.Finding{}, false
	}
	finding := controlPlaneFinding(checks.LevelWarning, checks.TypeUpdateStalled, "ClusterVersionFailing", "the cluster version operator is failing", versionResource)
	finding.Since = failing.Since
	finding.Description = describeCondition(failing, "Failing")
	if failing.IsTrue() {
		finding.CausedBy = causedByOperators(failing.Message, operators)
	} else {
		finding.Reason, finding.Summary = "ClusterVersionFailingUnknown", "it is unknown whether the cluster version operator is failing"
	}
	return finding, true
}

// describeCondition returns the reason and the message of the condition of that name, or its status if it has
// neither.
func describeCondition(c clusterstate.Condition, name string) string {
	switch {
	case c.Status == "":
		return fmt.Sprintf("The condition %s is not reported.", name)
	case c.Reason == "" && c.Message == "":
		return fmt.Sprintf("The condition %s is %s, without a reason or a message.", name, text.Excerpt(c.Status))
	}
	return c.ReasonAndMessage()
}

// causedByOperators returns the UIDs of the warnings and errors about operators that a message names,
// or else of all of them.
func causedByOperators(message string, operators []checks.Finding) []string {
	var named, all []string
	words := strings.FieldsFunc(message, func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	for i := range operators {
		if operators[i].Level < checks.LevelWarning {
			continue
		}
		all = append(all, operators[i].UID())
		if slices.Contains(words, operators[i].Resources[0].Name) {
			named = append(named, operators[i].UID())
		}
	}
	if len(named) > 0 {
		return named
	}
	return all
}

// releaseRefused returns a finding if the cluster version operator refuses the requested release.
func (f Facts) releaseRefused() (checks.Finding, bool) {
	refused := f.Version.ReleaseAccepted
	switch {
	case f.Version.Invalid.IsTrue():
		refused = f.Version.Invalid
	case !refused.IsFalse():
		return checks.Finding{}, false
	}
	finding := controlPlaneFinding(checks.LevelError, checks.TypeUpdateStalled, "ReleaseRefused",
		"the cluster version operator refuses the requested release", versionResource)
	finding.Since, finding.Description = refused.Since, describeCondition(refused, "ReleaseAccepted")
	return finding, true
}

// findOperators returns the findings about the operators of the release.
func (f Facts) findOperators() []checks.Finding {
	if !f.Has(SourceOperators) {
		return nil
	}
	operators, annotated := f.ReleaseOperators()
	var found []checks.Finding
	for i := range operators {
		found = append(found, f.findOperator(&operators[i])...)
	}
	if !annotated {
		note := checks.Finding{
			Key: "ClusterOperators", Scope: checks.ScopeControlPlane, Level: checks.LevelInfo, Type: checks.TypeUnknown, Reason: "OperatorsNotAnnotated",
			Summary:     "all ClusterOperators count as parts of the release",
			Description: "No ClusterOperator is annotated with the cluster profiles that include or exclude it.",
		}
		found = append(found, note)
	}
	return found
}

func (f Facts) findOperator(operator *clusterstate.ClusterOperator) []checks.Finding {
	var found []checks.Finding
	resource := operatorResource(operator.Name)
	if !operator.Available.IsTrue() {
		finding := controlPlaneFinding(checks.LevelStatus, checks.TypeClusterAvailability, "OperatorUnavailable", "cluster operators unavailable", resource)
		f.judgeOperator(&finding, operator, operator.Available, "Available", unavailableWarning, unavailableError)
		found = append(found, finding)
	}
	if !operator.Degraded.IsFalse() {
		finding := controlPlaneFinding(checks.LevelStatus, checks.TypeClusterAvailability, "OperatorDegraded", "cluster operators degraded", resource)
		f.judgeOperator(&finding, operator, operator.Degraded, "Degraded", degradedWarning, degradedError)
		found = append(found, finding)
	}
	found = slices.DeleteFunc(found, func(finding checks.Finding) bool { return finding.Level < checks.LevelWarning })
	if f.UpdatingControlPlane() && operator.Progressing.IsTrue() && !f.IsOperatorUpdated(*operator) {
		finding := controlPlaneFinding(checks.LevelStatus, checks.TypeUnknown, "OperatorUpdating", "cluster operators being updated", resource)
		finding.Since, finding.Description = operator.Progressing.Since, text.Excerpt(operator.Progressing.MessageOrReason())
		found = append(found, finding)
	}
	return found
}

// judgeOperator sets level, time, and description of a finding about a condition that is not as it
// should be. A condition that is not reported counts since the operator was created. One whose time is
// unknown is a warning at once, and never an error.
func (f Facts) judgeOperator(finding *checks.Finding, operator *clusterstate.ClusterOperator, c clusterstate.Condition, name string, warning, severe time.Duration) {
	since := c.Since
	if c.Status == "" {
		since = operator.Created
	}
	finding.Description = describeCondition(c, name)
	if !clusterstate.IsPlausible(since, f.Now) {
		finding.Level = checks.LevelWarning
		return
	}
	finding.Since = since
	switch age := f.Now.Sub(since); {
	case age > severe:
		finding.Level = checks.LevelError
	case age > warning:
		finding.Level = checks.LevelWarning
	}
}
