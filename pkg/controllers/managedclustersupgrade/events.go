// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// component is the source of the Events.
const component = "managed-upgrade-hub"

// initialReasons are the reasons of conditions about which there is nothing to report.
var initialReasons = []string{
	fleetv1beta1.ReasonNothingApplied, fleetv1beta1.ReasonNothingInProgress, fleetv1beta1.ReasonClustersPending, fleetv1beta1.ReasonNoFailures,
	fleetv1beta1.ReasonClustersFailed, fleetv1beta1.ReasonFinished,
}

// warnings are the reasons of the condition Admitting that a person must resolve.
var warnings = []string{
	fleetv1beta1.ReasonCanaryFailed, fleetv1beta1.ReasonMaxFailuresExceeded, fleetv1beta1.ReasonRecordsLost, fleetv1beta1.ReasonInvalidStrategy,
	fleetv1beta1.ReasonCanaryNotSelected, fleetv1beta1.ReasonNoClustersSelected, fleetv1beta1.ReasonDependencyMissing,
	fleetv1beta1.ReasonCannotObserve, fleetv1beta1.ReasonNoOperatorImage,
}

const (
	// eventRetry is the time until an Event is written again that could not be.
	eventRetry = time.Minute
	// maxEvents bounds how many Events wait to be written.
	maxEvents = 50
)

// publishTransitions writes an Event for each transition from the published status to the next one, in
// the order of the conditions. It precedes the write of the status: after a crash in between, the same
// transitions have the same names, and exist already.
func (s *scope) publishTransitions(ctx context.Context, next *fleetv1beta1.ManagedClustersUpgradeStatus) {
	before := &s.upgrade.Status
	for i := range next.Conditions {
		after := &next.Conditions[i]
		if n, notable := transition(apimeta.FindStatusCondition(before.Conditions, after.Type), after); notable {
			n.ID = transitionID(before, after)
			s.cache.events = append(s.cache.events, n)
		}
	}
	s.writeEvents(ctx)
}

// writeEvents writes the Events that wait to be written, in order. After an error, the rest is written
// later: Events stop no rollout.
func (s *scope) writeEvents(ctx context.Context) {
	ref := corev1.ObjectReference{
		APIVersion: fleetv1beta1.GroupVersion.String(), Kind: "ManagedClustersUpgrade",
		Namespace: s.upgrade.Namespace, Name: s.upgrade.Name, UID: s.upgrade.UID,
	}
	m := s.cache
	m.events = m.events[max(0, len(m.events)-maxEvents):]
	for len(m.events) > 0 {
		if err := s.events.Create(ctx, ref, m.events[0]); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "writing an Event", "reason", m.events[0].Reason)
			s.wakeAt(s.now.Add(eventRetry))
			return
		}
		m.events = m.events[1:]
	}
}

// transition returns the Event about a change of a condition, and whether there is one. Before nil means
// that the condition is new.
func transition(before, after *metav1.Condition) (engine.Notification, bool) {
	n := engine.Notification{Type: corev1.EventTypeNormal, Reason: after.Reason, Message: after.Message}
	if before != nil && before.Status == after.Status && before.Reason == after.Reason {
		return n, false
	}
	if before == nil && after.Reason == fleetv1beta1.ReasonNotStalled || slices.Contains(initialReasons, after.Reason) {
		return n, false
	}
	switch after.Type {
	case fleetv1beta1.ConditionInProgress: // Complete reports its end
		return n, after.Status == metav1.ConditionTrue
	case fleetv1beta1.ConditionAdmitting:
		if slices.Contains(warnings, after.Reason) {
			n.Type = corev1.EventTypeWarning
		}
		return n, isStop(after.Reason) || before != nil && isStop(before.Reason)
	case fleetv1beta1.ConditionFailed, fleetv1beta1.ConditionStalled:
		if after.Status == metav1.ConditionTrue {
			n.Type = corev1.EventTypeWarning
		}
	case fleetv1beta1.ConditionSelected, fleetv1beta1.ConditionPreflightPassed:
		if after.Status == metav1.ConditionFalse {
			n.Type = corev1.EventTypeWarning
		}
	}
	return n, true
}

// isStop reports whether the reason of the condition Admitting is more than that clusters take their
// turns.
func isStop(reason string) bool {
	return reason != fleetv1beta1.ReasonOpen && reason != fleetv1beta1.ReasonNoFreeSlot && reason != fleetv1beta1.ReasonFinished
}

// transitionID identifies a transition by the status before it, which is unique to it, and by what the
// condition becomes.
func transitionID(before *fleetv1beta1.ManagedClustersUpgradeStatus, after *metav1.Condition) string {
	encoded, err := json.Marshal([]any{before, after.Type, after.Status, after.Reason})
	if err != nil {
		encoded = []byte(after.Type + after.Reason) // times, numbers, and texts can be encoded
	}
	hash := sha256.Sum256(encoded)
	return hex.EncodeToString(hash[:8])
}
