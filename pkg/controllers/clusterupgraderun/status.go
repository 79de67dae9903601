// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/feedback"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lifecycle"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/fleet"
)

// hasRecord reports whether an attempt of a run is in progress or ended, so that the lifecycle manages
// the run.
func hasRecord(run *fleetv1alpha1.ClusterUpgradeRun) bool {
	return controllerutil.ContainsFinalizer(run, fleetv1alpha1.Finalizer) ||
		slices.ContainsFunc(run.Status.History, history.Record.InProgress)
}

// publishOutcome publishes the end of an attempt that was decided at admission.
func (r *Reconciler) publishOutcome(ctx context.Context, run *fleetv1alpha1.ClusterUpgradeRun) error {
	if !run.DeletionTimestamp.IsZero() {
		return nil
	}
	outcome := run.Spec.Outcome
	after := run.DeepCopy()
	s := &after.Status
	s.ObservedGeneration, s.Attempt, s.NextTime, s.SoakedUntil = run.Generation, run.Spec.Attempt, nil, nil
	s.State, s.Reason, s.Message = outcome.State, outcome.Reason, outcome.Message
	at := run.Spec.AdmissionTime
	s.CompletionTime = &at
	succeeded := metav1.ConditionFalse
	if outcome.State == fleetv1alpha1.StateComplete {
		succeeded = metav1.ConditionTrue
	}
	for _, c := range []metav1.Condition{
		{Type: fleetv1alpha1.ConditionProgressing, Status: metav1.ConditionFalse},
		{Type: fleetv1alpha1.ConditionSucceeded, Status: succeeded},
	} {
		c.Reason, c.Message, c.ObservedGeneration, c.LastTransitionTime = outcome.Reason, outcome.Message, run.Generation, at
		apimeta.SetStatusCondition(&s.Conditions, c)
	}
	if equality.Semantic.DeepEqual(run.Status, after.Status) {
		return nil
	}
	if err := r.client.Status().Patch(ctx, after, client.MergeFromWithOptions(run, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("publishing the outcome of ClusterUpgradeRun %s/%s: %w", run.Namespace, run.Name, err)
	}
	return nil
}

// CompleteStatus shows how far the cluster is, by the record that is about to be written and by what the
// pass has read.
func (k kind) CompleteStatus(run *fleetv1alpha1.ClusterUpgradeRun) {
	s := &run.Status
	if len(s.History) == 0 {
		return
	}
	record, v := &s.History[0], k.cache.view(client.ObjectKeyFromObject(run))
	if s.Attempt != record.Attempt {
		*s = fleetv1alpha1.ClusterUpgradeRunStatus{
			Conditions: s.Conditions, ObservedGeneration: s.ObservedGeneration, NextTime: s.NextTime, History: s.History,
			Attempt: record.Attempt, Applied: s.Applied,
		}
	}
	s.StartTime, s.CompletionTime = record.StartTime, record.CompleteTime
	s.Applied = s.Applied || v.applied
	s.Accepted = s.Accepted || v.platform.IsAccepted()
	s.PreUpgradeAction = actionStatus(record, fleetv1alpha1.StepPreUpgradeActionAvailable, s.PreUpgradeAction, v.pre)
	s.PostUpgradeAction = actionStatus(record, fleetv1alpha1.StepPostUpgradeActionAvailable, s.PostUpgradeAction, v.post)
	s.SoakedUntil = soakedUntil(run, record)
	showState(s, record)
	if s.State == fleetv1alpha1.StateFailed && v.platform.Stage == feedback.StageCompleted && onlyPlatformLeft(&v, record) {
		showLateSuccess(s)
	}
}

// showState sets the state, its reason, and its message.
func showState(s *fleetv1alpha1.ClusterUpgradeRunStatus, record *history.Record) {
	late := s.State == fleetv1alpha1.StateComplete && s.Reason == fleetv1alpha1.ReasonLateSuccess
	switch {
	case late:
		showLateSuccess(s)
		return
	case record.Phase == history.PhaseUpgraded:
		s.State = fleetv1alpha1.StateComplete
	case record.Phase == history.PhaseFailed:
		s.State = fleetv1alpha1.StateFailed
	case s.Accepted || record.Step(fleetv1alpha1.StepClusterUpgraded).CompleteTime != nil:
		s.State = fleetv1alpha1.StatePartialUpgrade
	default:
		s.State = fleetv1alpha1.StateInitialized
	}
	s.Reason, s.Message = "", ""
	switch running := current(record); {
	case s.State == fleetv1alpha1.StateComplete || s.State == fleetv1alpha1.StateFailed:
		s.Reason, s.Message = record.Reason, messageOf(record)
	case running != nil:
		s.Reason, s.Message = running.Reason, running.Message
	}
	accepted := apimeta.FindStatusCondition(s.Conditions, fleetv1alpha1.ConditionAccepted)
	stalled := apimeta.FindStatusCondition(s.Conditions, fleetv1alpha1.ConditionStalled)
	switch {
	case s.State == fleetv1alpha1.StateComplete || s.State == fleetv1alpha1.StateFailed:
	case accepted != nil && accepted.Status == metav1.ConditionFalse && accepted.Reason == lifecycle.ReasonClusterLocked:
		s.Reason, s.Message = fleetv1alpha1.ReasonLockedBy, accepted.Message
	case stalled != nil && stalled.Status == metav1.ConditionTrue:
		s.Reason, s.Message = fleetv1alpha1.ReasonStalled, stalled.Message
	}
}

// messageOf returns the message of a record without the name of its step: clusters with one cause are
// counted together, and the reason says enough.
func messageOf(record *history.Record) string {
	for i := range record.Conditions {
		if message, found := strings.CutPrefix(record.Message, record.Conditions[i].Type+": "); found {
			return message
		}
	}
	return record.Message
}

// onlyPlatformLeft reports whether nothing but the platform was left to do when the attempt failed.
func onlyPlatformLeft(v *view, record *history.Record) bool {
	failed := record.Step(fleetv1alpha1.StepClusterUpgraded)
	return v.delivers && failed.CompleteTime != nil && failed.Status == metav1.ConditionFalse &&
		record.Reason != fleetv1alpha1.ReasonSuperseded && record.CompleteTime != nil &&
		v.upgrade != nil && v.upgrade.Spec.OCPOperators == nil && v.upgrade.Spec.PostUpgradeAction == nil
}

// showLateSuccess shows that the platform was upgraded after the attempt had failed.
func showLateSuccess(s *fleetv1alpha1.ClusterUpgradeRunStatus) {
	s.State, s.Reason = fleetv1alpha1.StateComplete, fleetv1alpha1.ReasonLateSuccess
	s.Message = "the platform was upgraded after the run had failed"
	for i := range s.Conditions {
		if c := &s.Conditions[i]; c.Type == fleetv1alpha1.ConditionSucceeded || c.Type == fleetv1alpha1.ConditionProgressing {
			c.Reason, c.Message = s.Reason, s.Message
			if c.Type == fleetv1alpha1.ConditionSucceeded {
				c.Status = metav1.ConditionTrue
			}
		}
	}
}

// current returns the step that runs; nil means none.
func current(record *history.Record) *history.StepCondition {
	for i := range record.Conditions {
		if c := &record.Conditions[i]; c.CompleteTime == nil && c.StartTime != nil {
			return c
		}
	}
	return nil
}

// actionStatus returns the state of an action: by its step, or by its work while that runs. Nil means
// that there is no such action.
func actionStatus(record *history.Record, name string, before, seen *fleetv1alpha1.ActionStatus) *fleetv1alpha1.ActionStatus {
	c := record.Step(name)
	switch {
	case c.StartTime == nil:
		return nil
	case c.CompleteTime == nil:
		if seen == nil {
			return before
		}
		return seen
	case c.Status == metav1.ConditionFalse:
		return &fleetv1alpha1.ActionStatus{Applied: seen != nil && seen.Applied || before != nil && before.Applied, State: fleetv1alpha1.ActionDegraded}
	case c.Reason == fleet.ReasonNoAction:
		return nil
	}
	return &fleetv1alpha1.ActionStatus{Applied: true, State: fleetv1alpha1.ActionAvailable}
}

// soakedUntil returns when the soak ends; nil means that it has not begun.
func soakedUntil(run *fleetv1alpha1.ClusterUpgradeRun, record *history.Record) *metav1.Time {
	c := record.Step(fleetv1alpha1.StepSoaked)
	soak := delivery.Timeout(run.Spec.Timeouts.Soak, "")
	if c.StartTime == nil || soak == 0 {
		return nil
	}
	until := metav1.NewTime(c.StartTime.Add(soak).Truncate(time.Second))
	return &until
}
