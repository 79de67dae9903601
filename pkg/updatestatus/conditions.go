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

// observation describes whether an update of a section is pending.
type observation struct {
	// unknown explains why the section cannot be observed. It is empty if the section can be.
	unknown string
	pending bool
	// outdated lists the nodes of a pool that do not match the release.
	outdated []string
	// message replaces the default message if it is not empty.
	message string
}

// wording holds the reasons and messages of UpdatePending and UpdateActive, both for a pending update and for
// none.
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

// poolWording returns the wording for a pool.
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

// conditions returns the conditions UpdatePending and UpdateActive of a section.
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

// activeCondition returns the condition UpdateActive of a section with a pending update.
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

// missing explains why sources cannot be read. It returns "" if all of them can.
func missing(f checks.Facts, sources ...checks.FactSource) string {
	var messages []string
	for _, source := range sources {
		if m, is := f.Missing[source]; is {
			messages = append(messages, fmt.Sprintf("%s: %s", source, text.Reason(m.Message)))
		}
	}
	return strings.Join(messages, "; ")
}
