// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

var upgradesInformer = Informer{
	Name: NameUpgrades,
	Doc:  "Reports the current step, the schedule, and the pre-checks of UpgradeConfigs and UpgradeJobs.",
	Find: findUpgrades,
}

func findUpgrades(f Facts) []checks.Finding {
	var found []checks.Finding
	for i := range f.Upgrades {
		u := &f.Upgrades[i]
		switch {
		case u.InProgress():
			found = append(found, runningStep(u))
		case f.isFailed(u):
			found = append(found, failedUpgrade(u))
		case u.Record == nil || !u.Record.Finished():
			found = append(found, f.waitingUpgrade(u)...)
		}
	}
	return found
}

// The last parts of the UIDs of findings that are about no step.
const (
	upgradeSchedule = "Schedule"
	upgradePreCheck = "PreCheck"
	upgradePaused   = "Paused"
	upgradeRefused  = "Accepted"
)

// finding returns a finding about an upgrade. Its UID is kind/namespace/name/attempt/step, whatever is
// wrong with the step.
func (u *Upgrade) finding(step string, level checks.Level, reason, summary string) checks.Finding {
	attempt := int32(1)
	if u.Record != nil && u.Record.Attempt > 0 {
		attempt = u.Record.Attempt
	}
	return checks.Finding{
		ID:    strings.Join([]string{u.Resource.Kind, u.Resource.Namespace, u.Resource.Name, fmt.Sprint(attempt), step}, "/"),
		Scope: checks.ScopeControlPlane, Resources: []checks.Resource{u.Resource}, Level: level, Type: checks.TypeUnknown, Reason: reason, Summary: summary,
	}
}

// runningStep reports the step that an upgrade is at. It is a warning if it takes longer than it should,
// or if its state cannot be determined.
func runningStep(u *Upgrade) checks.Finding {
	if u.Step == nil { // between two steps
		finding := u.finding("Started", checks.LevelStatus, "UpgradeInProgress", "upgrades in progress")
		finding.Since = timeOf(u.Record.StartTime)
		return finding
	}
	finding := u.finding(u.Step.Type, checks.LevelStatus, "UpgradeStepRunning", "upgrades at step "+text.Excerpt(u.Step.Type))
	finding.Since, finding.Description = timeOf(u.Step.StartTime), stepDescription(u.Step)
	switch stalled := u.Condition(history.ConditionStalled); {
	case stalled != nil && stalled.Status == metav1.ConditionTrue:
		finding.Level, finding.Type, finding.Reason = checks.LevelWarning, checks.TypeUpdateSpeed, "UpgradeStepSlow"
		finding.Summary = "upgrades that are slow at step " + text.Excerpt(u.Step.Type)
	case u.Step.Status == metav1.ConditionUnknown:
		finding.Level, finding.Type, finding.Reason = checks.LevelWarning, checks.TypeUnknown, "UpgradeStepUnknown"
		finding.Summary = "upgrades whose state at step " + text.Excerpt(u.Step.Type) + " is unknown"
	}
	return finding
}

func stepDescription(step *history.StepCondition) string {
	return cmp.Or(text.Sanitize(step.Message, text.MaxReason), text.Sanitize(step.Reason, text.MaxReason))
}

// isInstalled reports whether the version of an upgrade was completely installed at any time.
func (f Facts) isInstalled(u *Upgrade) bool {
	return slices.ContainsFunc(f.Version.Updates, func(update clusterstate.Update) bool { return update.Completed && update.Version == u.To })
}

// isFailed reports whether the latest attempt of an upgrade failed, its version is not installed, and
// nothing was begun since: neither another upgrade nor an update without one.
func (f Facts) isFailed(u *Upgrade) bool {
	if u.Record == nil || u.Phase != history.PhaseFailed || f.isInstalled(u) {
		return false
	}
	ended := timeOf(u.Record.CompleteTime)
	if !ended.IsZero() && f.NewestUpdate().Start.After(ended) {
		return false
	}
	for i := range f.Upgrades {
		if record := f.Upgrades[i].Record; record != nil && f.Upgrades[i].Resource != u.Resource && timeOf(record.StartTime).After(ended) {
			return false
		}
	}
	return true
}

func failedUpgrade(u *Upgrade) checks.Finding {
	step := "Failed"
	if u.Step != nil {
		step = u.Step.Type
	}
	finding := u.finding(step, checks.LevelError, "UpgradeFailed", "upgrades that failed")
	finding.Type, finding.Since = checks.TypeUpdateStalled, timeOf(u.Record.CompleteTime)
	finding.Description = cmp.Or(text.Sanitize(u.Record.Message, text.MaxReason), text.Sanitize(u.Record.Reason, text.MaxReason))
	if u.Step != nil && finding.Description == "" {
		finding.Description = stepDescription(u.Step)
	}
	return finding
}

// waitingUpgrade reports an upgrade that has not started: when it is going to, and what is in its way.
func (f Facts) waitingUpgrade(u *Upgrade) []checks.Finding {
	var found []checks.Finding
	switch {
	case f.isInstalled(u):
		return nil // there is nothing left to do
	case u.Paused:
		found = append(found, u.finding(upgradePaused, checks.LevelInfo, "UpgradePaused", "upgrades that are paused"))
	case !u.Start.IsZero():
		finding := u.finding(upgradeSchedule, checks.LevelInfo, "UpgradeScheduled", "upgrades that are scheduled")
		finding.Description = fmt.Sprintf("The upgrade to %s is going to start at %s.", text.Excerpt(u.To), u.Start.UTC().Format(time.RFC3339))
		if !f.Now.Before(u.Start) { // it is due, and waits for something
			finding.Reason, finding.Summary = "UpgradeDue", "upgrades that are due and have not started"
			finding.Description = fmt.Sprintf("The upgrade to %s was to start at %s.", text.Excerpt(u.To), u.Start.UTC().Format(time.RFC3339))
		}
		found = append(found, finding)
	}
	for _, c := range []struct{ condition, part, reason, summary string }{
		{history.ConditionPreCheckPassed, upgradePreCheck, "UpgradePreCheckFailed", "upgrades whose pre-check found problems"},
		{history.ConditionAccepted, upgradeRefused, "UpgradeNotAccepted", "upgrades that are not accepted"},
	} {
		if condition := u.Condition(c.condition); condition != nil && condition.Status != metav1.ConditionTrue {
			finding := u.finding(c.part, checks.LevelWarning, c.reason, c.summary)
			finding.Type, finding.Since = checks.TypeUpdateStalled, condition.LastTransitionTime.Time
			finding.Description = cmp.Or(text.Sanitize(condition.Message, text.MaxReason), text.Sanitize(condition.Reason, text.MaxReason))
			found = append(found, finding)
		}
	}
	return found
}
