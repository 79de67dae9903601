// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus

import (
	"cmp"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/pause"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// observation is whether an update of a section is pending.
type observation struct {
	// unknown is why that cannot be observed; empty if it can.
	unknown string
	pending bool
	// outdated are the nodes of a pool that do not match the release.
	outdated []string
	// message replaces the usual message; empty means the usual one.
	message string
}

// wording holds the reasons and messages of UpdatePending and UpdateActive: while an update is pending, and once it is
// not.
type wording struct {
	pendingReason, pending, activeReason, active     string
	matchReason, match, reconciledReason, reconciled string
}

var controlPlaneWording = wording{
	updatev1beta1.ReasonClusterVersionNotReconciled, "ClusterVersion release has not reconciled.",
	updatev1beta1.ReasonControlPlaneUpdateActive, "ClusterVersion release is being reconciled.",
	updatev1beta1.ReasonClusterVersionReconciled, "ClusterVersion release has reconciled.",
	updatev1beta1.ReasonClusterVersionReconciled, "ClusterVersion release has reconciled.",
}

// poolWording returns the wording of a pool.
func poolWording(o observation) wording {
	worker := "At least one worker"
	if len(o.outdated) > 0 {
		worker += " (" + text.JoinNames(o.outdated) + ")"
	}
	return wording{
		updatev1beta1.ReasonWorkerDoesNotMatchRelease, worker + " does not match target release.",
		updatev1beta1.ReasonWorkersUpdateActive, worker + " is being reconciled with release.",
		updatev1beta1.ReasonWorkersMatchRelease, cmp.Or(o.message, "All workers match target release."),
		updatev1beta1.ReasonWorkersReconciled, cmp.Or(o.message, "All workers have been reconciled with release."),
	}
}

// conditions returns UpdatePending and UpdateActive of a section.
func conditions(o observation, paused pause.Pause, w wording) []metav1.Condition {
	pending := metav1.Condition{Type: updatev1beta1.ConditionUpdatePending, Status: metav1.ConditionTrue, Reason: w.pendingReason, Message: w.pending}
	active := activeCondition(paused, w.activeReason, w.active)
	switch {
	case o.unknown != "":
		pending.Status, pending.Reason, pending.Message = metav1.ConditionUnknown, updatev1beta1.ReasonCannotObserve, o.unknown
		active.Status, active.Reason, active.Message = metav1.ConditionUnknown, updatev1beta1.ReasonCannotObserve, o.unknown
	case !o.pending:
		pending.Status, pending.Reason, pending.Message = metav1.ConditionFalse, w.matchReason, w.match
		active.Status, active.Reason, active.Message = metav1.ConditionFalse, w.reconciledReason, w.reconciled
	}
	return []metav1.Condition{pending, active}
}

// activeCondition returns UpdateActive of a section whose update is pending.
func activeCondition(paused pause.Pause, reason, message string) metav1.Condition {
	condition := metav1.Condition{Type: updatev1beta1.ConditionUpdateActive, Status: metav1.ConditionFalse, Message: paused.Message}
	switch paused.State {
	case pause.Paused:
		condition.Reason = updatev1beta1.ReasonPaused
	case pause.PausedUntil:
		condition.Reason = updatev1beta1.ReasonAwaitingWindow
	case pause.Unknown:
		condition.Status, condition.Reason = metav1.ConditionUnknown, updatev1beta1.ReasonCannotObserve
	case pause.NotPaused:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, reason, message
	}
	return condition
}

// missing returns why sources cannot be read, or "" if all can.
func missing(f checks.Facts, sources ...checks.Source) string {
	var messages []string
	for _, source := range sources {
		if m, is := f.Missing[source]; is {
			messages = append(messages, fmt.Sprintf("%s: %s", source, text.Reason(m.Message)))
		}
	}
	return strings.Join(messages, "; ")
}
