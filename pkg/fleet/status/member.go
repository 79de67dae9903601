// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
)

// Member is a cluster of the fleet, with what its run reports.
type Member struct {
	rollout.Member
	// GroupName is the name of the decision group; empty means that it has none.
	GroupName string
	// Run is the run of the cluster; nil means that it was never admitted or refused.
	Run *fleetv1alpha1.ClusterUpgradeRun
	// Checked reports whether a dry run has checked the cluster.
	Checked bool
	// Obstacle is what a dry run found; its zero value means none.
	Obstacle rollout.Stop
}

// SetRun adds what the run reports about the given attempt. The caller has set what the selection
// reports. A canary of the attempt remains one. The mark of a canary and the group of a cluster that
// is no longer selected are those at its admission.
func (m *Member) SetRun(run *fleetv1alpha1.ClusterUpgradeRun, attempt int32, selected bool) {
	m.Run, m.Name = run, run.Namespace
	switch {
	case selected && run.Spec.Attempt >= attempt:
		m.Canary = m.Canary || run.Spec.Canary
	case !selected:
		m.Canary = run.Spec.Canary
		m.Group = max(0, int(run.Spec.Group)-1)
	}
	m.State = StateOf(run, attempt)
	m.CleaningUp = !m.InFlight() && cleansUp(run)
	m.Exempt = m.State == rollout.Failed && run.Spec.Outcome != nil
	m.LateSuccess = m.State == rollout.Complete && run.Status.Reason == fleetv1alpha1.ReasonLateSuccess && run.Spec.Attempt >= attempt
	if m.State == rollout.Complete {
		m.SoakedUntil = timeOf(run.Status.SoakedUntil)
	}
	if m.InFlight() && isCurrent(run) {
		m.Deadline = deadline(run)
	}
}

// StateOf returns the state of the cluster in the attempt. A run whose status is behind its spec has
// begun, and a failure of an earlier attempt is to be retried.
func StateOf(run *fleetv1alpha1.ClusterUpgradeRun, attempt int32) rollout.State {
	state := rollout.Initialized
	switch {
	case run.Spec.Outcome != nil:
		state = rollout.State(run.Spec.Outcome.State)
	case isCurrent(run) && run.Status.State != "" && run.Status.State != fleetv1alpha1.StateNotStarted:
		state = rollout.State(run.Status.State)
	}
	if state == rollout.Failed && run.Spec.Attempt < attempt {
		return rollout.NotStarted
	}
	return state
}

// isCurrent reports whether the status reflects the attempt of the spec.
func isCurrent(run *fleetv1alpha1.ClusterUpgradeRun) bool {
	return run.Status.Attempt == run.Spec.Attempt
}

// cleansUp reports whether an attempt is still in progress: its finalizer is removed last.
func cleansUp(run *fleetv1alpha1.ClusterUpgradeRun) bool {
	return slices.Contains(run.Finalizers, fleetv1alpha1.Finalizer)
}

// deadline returns when the running step of a run fails; zero means never, or that it is not known.
func deadline(run *fleetv1alpha1.ClusterUpgradeRun) time.Time {
	if len(run.Status.History) == 0 {
		return time.Time{}
	}
	for _, step := range run.Status.History[0].Conditions {
		if step.CompleteTime != nil || step.StartTime == nil {
			continue
		}
		if step.Type == fleetv1alpha1.StepUpgradeDelivered {
			return delivery.ApplyBy(run, &run.Status.History[0])
		}
		if step.Type == fleetv1alpha1.StepClusterUpgraded && run.Status.SoakedUntil != nil {
			continue // upgraded, and observed for as long as the soak lasts
		}
		if timeout := delivery.StepTimeout(run, step.Type); timeout > 0 {
			return step.StartTime.Add(timeout)
		}
	}
	return time.Time{}
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// Stalled returns the condition of a run that makes no progress, whose reason is the step; nil means that it
// does.
func (m *Member) Stalled() *metav1.Condition {
	if m.Run == nil || !m.InFlight() {
		return nil
	}
	if c := apimeta.FindStatusCondition(m.Run.Status.Conditions, fleetv1alpha1.ConditionStalled); c != nil && c.Status == metav1.ConditionTrue {
		return c
	}
	return nil
}

// isHeld reports whether the run waits because its cluster is held, and keeps its slot meanwhile.
func (m *Member) isHeld() bool {
	return m.Run != nil && m.InFlight() && isCurrent(m.Run) && m.Run.Status.Reason == engine.ReasonPaused
}

// begun reports whether the cluster was admitted in the current attempt.
func (m *Member) begun() bool {
	return m.State != rollout.NotStarted && (m.Run == nil || m.Run.Spec.Outcome == nil)
}

// failure returns why the cluster failed.
func (m *Member) failure() (reason, message string) {
	switch {
	case m.Run == nil:
		return "", ""
	case m.Run.Spec.Outcome != nil:
		return m.Run.Spec.Outcome.Reason, m.Run.Spec.Outcome.Message
	}
	return m.Run.Status.Reason, m.Run.Status.Message
}
