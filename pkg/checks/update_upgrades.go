// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

func findUpgrades(f Facts, _ RulePhase) []Finding {
	var found []Finding
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

// finding returns a finding about an upgrade. Its UID is kind/namespace/name/attempt/step, regardless of the
// problem.
func (u *Upgrade) finding(step string, level Level, reason, summary string) Finding {
	attempt := int32(1)
	if u.Record != nil && u.Record.Attempt > 0 {
		attempt = u.Record.Attempt
	}
	finding := controlPlane.finding(level, TypeUnknown, reason, summary, u.Resource)
	finding.ID = strings.Join([]string{u.Resource.Kind, u.Resource.Namespace, u.Resource.Name, fmt.Sprint(attempt), step}, "/")
	return finding
}

// runningStep reports the current step of an upgrade. It is a warning if the step takes longer than it should
// or its state cannot be determined.
func runningStep(u *Upgrade) Finding {
	if u.Step == nil { // between steps
		finding := u.finding("Started", LevelStatus, "UpgradeInProgress", "upgrades in progress")
		finding.Since = text.TimeOf(u.Record.StartTime)
		return finding
	}
	finding := u.finding(u.Step.Type, LevelStatus, "UpgradeStepRunning", "upgrades at step "+text.Excerpt(u.Step.Type))
	finding.Since, finding.Description = text.TimeOf(u.Step.StartTime), sanitized(u.Step.Message, u.Step.Reason)
	switch stalled := meta.FindStatusCondition(u.Conditions, history.ConditionSlow); {
	case stalled != nil && stalled.Status == metav1.ConditionTrue:
		finding.Level, finding.Type, finding.Reason = LevelWarning, TypeUpdateSpeed, "UpgradeStepSlow"
		finding.Summary = "upgrades that are slow at step " + text.Excerpt(u.Step.Type)
	case u.Step.Status == metav1.ConditionUnknown:
		finding.Level, finding.Type, finding.Reason = LevelWarning, TypeUnknown, "UpgradeStepUnknown"
		finding.Summary = "upgrades whose state at step " + text.Excerpt(u.Step.Type) + " is unknown"
	}
	return finding
}

// sanitized returns the sanitized message or, if it is empty, the reason.
func sanitized(message, reason string) string {
	return cmp.Or(text.Sanitize(message, text.MaxReason), text.Sanitize(reason, text.MaxReason))
}

// isInstalled reports whether an upgrade's version was completely installed, and no earlier version since.
func (f Facts) isInstalled(u *Upgrade) bool {
	for _, update := range f.Version.Updates { // latest first
		if !update.Completed {
			continue
		}
		if update.Version == u.To {
			return true
		}
		if change, err := clusterstate.CompareVersions(u.To, update.Version); err == nil && change == clusterstate.Downgrade {
			return false
		}
	}
	return false
}

// isFailed reports whether the latest attempt of an upgrade failed, its version is not installed, and nothing
// was started since, neither another upgrade nor an update outside of one.
func (f Facts) isFailed(u *Upgrade) bool {
	if u.Record == nil || u.Phase != history.PhaseFailed || f.isInstalled(u) {
		return false
	}
	ended := text.TimeOf(u.Record.CompleteTime)
	if !ended.IsZero() && f.NewestUpdate().Start.After(ended) {
		return false
	}
	for i := range f.Upgrades {
		if record := f.Upgrades[i].Record; record != nil && f.Upgrades[i].Resource != u.Resource && text.TimeOf(record.StartTime).After(ended) {
			return false
		}
	}
	return true
}

func failedUpgrade(u *Upgrade) Finding {
	step := "Failed"
	if u.Step != nil {
		step = u.Step.Type
	}
	finding := u.finding(step, LevelError, "UpgradeFailed", "upgrades that failed")
	finding.Type, finding.Since = TypeUpdateStalled, text.TimeOf(u.Record.CompleteTime)
	finding.Description = sanitized(u.Record.Message, u.Record.Reason)
	if u.Step != nil && finding.Description == "" {
		finding.Description = sanitized(u.Step.Message, u.Step.Reason)
	}
	return finding
}

// waitingUpgrade reports when an upgrade will start and what prevents it.
func (f Facts) waitingUpgrade(u *Upgrade) []Finding {
	var found []Finding
	switch {
	case f.isInstalled(u):
		return nil // nothing left to do
	case u.Paused:
		found = append(found, u.finding("Paused", LevelInfo, "UpgradePaused", "upgrades that are paused"))
	case !u.Start.IsZero():
		finding := u.finding("Schedule", LevelInfo, "UpgradeScheduled", "upgrades that are scheduled")
		finding.Description = fmt.Sprintf("The upgrade to %s is going to start at %s.", text.Excerpt(u.To), text.FormatTime(u.Start))
		if !f.Now.Before(u.Start) { // due and waiting for something
			finding.Reason, finding.Summary = "UpgradeDue", "upgrades that are due and have not started"
			finding.Description = fmt.Sprintf("The upgrade to %s was to start at %s.", text.Excerpt(u.To), text.FormatTime(u.Start))
		}
		found = append(found, finding)
	}
	for _, c := range []struct{ condition, part, reason, summary string }{
		{history.ConditionPreCheckPassed, "PreCheck", "UpgradePreCheckFailed", "upgrades whose pre-check found problems"},
		{history.ConditionAccepted, "Accepted", "UpgradeNotAccepted", "upgrades that are not accepted"},
	} {
		if condition := meta.FindStatusCondition(u.Conditions, c.condition); condition != nil && condition.Status != metav1.ConditionTrue {
			finding := u.finding(c.part, LevelWarning, c.reason, c.summary)
			finding.Type, finding.Since = TypeUpdateStalled, condition.LastTransitionTime.Time
			finding.Description = sanitized(condition.Message, condition.Reason)
			found = append(found, finding)
		}
	}
	return found
}
