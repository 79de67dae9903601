// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// RemovalDelay is how long a cluster must be deselected before it is removed.
const RemovalDelay = time.Minute

// Unlimited is a limit that nothing exceeds.
const Unlimited = -1

// Type is how a rollout proceeds after its canaries.
type Type string

// Types of rollouts, with the names of Open Cluster Management.
const (
	All                 Type = "All"
	Progressive         Type = "Progressive"
	ProgressivePerGroup Type = "ProgressivePerGroup"
)

// MemberState is the state of the upgrade of one cluster.
type MemberState string

// States of a cluster. Any other state is treated as in flight.
const (
	NotStarted     MemberState = "NotStarted"
	Initialized    MemberState = "Initialized"
	PartialUpgrade MemberState = "PartialUpgrade"
	Complete       MemberState = "Complete"
	Failed         MemberState = "Failed"
)

// Plan holds what the user requests of a rollout, and what the caller has observed of its surroundings. Texts that describe
// an obstacle are empty without one.
type Plan struct {
	// Attempt is the attempt that the user requests. The answers of a person name it.
	Attempt int32
	// Type is Progressive by default.
	Type Type
	// MaxConcurrency is the number of slots, as a number or a percentage of the members without canaries. The default is
	// one slot, or no limit if Type is All.
	MaxConcurrency *intstr.IntOrString
	// MaxFailures is how many failures are tolerated, as a number or a percentage of the members without canaries. There is no
	// limit by default. With ProgressivePerGroup it applies to each group.
	MaxFailures *intstr.IntOrString
	// StallTimeout is how long the rollout waits for a canary that cannot begin before it stops. Zero disables the stop.
	StallTimeout time.Duration
	// RequireCanaries reports whether the plan selects canaries: without any, nothing begins.
	RequireCanaries bool
	// CanariesFixed is how many canaries were fixed when the rollout started; zero if they are not fixed yet.
	CanariesFixed int
	// CanariesGone is how many canaries left the hub in an earlier attempt, or lost their record, before they were complete.
	// Nothing begins until a person continues without them.
	CanariesGone int
	// Paused, Cancelled, and DryRun are the fields of the spec.
	Paused, Cancelled, DryRun bool
	// RecordsLost describes how records of begun clusters were lost.
	RecordsLost string
	// SelectionUnstable describes why the selection cannot be used now.
	SelectionUnstable string
	// DependencyMissing and DependencyIncomplete describe such a dependency.
	DependencyMissing, DependencyIncomplete string
	// Stop is the stop of this attempt in the status, if any. It lasts until the next attempt, whatever becomes of the
	// clusters.
	Stop Stop
	// Departed counts the failures of clusters that are gone, in this attempt.
	Departed Departed
	// NoOperatorImage describes why the hub cannot upgrade the operators that the upgrade includes.
	NoOperatorImage string
	// Window is the maintenance window. Without one, clusters may begin at any time.
	Window *Window
}

// Departed counts the clusters that had begun, were not complete, and whose ManagedCluster is gone. They are no
// members, and their failures count.
type Departed struct {
	// Canaries is how many of them were canaries.
	Canaries int
	// Failures are how many count against the budget, by group.
	Failures map[int]int
}

// Window is the state of the maintenance windows.
type Window struct {
	Invalid string    // describes a window that cannot be read: no cluster begins
	Open    bool      // clusters may begin now
	Until   time.Time // when that changes; zero for never
}

// Member is a cluster of the fleet.
type Member struct {
	Name string
	// Group is the index of its decision group, over all placements.
	Group  int
	Canary bool
	// Hub reports whether the cluster is the hub itself. It is upgraded last and alone, and is never a canary.
	Hub bool
	// State is the state of the upgrade in the current attempt.
	State MemberState
	// Deadline is when the current step of a cluster in flight fails; zero for never.
	Deadline time.Time
	// CleaningUp reports whether a cluster not in flight still holds its slot. A NotStarted cluster should be
	// retried, and begins after that.
	CleaningUp bool
	// SoakedUntil is when a Complete cluster ends its soak, and gives up its slot.
	SoakedUntil time.Time
	// DeselectedSince is since when consistent selections lack the cluster; zero if it is selected.
	DeselectedSince time.Time
	// Exempt reports whether the failure of the cluster is outside the budget: nothing was written to it.
	Exempt bool
	// LateSuccess reports whether a Complete cluster had failed before in this attempt. It still counts as failed.
	LateSuccess bool
	// Forgotten reports whether a person has said that the failure of the cluster no longer counts.
	Forgotten bool
	// Hold describes why the cluster itself must not begin; empty if it may.
	Hold string
	// HeldSince is since when it must not begin; zero if unknown.
	HeldSince time.Time
	// Awaited reports whether a canary has failed in an earlier attempt. It remains a member although it is deselected.
	Awaited bool
	// Waived reports whether a person continues without the canary. It takes its turn as any other cluster.
	Waived bool
}

// Decision is the answer of Decide.
type Decision struct {
	// Admit names the clusters that begin now, in their order.
	Admit []string
	// TimedOut names the clusters in flight that are past their deadline. They count as failed.
	TimedOut []string
	// Removed names the clusters that are no longer members: not begun, deselected, and not being cleaned up after an
	// earlier attempt.
	Removed []string
	// Ignored names the deselected clusters that no longer count but keep their records: nothing was written to them, their
	// failure is forgotten, or they are being cleaned up after an earlier attempt.
	Ignored []string
	// Stopped is why no further cluster may begin, if none may.
	Stopped Stop
	// UntilAttempt is the stop that lasts until the next attempt, if there is one. Stopped may have another reason.
	UntilAttempt Stop
	// GoesOn reports whether only the clusters themselves may keep others from beginning: a canary that cannot begin holds them up.
	GoesOn bool
	// CanaryFailed and MaxFailuresExceeded report what stops the rollout until the next attempt.
	CanaryFailed, MaxFailuresExceeded bool
	// Slots is the number of slots, or Unlimited; InUse is how many are in use before admission.
	Slots, InUse int
	// Failures counts the failures within the budget, and Tolerated is the budget, or Unlimited. For
	// ProgressivePerGroup they describe the group with the least budget left.
	Failures, Tolerated int
	// Next is the time of the next decision if nothing else changes; zero for none.
	Next time.Time
}

// Stop is a reason to admit nothing.
type Stop struct {
	// Reason is one of the reasons of the condition Admitting of package v1beta1.
	Reason string
	// Message explains it to a person, with the remedy.
	Message string
}

// IsZero reports whether nothing is stopped.
func (s Stop) IsZero() bool { return s == Stop{} }

// InFlight reports whether the cluster has begun and has neither completed nor failed.
func (m *Member) InFlight() bool {
	return m.State != NotStarted && m.State != Complete && m.State != Failed
}

// IsCanary reports whether the cluster is upgraded as a canary.
func (m *Member) IsCanary() bool { return m.Canary && !m.Hub && !m.Waived }

// soaking reports whether the cluster is Complete and its soak is not over.
func (m *Member) soaking(now time.Time) bool {
	return m.State == Complete && now.Before(m.SoakedUntil)
}

// holdsSlot reports whether the cluster holds a slot: from admission until cleanup and soak are over.
func (m *Member) holdsSlot(now time.Time) bool {
	return m.InFlight() || m.CleaningUp || m.soaking(now)
}

// mayLeave reports whether the cluster no longer counts once it is deselected: it has not begun in this attempt and is no
// canary that has failed before, nothing was written to it, or a person has forgotten its failure.
func (m *Member) mayLeave() bool {
	return m.State == NotStarted && (!m.Awaited || !m.IsCanary()) || m.State == Failed && (m.Exempt || m.Forgotten)
}

// hasFailed reports whether the cluster has failed in this attempt and the failure is not forgotten. A late
// success does not undo a failure.
func (m *Member) hasFailed(timedOut bool) bool {
	return !m.Forgotten && (timedOut || m.State == Failed || m.State == Complete && m.LateSuccess)
}

// finished reports whether the clusters after it need not wait for it.
func (m *Member) finished(now time.Time) bool {
	return m.State == Failed || m.State == Complete && !m.soaking(now)
}
