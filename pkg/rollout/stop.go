// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// retryHint is the remedy for what stops a rollout until its next attempt.
const retryHint = "fix the cause, then raise spec.attempt"

// stopped returns why no cluster may begin. The reason that lasts longest comes first.
func (t *tally) stopped(plan *Plan, now time.Time) Stop {
	for _, rule := range []func(*Plan) Stop{
		t.ended, t.requested, t.strategy, t.failures, surroundings, t.selection,
	} {
		if stop := rule(plan); !stop.IsZero() {
			return stop
		}
	}
	if stop := t.window(plan, now); !stop.IsZero() {
		return stop
	}
	t.decision.GoesOn = true
	if stop := t.canaryNotAvailable(plan); !stop.IsZero() {
		t.decision.UntilAttempt = stop
		return stop
	}
	return t.waits(plan)
}

// ended returns a reason if there is no cluster that has not begun. A selection that may be
// incomplete may lack such a cluster.
func (t *tally) ended(plan *Plan) Stop {
	lost := t.decision.UntilAttempt.Reason == fleetv1beta1.ReasonRecordsLost
	if t.total > 0 && t.pending == 0 && !lost && plan.SelectionUnstable == "" {
		return Stop{fleetv1beta1.ReasonFinished, "no cluster is left to begin"}
	}
	return Stop{}
}

// untilAttempt returns the stop that lasts until the next attempt: one that the status shows, lost records, or
// failures.
func (t *tally) untilAttempt(plan *Plan) Stop {
	switch {
	case !plan.Stop.IsZero():
		return plan.Stop
	case plan.RecordsLost != "":
		return Stop{fleetv1beta1.ReasonRecordsLost, plan.RecordsLost}
	}
	return t.tooManyFailures(plan)
}

// canaryNotAvailable returns a reason if a canary could not begin for too long, and notes when one will be. The time does not count
// while nothing may begin.
func (t *tally) canaryNotAvailable(plan *Plan) Stop {
	if !t.missingAt.IsZero() {
		t.next(t.missingAt)
	}
	if len(t.missing) == 0 {
		return Stop{}
	}
	return Stop{fleetv1beta1.ReasonCanaryNotAvailable, fmt.Sprintf("%s cannot begin for %s: %s: %s; fix it and raise spec.attempt, or %s",
		text.Plural(len(t.missing), "canary", "canaries"), plan.StallTimeout, text.JoinNames(t.missing), t.missingFor, plan.continueWithout(t.missing[0]))}
}

// continueWithout says how a person continues without a canary.
func (p *Plan) continueWithout(canary string) string {
	return fmt.Sprintf("set the annotation %s to %s@%d=REASON", fleetv1beta1.ContinueWithoutCanaryAnnotation, canary, p.Attempt)
}

// requested returns a reason that the spec names, or that records are lost.
func (t *tally) requested(plan *Plan) Stop {
	switch {
	case plan.Cancelled:
		return Stop{fleetv1beta1.ReasonCancelled, "spec.cancelled is true: no further cluster begins"}
	case t.decision.UntilAttempt.Reason == fleetv1beta1.ReasonRecordsLost:
		return t.decision.UntilAttempt
	case plan.DryRun:
		return Stop{fleetv1beta1.ReasonDryRun, "spec.dryRun is true: no cluster is upgraded"}
	}
	return Stop{}
}

// strategy returns a reason if a limit or a window is invalid.
func (t *tally) strategy(plan *Plan) Stop {
	_, err := slots(plan, t.size)
	if err == nil {
		_, err = tolerated(plan, t.size)
	}
	if err == nil && plan.Window != nil && plan.Window.Invalid != "" {
		err = errors.New(plan.Window.Invalid)
	}
	if err != nil {
		return Stop{fleetv1beta1.ReasonInvalidStrategy, err.Error()}
	}
	return Stop{}
}

// failures returns what stops the rollout until the next attempt.
func (t *tally) failures(*Plan) Stop { return t.decision.UntilAttempt }

// tooManyFailures returns a reason if a canary or too many clusters failed.
func (t *tally) tooManyFailures(plan *Plan) Stop {
	d := &t.decision
	switch {
	case len(t.failed) == 0 && plan.Departed.Canaries > 0:
		return Stop{fleetv1beta1.ReasonCanaryFailed, fmt.Sprintf("%s not complete when the ManagedCluster was deleted; %s",
			text.Plural(plan.Departed.Canaries, "canary was", "canaries were"), retryHint)}
	case d.CanaryFailed:
		return Stop{fleetv1beta1.ReasonCanaryFailed, fmt.Sprintf("%s failed: %s; %s",
			text.Plural(len(t.failed), "canary", "canaries"), text.JoinNames(t.failed), retryHint)}
	case d.MaxFailuresExceeded:
		where := ""
		if plan.Type == ProgressivePerGroup {
			where = " in group " + strconv.Itoa(t.worst+1)
		}
		return Stop{fleetv1beta1.ReasonMaxFailuresExceeded, fmt.Sprintf("%s failed%s and %d are tolerated; %s",
			text.Plural(d.Failures, "cluster", "clusters"), where, d.Tolerated, retryHint)}
	}
	return Stop{}
}

// surroundings returns a reason that others can remove.
func surroundings(plan *Plan) Stop {
	switch {
	case plan.Paused:
		return Stop{fleetv1beta1.ReasonPaused, "spec.paused is true: no further cluster begins"}
	case plan.SelectionUnstable != "":
		return Stop{fleetv1beta1.ReasonSelectionUnstable, plan.SelectionUnstable}
	}
	return Stop{}
}

// selection returns a reason if clusters are missing.
func (t *tally) selection(plan *Plan) Stop {
	switch {
	case plan.CanariesGone > 0:
		return Stop{fleetv1beta1.ReasonCanaryNotAvailable, fmt.Sprintf("%s not complete when the ManagedCluster or the ClusterUpgradeRun was deleted: %s, or change canaryClusters",
			text.Plural(plan.CanariesGone, "canary was", "canaries were"), plan.continueWithout("CLUSTER"))}
	case plan.RequireCanaries && t.canaries == 0 && plan.CanariesFixed > 0:
		return Stop{fleetv1beta1.ReasonNoCanary, fmt.Sprintf("%s fixed, and none is left: change canaryClusters to choose others",
			text.Plural(plan.CanariesFixed, "canary was", "canaries were"))}
	case plan.RequireCanaries && t.canaries == 0:
		return Stop{fleetv1beta1.ReasonCanaryNotSelected, "spec.upgradeStrategy.canaryClusters selects none of the selected clusters"}
	case t.total == 0:
		return Stop{fleetv1beta1.ReasonNoClustersSelected, "no cluster is selected"}
	case plan.DependencyMissing != "":
		return Stop{fleetv1beta1.ReasonDependencyMissing, plan.DependencyMissing}
	case plan.DependencyIncomplete != "":
		return Stop{fleetv1beta1.ReasonDependencyIncomplete, plan.DependencyIncomplete}
	case plan.NoOperatorImage != "":
		return Stop{fleetv1beta1.ReasonNoOperatorImage, plan.NoOperatorImage}
	}
	return Stop{}
}

// window returns a reason outside the maintenance windows, and notes when they open or close.
func (t *tally) window(plan *Plan, now time.Time) Stop {
	w := plan.Window
	if w == nil {
		return Stop{}
	}
	if w.Until.After(now) {
		t.next(w.Until)
	}
	switch {
	case w.Open:
		return Stop{}
	case w.Until.IsZero():
		return Stop{fleetv1beta1.ReasonOutsideWindow, "no maintenance window opens again"}
	}
	return Stop{fleetv1beta1.ReasonOutsideWindow, "the next maintenance window opens at " + text.FormatTime(w.Until)}
}

// waits returns a reason if no cluster of the earliest unfinished stage may begin now.
func (t *tally) waits(plan *Plan) Stop {
	d := &t.decision
	switch {
	case t.admissible > 0 && t.free() > 0:
		return Stop{}
	case t.hubInUse:
		return Stop{fleetv1beta1.ReasonNoFreeSlot, "the cluster of the hub is upgraded alone"}
	case t.admissible > 0 && t.stage.rank == rankHub:
		return Stop{fleetv1beta1.ReasonNoFreeSlot, fmt.Sprintf("the cluster of the hub waits for %s", text.Plural(d.InUse, "other cluster", "other clusters"))}
	case t.admissible > 0:
		return Stop{fleetv1beta1.ReasonNoFreeSlot, fmt.Sprintf("%d of %d slots are in use", d.InUse, d.Slots)}
	case t.inStage > 0:
		return Stop{fleetv1beta1.ReasonNoFreeSlot, fmt.Sprintf("waiting for %s in flight%s", text.Plural(t.inStage, "cluster", "clusters"), t.stage.describe(plan))}
	case t.held.count > 0:
		return Stop{fleetv1beta1.ReasonHeld, fmt.Sprintf("%s held; %s: %s", text.Plural(t.held.count, "cluster is", "clusters are"), t.held.name, t.held.hold)}
	}
	return Stop{fleetv1beta1.ReasonSelectionUnstable, fmt.Sprintf("confirming for %s that %s no longer selected",
		RemovalDelay, text.Plural(t.deselected, "cluster is", "clusters are"))}
}

// describe returns where the members of the stage are, for a message.
func (s stage) describe(plan *Plan) string {
	switch {
	case s.rank == rankCanary:
		return ", the canaries"
	case plan.Type == ProgressivePerGroup && s.rank == rankOther:
		return " in group " + strconv.Itoa(s.group+1)
	}
	return ""
}
