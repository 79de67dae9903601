// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// The reasons in the summary of an upgrade. A step's own reasons may stand there too.
const (
	reasonScheduled        = "Scheduled"
	reasonPaused           = "Paused"
	reasonWindowMissed     = "WindowMissed"
	reasonAlreadyAtVersion = "AlreadyAtVersion"
	reasonCannotObserve    = "CannotObserve"
	reasonUnknownType      = "UnknownType"
	reasonInvalidVersion   = "InvalidVersion"
	reasonInvalidTime      = "InvalidTime"
	reasonDowngrade        = "Downgrade"
	reasonClusterLocked    = "ClusterLocked"
	reasonValid            = "Valid"
	reasonUpgraded         = "Upgraded"
	reasonFailed           = "Failed"
	reasonOnTime           = "OnTime"
	reasonNothingFound     = "NothingFound"
	reasonNotConfigured    = "NotConfigured" // of a step that has nothing to do

	reasonConfigurationInvalid = "ConfigurationInvalid"
)

// workersStep is the step whose times are also the times of the worker nodes.
const workersStep = "AllWorkerNodesUpgraded"

// condition is a condition of the summary without its times. An empty status
// means that there is no such condition.
type condition struct {
	status          metav1.ConditionStatus
	reason, message string
}

// valid is what is accepted of an upgrade that could run.
var valid = condition{metav1.ConditionTrue, reasonValid, "the version and the type are valid"}

// summary is everything that there is to say about an upgrade at one moment.
type summary struct {
	phase          history.Phase
	accepted       condition
	progressing    condition
	succeeded      condition
	stalled        condition
	precheck       condition // what the early check has found
	nextTransition time.Time // the next thing to happen on its own
	recheckAt      time.Time // when to look again before that; zero: there is no need
	finished       bool
}

// requeueAt is when to look again.
func (s summary) requeueAt() time.Time {
	if !s.recheckAt.IsZero() && (s.nextTransition.IsZero() || s.recheckAt.Before(s.nextTransition)) {
		return s.recheckAt
	}
	return s.nextTransition
}

// summarize says what the record of an upgrade that has begun means.
func summarize(record history.Record, engineSummary engine.Summary, paused bool) summary {
	s := summary{
		accepted:       condition{metav1.ConditionTrue, reasonValid, "the version and the type are valid, and no other upgrade is under way"},
		stalled:        condition{metav1.ConditionFalse, reasonOnTime, "no step takes longer than it should"},
		nextTransition: engineSummary.Deadline,
		finished:       engineSummary.Finished(),
	}
	switch engineSummary.State {
	case engine.Succeeded:
		s.phase = history.PhaseUpgraded
		s.progressing = condition{metav1.ConditionFalse, reasonUpgraded, "the upgrade to " + record.Version + " is complete"}
		s.succeeded = condition{metav1.ConditionTrue, reasonUpgraded, "the cluster was upgraded to " + record.Version}
	case engine.CleaningUp, engine.Failed:
		s.phase = history.PhaseFailed
		cause := engineSummary.Failure.Type + ": " + engineSummary.Failure.Message
		s.progressing = condition{metav1.ConditionFalse, reasonFailed, "the upgrade to " + record.Version + " was given up: " + cause}
		s.succeeded = condition{metav1.ConditionFalse, sanitizeReason(engineSummary.Failure.Reason), cause}
	case engine.Idle, engine.Running, engine.Finishing:
		s.phase = history.PhaseUpgrading
	}
	if c := engineSummary.Current; c != nil {
		s.progressing = condition{metav1.ConditionTrue, c.Type, c.Message}
		if c.Status == metav1.ConditionUnknown {
			s.progressing = condition{metav1.ConditionUnknown, reasonCannotObserve, c.Type + ": " + c.Message}
		}
		if c.Status == metav1.ConditionUnknown && s.phase == history.PhaseUpgrading {
			s.phase = history.PhaseUnknown
		}
		if engineSummary.Stalled {
			s.stalled = condition{metav1.ConditionTrue, c.Type, fmt.Sprintf("%s began at %s and takes longer than it should: %s",
				c.Type, c.StartTime.UTC().Format(time.RFC3339), c.Message)}
		}
	}
	if paused && engineSummary.Committed && !s.finished {
		s.progressing.message += " (spec.paused has no effect once the upgrade has commenced)"
	}
	return s
}

// buildStatus is the status that shows the record and its summary.
func buildStatus(cfg *v1alpha1.UpgradeConfig, record history.Record, s summary, configError string, now time.Time) v1alpha1.UpgradeConfigStatus {
	status := *cfg.Status.DeepCopy()
	status.ObservedGeneration = cfg.Generation
	status.NextTime = nil
	if !s.nextTransition.IsZero() {
		status.NextTime = toMetaTime(s.nextTransition)
	}

	record.Phase = s.phase
	if s.finished && record.CompleteTime == nil {
		record.CompleteTime = toMetaTime(now)
	}
	if i := slices.IndexFunc(record.Conditions, func(c history.StepCondition) bool { return c.Type == workersStep }); i >= 0 {
		record.WorkerStartTime = record.Conditions[i].StartTime
		record.WorkerCompleteTime = record.Conditions[i].CompleteTime
	}
	status.History = upsertAttempt(status.History, record)

	for _, c := range []struct {
		name string
		condition
	}{
		{v1alpha1.ConditionAccepted, s.accepted},
		{v1alpha1.ConditionProgressing, s.progressing},
		{v1alpha1.ConditionSucceeded, s.succeeded},
		{v1alpha1.ConditionStalled, s.stalled},
		{v1alpha1.ConditionPreCheckPassed, s.precheck},
		{v1alpha1.ConditionDegraded, degradedCondition(s, configError)},
	} {
		setCondition(&status.Conditions, c.name, c.condition, cfg.Generation, now)
	}
	return status
}

// degradedCondition says that the operator works by another configuration than the one
// that is written. What is over is over.
func degradedCondition(s summary, configError string) condition {
	if configError == "" || s.finished {
		return condition{}
	}
	return condition{metav1.ConditionTrue, reasonConfigurationInvalid, "the operator's configuration is not taken, and the last good one stays in force: " + configError}
}

// setCondition sets or removes a condition. The time of the last transition is
// that of the status, and for Progressing, whose reason is the step, also of the reason.
func setCondition(all *[]metav1.Condition, name string, c condition, generation int64, now time.Time) {
	if c.status == "" {
		meta.RemoveStatusCondition(all, name)
		return
	}
	set := metav1.Condition{
		Type: name, Status: c.status, Reason: c.reason, Message: text.Truncate(c.message, 4096),
		ObservedGeneration: generation, LastTransitionTime: *toMetaTime(now),
	}
	old := meta.FindStatusCondition(*all, name)
	switch {
	case old == nil:
		*all = append(*all, set)
		return
	case old.Status == set.Status && (name != v1alpha1.ConditionProgressing || old.Reason == set.Reason):
		set.LastTransitionTime = old.LastTransitionTime
	}
	*old = set
}

var reasonPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,255}$`)

// sanitizeReason is the reason of a step if a condition may carry it.
func sanitizeReason(reason string) string {
	if reasonPattern.MatchString(reason) {
		return reason
	}
	return "StepFailed"
}

func toMetaTime(t time.Time) *metav1.Time {
	at := metav1.NewTime(t.Truncate(time.Second))
	return &at
}
