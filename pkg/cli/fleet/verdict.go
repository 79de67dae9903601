// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
)

// VerdictState describes what a fleet upgrade needs.
type VerdictState int

const (
	// Done is the state if no clusters are left to upgrade.
	Done VerdictState = iota
	// Progressing is the state if clusters are being upgraded.
	Progressing
	// Waiting is the state if the upgrade will continue without user action.
	Waiting
	// ActionRequired is the state if user action is required.
	ActionRequired
	// Unknown is the state if the hub has not published the state for the current spec.
	Unknown
)

// Verdict describes the state of an upgrade.
type Verdict struct {
	State VerdictState
	// Text names the state.
	Text string
	// Stopped is set if the rollout has stopped until the next attempt.
	Stopped bool
	// Detail explains the state and its remedy. It is empty if Text says enough.
	Detail string
	// Verb is the next command for the user, or empty.
	Verb string
	// Advice introduces the command.
	Advice string
}

const (
	afterFixing = "After fixing the cause: "
	stopAdvice  = "No further clusters will be started. " + afterFixing
)

// Verdict returns the verdict for the published status.
func (s *Snapshot) Verdict() Verdict {
	admitting := s.condition(fleetv1beta1.ConditionAdmitting)
	if !s.isCurrent() && !s.isOnlyAdmittingCurrent() {
		return Verdict{State: Unknown, Text: "the hub has not observed the last change yet", Detail: "If it does not within a minute, check that the hub is running."}
	}
	counters := &fleetv1beta1.ClustersSummary{}
	if published := s.Upgrade.Status.ClustersSummery; published != nil {
		counters = published
	}
	inFlight := counters.InFlight() + counters.Finishing
	gone, _ := s.gone()
	failed := int(counters.Failed) + gone
	isComplete := counters.Total > 0 && counters.Complete == counters.Total && s.reason(fleetv1beta1.ConditionComplete) == fleetv1beta1.ReasonManagedClustersUpgradeComplete
	reason, isFinished := admitting.Reason, admitting.Reason == fleetv1beta1.ReasonFinished
	if isFinished && !isComplete && s.Upgrade.Spec.Cancelled { // a retry has no effect
		reason = fleetv1beta1.ReasonCancelled
	}
	if v, found := stopVerdicts()[reason]; found {
		return s.detailed(v, &admitting, inFlight > 0)
	}
	switch {
	case isComplete:
		return Verdict{State: Done, Text: "complete"}
	case isFinished && inFlight == 0 && failed > 0 && gone == 0 && s.isEachFailureExempt():
		return Verdict{State: ActionRequired, Text: "finished, " + grouped(failed) + " cannot be upgraded", Detail: "A retry does not help. Deselect these clusters."}
	case isFinished && inFlight == 0 && failed > 0:
		return Verdict{State: ActionRequired, Text: "finished, " + grouped(failed) + " failed", Verb: "retry", Advice: afterFixing}
	case admitting.Reason == fleetv1beta1.ReasonHeld && inFlight == 0:
		return Verdict{State: ActionRequired, Text: "waits for clusters that are held", Detail: admitting.Message}
	}
	if message := s.undelivered(); message != "" {
		return Verdict{State: ActionRequired, Text: "an action is not delivered", Detail: message}
	}
	return Verdict{State: Progressing, Text: "in progress, no action needed"}
}

// detailed adds what the status shows to the verdict of a rollout that starts no clusters.
func (s *Snapshot) detailed(v Verdict, admitting *metav1.Condition, inFlight bool) Verdict {
	isCanary := admitting.Reason == fleetv1beta1.ReasonCanaryNotAvailable
	if v.Detail == "" && (!v.Stopped || isCanary) {
		v.Detail = admitting.Message
	}
	if isCanary && s.Upgrade.Status.Stop == nil { // it has left the hub: a retry asks again
		v.Verb, v.Advice = "", ""
	}
	if inFlight && (v.State == Waiting || v.State == Done) {
		v.State = Progressing
	}
	return v
}

// undelivered explains why an action is not delivered if this stalls a step, or returns "".
func (s *Snapshot) undelivered() string {
	causes := s.Upgrade.Status.Causes
	for i := range causes {
		c := &causes[i]
		isAction := c.Reason == fleetv1alpha1.StepPreUpgradeActionAvailable || c.Reason == fleetv1alpha1.StepPostUpgradeActionAvailable
		if c.Type == fleetv1beta1.CauseStalled && isAction {
			return c.Message
		}
	}
	return ""
}

// isOnlyAdmittingCurrent reports whether the hub has only published why no cluster starts. It has no other
// state of an upgrade that is being deleted or whose objects it cannot read.
func (s *Snapshot) isOnlyAdmittingCurrent() bool {
	c := s.condition(fleetv1beta1.ConditionAdmitting)
	return c.ObservedGeneration == s.Upgrade.Generation &&
		(c.Reason == fleetv1beta1.ReasonDeleting || c.Reason == fleetv1beta1.ReasonCannotObserve)
}

// isEachFailureExempt reports whether all failed clusters were refused, so another attempt would refuse them
// again.
func (s *Snapshot) isEachFailureExempt() bool {
	return !slices.ContainsFunc(s.counted(), func(m *admission.FleetMember) bool { return m.State == rollout.Failed && !m.Exempt })
}

// stopVerdicts maps the reasons why no cluster starts to verdicts. Other reasons belong to a rollout in
// progress.
func stopVerdicts() map[string]Verdict {
	return map[string]Verdict{
		fleetv1beta1.ReasonCanaryFailed:         {State: ActionRequired, Text: "STOPPED: a canary failed", Stopped: true, Verb: "retry", Advice: stopAdvice},
		fleetv1beta1.ReasonCanaryNotAvailable:   {State: ActionRequired, Text: "STOPPED: a canary cannot begin", Stopped: true, Verb: "retry", Advice: stopAdvice},
		fleetv1beta1.ReasonMaxFailuresExceeded:  {State: ActionRequired, Text: "STOPPED: too many clusters failed", Stopped: true, Verb: "retry", Advice: stopAdvice},
		fleetv1beta1.ReasonRecordsLost:          {State: ActionRequired, Text: "STOPPED: records were lost", Stopped: true, Verb: "retry", Advice: "Check the clusters that had begun. Then: "},
		fleetv1beta1.ReasonCancelled:            {State: Done, Text: "cancelled", Detail: "No further clusters will be started."},
		fleetv1beta1.ReasonPaused:               {State: ActionRequired, Text: "paused", Detail: "No further clusters will be started.", Verb: "resume", Advice: "To continue: "},
		fleetv1beta1.ReasonDryRun:               {State: ActionRequired, Text: "dry run", Detail: "No cluster is upgraded.", Verb: "plan", Advice: "To see what was found: "},
		fleetv1beta1.ReasonInvalidStrategy:      {State: ActionRequired, Text: "the strategy is invalid"},
		fleetv1beta1.ReasonNoClustersSelected:   {State: ActionRequired, Text: "no clusters are selected"},
		fleetv1beta1.ReasonCanaryNotSelected:    {State: ActionRequired, Text: "no canary is selected"},
		fleetv1beta1.ReasonNoCanary:             {State: ActionRequired, Text: "no canary is left"},
		fleetv1beta1.ReasonNoOperatorImage:      {State: ActionRequired, Text: "the hub runs without --image"},
		fleetv1beta1.ReasonDependencyMissing:    {State: ActionRequired, Text: "a dependency is missing"},
		fleetv1beta1.ReasonDependencyIncomplete: {State: Waiting, Text: "waits for another upgrade"},
		fleetv1beta1.ReasonOutsideWindow:        {State: Waiting, Text: "waits for its window"},
		fleetv1beta1.ReasonSelectionUnstable:    {State: Waiting, Text: "waits for its selection"},
		fleetv1beta1.ReasonDeleting:             {State: Waiting, Text: "is being deleted"},
		fleetv1beta1.ReasonCannotObserve:        {State: Unknown, Text: "the hub cannot read its objects"},
	}
}
