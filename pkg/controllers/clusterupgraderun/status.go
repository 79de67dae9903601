// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun

import (
	"cmp"
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

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	fleetrun "github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lifecycle"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/readiness"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// hasRecord reports whether the lifecycle manages a run: an attempt is in progress, or has ended.
func hasRecord(run *fleetv1alpha1.ClusterUpgradeRun) bool {
	return controllerutil.ContainsFinalizer(run, fleetv1alpha1.Finalizer) ||
		slices.ContainsFunc(run.Status.History, history.Record.InProgress)
}

// publishPending publishes that a cluster waits for its admission, without the record of an admission that was withdrawn.
func (r *Reconciler) publishPending(ctx context.Context, run *fleetv1alpha1.ClusterUpgradeRun) error {
	after := run.DeepCopy()
	after.Status = fleetv1alpha1.ClusterUpgradeRunStatus{
		State: fleetv1alpha1.StateNotStarted, Attempt: run.Spec.Attempt, ObservedGeneration: run.Generation, Applied: run.Status.Applied,
		Reason: run.Status.Reason, Message: run.Status.Message, Conditions: run.Status.Conditions,
		History: slices.DeleteFunc(after.Status.History, func(r history.Record) bool { return r.Attempt == run.Spec.Attempt }),
	}
	if len(after.Status.History) < len(run.Status.History) {
		showWithdrawn(&after.Status)
		after.Status.Conditions = nil
	}
	if admission.IsObstructed(after) {
		cluster := r.cluster(run)
		switch obstructed, err := cluster.IsObstructed(ctx); {
		case err != nil:
			return err
		case !obstructed:
			if err := cluster.RemovePreflight(ctx); err != nil {
				return err
			}
			after.Status.Reason, after.Status.Message = "", ""
			showWithdrawn(&after.Status)
		}
	}
	after.Status.Conditions = slices.Clone(after.Status.Conditions)
	readiness.Verdict{}.Set(&after.Status.Conditions, run.Generation, r.Clock.Now())
	return r.publish(ctx, run, after)
}

// publish writes the status of a run, unless nothing has changed, or the run is being deleted.
func (r *Reconciler) publish(ctx context.Context, run, after *fleetv1alpha1.ClusterUpgradeRun) error {
	if !run.DeletionTimestamp.IsZero() || equality.Semantic.DeepEqual(run.Status, after.Status) {
		return nil
	}
	if err := r.client.Status().Patch(ctx, after, client.MergeFromWithOptions(run, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("publishing the state of ClusterUpgradeRun %s/%s: %w", run.Namespace, run.Name, err)
	}
	return nil
}

// publishOutcome publishes the end of an attempt that was decided at admission.
func (r *Reconciler) publishOutcome(ctx context.Context, run *fleetv1alpha1.ClusterUpgradeRun) error {
	outcome := run.Spec.Outcome
	after := run.DeepCopy()
	s := &after.Status
	s.ObservedGeneration, s.Attempt, s.NextTime, s.SoakedUntil = run.Generation, run.Spec.Attempt, nil, nil
	s.State, s.Reason, s.Message = outcome.State, outcome.Reason, outcome.Message
	at := run.Spec.AdmissionTime
	s.CompletionTime = &at
	succeeded, level := metav1.ConditionFalse, readiness.Stalled
	if outcome.State == fleetv1alpha1.StateComplete {
		succeeded, level = metav1.ConditionTrue, readiness.Ready
	}
	readiness.Verdict{Level: level, Reason: outcome.Reason, Message: outcome.Message}.Set(&s.Conditions, run.Generation, at.Time)
	for _, c := range []metav1.Condition{
		{Type: fleetv1alpha1.ConditionProgressing, Status: metav1.ConditionFalse},
		{Type: fleetv1alpha1.ConditionSucceeded, Status: succeeded},
	} {
		c.Reason, c.Message = outcome.Reason, outcome.Message
		readiness.SetCondition(&s.Conditions, c, run.Generation, at.Time)
	}
	return r.publish(ctx, run, after)
}

// CompleteStatus shows how far the cluster is, by the record that will be written and by what the pass has read.
func (k kind) CompleteStatus(run *fleetv1alpha1.ClusterUpgradeRun) {
	s := &run.Status
	if len(s.History) == 0 {
		return
	}
	record, v := &s.History[0], k.view(run)
	if s.Attempt != record.Attempt {
		*s = fleetv1alpha1.ClusterUpgradeRunStatus{
			Conditions: s.Conditions, ObservedGeneration: s.ObservedGeneration, NextTime: s.NextTime, History: s.History,
			Attempt: record.Attempt, Applied: s.Applied,
		}
	}
	s.StartTime, s.CompletionTime = record.StartTime, record.CompleteTime
	s.Applied = s.Applied || v.applied
	if record.RequestTime != nil || record.CommenceTime != nil { // else, the cluster may be at the target since before
		s.Accepted = s.Accepted || v.platform.IsAccepted()
	}
	s.PreUpgradeAction = actionStatus(record, fleetv1alpha1.StepPreUpgradeActionAvailable, s.PreUpgradeAction, v.pre)
	s.PostUpgradeAction = actionStatus(record, fleetv1alpha1.StepPostUpgradeActionAvailable, s.PostUpgradeAction, v.post)
	s.SoakedUntil = soakedUntil(run, record)
	showState(s, record, run.Spec.AdmissionTime)
	if s.State == fleetv1alpha1.StateFailed && v.platform.Stage == delivery.StageCompleted && onlyPlatformLeft(&v, record) {
		showLateSuccess(s)
	}
}

// showState sets the state, its reason, and its message.
func showState(s *fleetv1alpha1.ClusterUpgradeRunStatus, record *history.Record, admitted metav1.Time) {
	switch {
	case s.State == fleetv1alpha1.StateComplete && s.Reason == fleetv1alpha1.ReasonLateSuccess:
		showLateSuccess(s)
		return
	case admitted.IsZero():
		showWithdrawn(s)
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
	switch running := record.Running(); {
	case isEnd(s.State):
		s.Reason, s.Message = record.Reason, messageOf(record)
	case running != nil:
		s.Reason, s.Message = running.Reason, running.Message
	case record.Phase == history.PhasePending:
		s.Reason, s.Message = record.Reason, record.Message
	}
	accepted := apimeta.FindStatusCondition(s.Conditions, fleetv1alpha1.ConditionAccepted)
	slow := apimeta.FindStatusCondition(s.Conditions, fleetv1alpha1.ConditionSlow)
	switch {
	case isEnd(s.State):
	case accepted != nil && accepted.Status == metav1.ConditionFalse && accepted.Reason == lifecycle.ReasonClusterLocked:
		s.Reason, s.Message = fleetv1alpha1.ReasonLockedBy, accepted.Message
	case slow != nil && slow.Status == metav1.ConditionTrue:
		s.Reason, s.Message = fleetv1alpha1.ReasonStalled, slow.Message
	}
}

func isEnd(state fleetv1alpha1.ClusterUpgradeState) bool {
	return state == fleetv1alpha1.StateComplete || state == fleetv1alpha1.StateFailed
}

// showWithdrawn shows a withdrawn admission. What obstructs the cluster must end before it is admitted again.
func showWithdrawn(s *fleetv1alpha1.ClusterUpgradeRunStatus) {
	s.State = fleetv1alpha1.StateNotStarted
	switch s.Reason {
	case fleetv1alpha1.ReasonAgentSilent, fleetv1beta1.ReasonHeld:
	case fleetv1alpha1.ReasonDelivered, delivery.ReasonWorkDeleting:
		s.Reason, s.Message = fleetv1alpha1.ReasonAgentSilent, "the cluster is available, and its agent has applied nothing: "+s.Message
	case engine.ReasonPaused:
		s.Reason = fleetv1beta1.ReasonHeld
	default:
		s.Reason, s.Message = fleetv1alpha1.ReasonAdmissionWithdrawn, withdrawn
	}
}

// messageOf returns the message without the name of its step: clusters with one cause are counted together.
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
	at := text.TimeOf(s.CompletionTime)
	if ready := apimeta.FindStatusCondition(s.Conditions, fleetv1alpha1.ConditionReady); ready != nil {
		at = ready.LastTransitionTime.Time
	}
	readiness.Verdict{Level: readiness.Ready, Reason: s.Reason, Message: s.Message}.Set(&s.Conditions, s.ObservedGeneration, at)
}

// actionStatus returns the state of an action by its step, or by its work while the step runs; nil if there is no action.
func actionStatus(record *history.Record, name string, before, seen *fleetv1alpha1.ActionStatus) *fleetv1alpha1.ActionStatus {
	c := record.Step(name)
	switch {
	case c.StartTime == nil, c.Reason == fleetrun.ReasonNoAction:
		return nil
	case c.CompleteTime == nil:
		return cmp.Or(seen, before)
	case c.Status == metav1.ConditionFalse:
		return &fleetv1alpha1.ActionStatus{Applied: seen != nil && seen.Applied || before != nil && before.Applied, State: fleetv1alpha1.ActionDegraded}
	}
	return &fleetv1alpha1.ActionStatus{Applied: true, State: fleetv1alpha1.ActionAvailable}
}

// soakedUntil returns when the soak ends, or has ended; nil if it does not count now.
func soakedUntil(run *fleetv1alpha1.ClusterUpgradeRun, record *history.Record) *metav1.Time {
	soak, ended := delivery.Timeout(run.Spec.Timeouts.Soak, ""), record.Step(fleetv1alpha1.StepSoaked).CompleteTime
	since := fleetrun.SoakStart(record)
	switch {
	case soak == 0 || since.IsZero() && ended == nil:
		return nil
	case ended != nil:
		return ended
	}
	return new(metav1.NewTime(since.Add(soak).Truncate(time.Second)))
}
