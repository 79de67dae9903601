// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// FleetMember is a cluster of the fleet, with what its run reports.
type FleetMember struct {
	rollout.Member
	Preflight                                     // of a dry run
	GroupName    string                           // of the decision group; empty if it has none
	Run          *fleetv1alpha1.ClusterUpgradeRun // nil if the cluster was never admitted or refused
	ForgottenFor string                           // why a person has forgotten the failure of the cluster
	HoldReason   string                           // why the cluster must not begin
}

// SetRun adds what the run reports about an attempt to what the selection reports. A canary of the attempt remains one. A
// deselected cluster keeps the mark of a canary and the group that it had at its admission.
func (m *FleetMember) SetRun(run *fleetv1alpha1.ClusterUpgradeRun, attempt int32, selected bool) {
	m.Run, m.Name = run, run.Namespace
	switch {
	case selected && run.Spec.Attempt >= attempt && !run.Spec.AdmissionTime.IsZero():
		m.Canary = m.Canary || run.Spec.Canary
	case !selected:
		m.Canary = run.Spec.Canary
		m.Group = max(0, int(run.Spec.Group)-1)
	}
	m.State = StateOf(run, attempt)
	m.CleaningUp = !m.InFlight() && cleansUp(run)
	m.Exempt = m.State == rollout.Failed && run.Spec.Outcome != nil
	m.LateSuccess = m.State == rollout.Complete && isLateSuccess(run)
	if m.State == rollout.Complete {
		m.SoakedUntil = text.TimeOf(run.Status.SoakedUntil)
	}
	if m.InFlight() && isCurrent(run) {
		m.Deadline = deadline(run)
	}
}

// Forget notes why a person has forgotten the failure of the cluster. Without a reason it has no effect.
func (m *FleetMember) Forget(reason string) {
	if reason != "" && (m.State == rollout.Failed || m.LateSuccess) {
		m.Forgotten, m.ForgottenFor = true, reason
	}
}

// isLeftOut reports whether a person continues without a canary that is not complete.
func (m *FleetMember) isLeftOut() bool {
	return m.Waived && m.Canary && !m.Hub && (m.State != rollout.Complete || m.LateSuccess)
}

func isLateSuccess(run *fleetv1alpha1.ClusterUpgradeRun) bool {
	return isCurrent(run) && run.Status.Reason == fleetv1alpha1.ReasonLateSuccess
}

// StateOf returns the state of the cluster in the attempt. A run whose status is behind its spec has begun. A cluster that
// failed in an earlier attempt is retried even if it was upgraded later: it has not been observed since.
func StateOf(run *fleetv1alpha1.ClusterUpgradeRun, attempt int32) rollout.MemberState {
	state := rollout.Initialized
	switch {
	case run.Spec.AdmissionTime.IsZero():
		return rollout.NotStarted // a canary that waits for its admission
	case run.Spec.Outcome != nil:
		state = rollout.MemberState(run.Spec.Outcome.State)
	case isCurrent(run) && run.Status.State != "" && run.Status.State != fleetv1alpha1.StateNotStarted:
		state = rollout.MemberState(run.Status.State)
	}
	if run.Spec.Attempt < attempt && (state == rollout.Failed || isLateSuccess(run)) {
		return rollout.NotStarted
	}
	return state
}

func isCurrent(run *fleetv1alpha1.ClusterUpgradeRun) bool {
	return run.Status.Attempt == run.Spec.Attempt
}

// cleansUp reports whether an attempt is in progress: its finalizer is removed last, or the record if it was withdrawn.
func cleansUp(run *fleetv1alpha1.ClusterUpgradeRun) bool {
	return slices.Contains(run.Finalizers, fleetv1alpha1.Finalizer) ||
		run.Spec.AdmissionTime.IsZero() && slices.ContainsFunc(run.Status.History, func(r history.Record) bool { return r.Attempt == run.Spec.Attempt })
}

// WasWithdrawn reports whether the cluster was admitted in the attempt of the run and is pending again.
func WasWithdrawn(run *fleetv1alpha1.ClusterUpgradeRun) bool {
	return run.Spec.AdmissionTime.IsZero() && (cleansUp(run) || run.Status.Reason == fleetv1alpha1.ReasonAdmissionWithdrawn || IsObstructed(run))
}

// IsObstructed reports whether a pending run waits until the agent of its cluster is back, or until the administrators of the
// cluster no longer hold it.
func IsObstructed(run *fleetv1alpha1.ClusterUpgradeRun) bool {
	reason := run.Status.Reason
	return run.Spec.AdmissionTime.IsZero() && (reason == fleetv1alpha1.ReasonAgentSilent || reason == fleetv1beta1.ReasonHeld)
}

// HasFailedBefore reports whether a run may have failed in an earlier attempt. Its admission may have been withdrawn since.
func HasFailedBefore(run *fleetv1alpha1.ClusterUpgradeRun) bool {
	return run != nil && (!run.Spec.AdmissionTime.IsZero() || run.Spec.Attempt > 1 || len(run.Status.History) > 0)
}

// hasBegunBefore reports whether the cluster of a pending run has begun in an earlier attempt, and something was written to it.
func hasBegunBefore(run *fleetv1alpha1.ClusterUpgradeRun) bool {
	return run.Spec.Outcome == nil && (!run.Spec.AdmissionTime.IsZero() || len(run.Status.History) > 0)
}

// WaitsSince returns since when a run waits before it requests anything; zero if it does not. It waits for its cluster to be released, for
// the lock of the cluster, or for an unreachable or silent agent. An agent that may have applied an action is not waited for: the action may
// have silenced it. Once the cluster has accepted the release, no run waits: a request may have been withdrawn too late.
//
// A wait for an agent counts by the record, as its deadline does. Any other one counts from now: a run that goes on later than its upgrade
// still shows when the pause began.
func (m *FleetMember) WaitsSince(now time.Time) time.Time {
	if m.Run == nil || !m.InFlight() || !isCurrent(m.Run) || len(m.Run.Status.History) == 0 {
		return time.Time{}
	}
	s, record := &m.Run.Status, m.Run.Record()
	if s.Accepted || record.RequestTime != nil || record.CommenceTime != nil || record.Step(fleetv1alpha1.StepUpgradeDelivered).CompleteTime != nil {
		return time.Time{}
	}
	switch {
	case s.Reason == engine.ReasonPaused, s.Reason == fleetv1alpha1.ReasonLockedBy:
		return now
	case !delivery.AwaitsAgent(s.Reason), delivery.HasActed(m.Run):
		return time.Time{}
	}
	if step := record.Running(); step != nil {
		if since := cmp.Or(step.ReasonTime, step.StartTime).Time; since.Before(now) { // else, the clock was ahead
			return since
		}
	}
	return now
}

// NewsGrace is how long the agents may take to report to a hub that starts. Until then, no deadline counts as missed.
const NewsGrace = 2 * time.Minute

// deadline returns when the running step of a run fails; zero if never, or if it is not known.
func deadline(run *fleetv1alpha1.ClusterUpgradeRun) time.Time {
	record := run.Record()
	step := record.Running()
	switch {
	case step == nil:
		return time.Time{}
	case step.Type == fleetv1alpha1.StepPreUpgradeActionAvailable:
		return delivery.PreActionBy(run, &record)
	case step.Type == fleetv1alpha1.StepUpgradeDelivered:
		return delivery.ApplyBy(run, &record)
	case step.Type == fleetv1alpha1.StepSoaked: // the run looks at the cluster first
		return time.Time{}
	}
	if timeout := delivery.StepTimeout(run, step.Type); timeout > 0 {
		return step.StartTime.Add(timeout)
	}
	return time.Time{}
}

// Stalled returns the condition of a run that makes no progress, whose reason is the step; nil if it does.
func (m *FleetMember) Stalled() *metav1.Condition {
	if m.Run == nil || !m.InFlight() {
		return nil
	}
	slow := apimeta.FindStatusCondition(m.Run.Status.Conditions, fleetv1alpha1.ConditionSlow)
	if slow == nil || slow.Status != metav1.ConditionTrue {
		return nil
	}
	return slow
}

// isHeld reports whether the run waits because its cluster is held, and keeps its slot.
func (m *FleetMember) isHeld() bool {
	return m.Run != nil && m.InFlight() && isCurrent(m.Run) && m.Run.Status.Reason == engine.ReasonPaused
}

func (m *FleetMember) begun() bool {
	return m.State != rollout.NotStarted && (m.Run == nil || m.Run.Spec.Outcome == nil)
}

// isUpgraded reports whether platform and operators are upgraded in this attempt; action and soak come later.
func (m *FleetMember) isUpgraded() bool {
	if m.Run == nil || !m.begun() || !isCurrent(m.Run) || len(m.Run.Status.History) == 0 {
		return m.State == rollout.Complete
	}
	operators := m.Run.Record().Step(fleetv1alpha1.StepOperatorsUpgraded)
	return operators.CompleteTime != nil && operators.Status == metav1.ConditionTrue
}

func (m *FleetMember) failure() (reason, message string) {
	switch {
	case m.Run == nil:
		return "", ""
	case m.Run.Spec.Outcome != nil:
		return m.Run.Spec.Outcome.Reason, m.Run.Spec.Outcome.Message
	}
	return m.Run.Status.Reason, m.Run.Status.Message
}
