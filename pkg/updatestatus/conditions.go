// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/informers"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/pause"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// observation is whether an update of a section is pending.
type observation struct {
	// unknown is why that cannot be observed; empty means that it can.
	unknown string
	pending bool
	// outdated are the nodes of a pool that do not match the release.
	outdated []string
	// message replaces the usual message; empty means the usual one.
	message string
}

// cannotObserve returns a condition that is neither true nor false.
func cannotObserve(name, message string) metav1.Condition {
	return metav1.Condition{Type: name, Status: metav1.ConditionUnknown, Reason: v1beta1.ReasonCannotObserve, Message: message}
}

// controlPlaneConditions returns UpdatePending and UpdateActive of the control plane.
func controlPlaneConditions(o observation, paused pause.Pause) []metav1.Condition {
	const (
		pending    = "ClusterVersion release has not reconciled."
		reconciled = "ClusterVersion release has reconciled."
	)
	switch {
	case o.unknown != "":
		return []metav1.Condition{cannotObserve(v1beta1.ConditionUpdatePending, o.unknown), cannotObserve(v1beta1.ConditionUpdateActive, o.unknown)}
	case !o.pending:
		return []metav1.Condition{
			{Type: v1beta1.ConditionUpdatePending, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonClusterVersionReconciled, Message: reconciled},
			{Type: v1beta1.ConditionUpdateActive, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonClusterVersionReconciled, Message: reconciled},
		}
	}
	return []metav1.Condition{
		{Type: v1beta1.ConditionUpdatePending, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonClusterVersionNotReconciled, Message: pending},
		activeCondition(paused, v1beta1.ReasonControlPlaneUpdateActive, "ClusterVersion release is being reconciled."),
	}
}

// poolConditions returns UpdatePending and UpdateActive of a pool.
func poolConditions(o observation, paused pause.Pause) []metav1.Condition {
	switch {
	case o.unknown != "":
		return []metav1.Condition{cannotObserve(v1beta1.ConditionUpdatePending, o.unknown), cannotObserve(v1beta1.ConditionUpdateActive, o.unknown)}
	case !o.pending:
		match, reconciled := "All workers match target release.", "All workers have been reconciled with release."
		if o.message != "" {
			match, reconciled = o.message, o.message
		}
		return []metav1.Condition{
			{Type: v1beta1.ConditionUpdatePending, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonWorkersMatchRelease, Message: match},
			{Type: v1beta1.ConditionUpdateActive, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonWorkersReconciled, Message: reconciled},
		}
	}
	worker := "At least one worker"
	if len(o.outdated) > 0 {
		worker += " (" + text.JoinNames(o.outdated) + ")"
	}
	return []metav1.Condition{
		{Type: v1beta1.ConditionUpdatePending, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonWorkerDoesNotMatchRelease, Message: worker + " does not match target release."},
		activeCondition(paused, v1beta1.ReasonWorkersUpdateActive, worker+" is being reconciled with release."),
	}
}

// activeCondition returns UpdateActive of a section whose update is pending.
func activeCondition(paused pause.Pause, reason, message string) metav1.Condition {
	condition := metav1.Condition{Type: v1beta1.ConditionUpdateActive, Status: metav1.ConditionFalse, Message: paused.Message}
	switch paused.State {
	case pause.Paused:
		condition.Reason = v1beta1.ReasonPaused
	case pause.PausedUntil:
		condition.Reason = v1beta1.ReasonAwaitingWindow
	case pause.Unknown:
		condition.Status, condition.Reason = metav1.ConditionUnknown, v1beta1.ReasonCannotObserve
	case pause.NotPaused:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, reason, message
	}
	return condition
}

// missing returns why sources cannot be read; empty means that all can.
func missing(f informers.Facts, sources ...informers.Source) string {
	var messages []string
	for _, source := range sources {
		if m, is := f.Missing[source]; is {
			messages = append(messages, fmt.Sprintf("%s: %s", source, text.Reason(m.Message)))
		}
	}
	return strings.Join(messages, "; ")
}
