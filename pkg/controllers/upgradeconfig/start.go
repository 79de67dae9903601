// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// pendingReason says what there is to say about an upgrade that has not begun, or
// nil if it is to begin now, or to be gone on with because its record was lost.
func (s *scope) pendingReason(ctx context.Context) *summary {
	if s.upgrader == nil {
		return s.rejectedStatus(reasonUnknownType, s.unknownTypeMessage())
	}
	version, err := clusterstate.GetClusterVersion(ctx, s.Client)
	if err != nil {
		return s.unreadableStatus(err)
	}
	if version.Installed == "" {
		return s.unreadableStatus(errors.New("the cluster version names no installed version yet"))
	}
	change, invalid := clusterstate.CompareVersions(version.Installed, s.record.Version)
	if invalid == nil && change == clusterstate.Same && version.Completed && !s.hasFinalizer() {
		return s.alreadyAtVersionStatus()
	}
	committed, err := engine.Committed(ctx, s.book, s.record)
	switch {
	case err != nil:
		return s.unreadableStatus(err)
	case committed: // there is no record of it; go on with the rest
		return nil
	case s.hasFinalizer() && !s.upgradeAt.IsZero() && !s.now.Before(s.upgradeAt):
		return nil // neither is there of this, and the cluster version operator may have been asked: if the window has closed, the engine cleans up
	}
	if reason, message := validateUpgradePath(version.Installed, s.record.Version); reason != "" {
		return s.rejectedStatus(reason, message)
	}
	return s.schedule(ctx)
}

// validateUpgradePath says why a version cannot be upgraded to, whenever.
func validateUpgradePath(installed, desired string) (reason, message string) {
	change, err := clusterstate.CompareVersions(installed, desired)
	switch {
	case err != nil:
		return reasonInvalidVersion, fmt.Sprintf("spec.desired.version: %v", err)
	case change == clusterstate.Downgrade:
		return reasonDowngrade, fmt.Sprintf("spec.desired.version is %s, and %s is installed: an upgrade leads to a newer version", desired, installed)
	}
	return "", ""
}

// schedule waits for the time, and knows when it is too late.
func (s *scope) schedule(ctx context.Context) *summary {
	switch {
	case s.upgradeAt.IsZero():
		return s.rejectedStatus(reasonInvalidTime, fmt.Sprintf("spec.upgradeAt is %q, which is no time; write it as in 2020-05-01T12:00:00Z", s.cfg.Spec.UpgradeAt))
	case s.now.Before(s.upgradeAt):
		status := s.pendingStatus(reasonScheduled, "the upgrade begins at "+formatTime(s.upgradeAt), s.upgradeAt)
		status.precheck, status.recheckAt = s.precheck(ctx)
		return status
	case !s.now.Before(s.windowEnd()):
		return s.windowMissedStatus()
	case s.paused():
		return s.pendingStatus(reasonPaused, "spec.paused holds the upgrade; its window closes at "+formatTime(s.windowEnd()), s.windowEnd())
	}
	return nil
}

func (s *scope) pendingStatus(reason, message string, next time.Time) *summary {
	return &summary{
		phase:          history.PhasePending,
		accepted:       valid,
		progressing:    condition{metav1.ConditionFalse, reason, message},
		nextTransition: next,
	}
}

// rejectedStatus is an upgrade that cannot run as it is written. It can be corrected until its window closes.
func (s *scope) rejectedStatus(reason, message string) *summary {
	status := s.pendingStatus(reason, message, s.windowEnd())
	status.accepted = condition{metav1.ConditionFalse, reason, message}
	if !s.upgradeAt.IsZero() && !s.now.Before(s.windowEnd()) {
		status.fail(reason, message)
	}
	return status
}

// lockedStatus is an upgrade that waits for another one; so does one under way whose
// lock was taken away, whatever its window.
func (s *scope) lockedStatus(holder string) *summary {
	message := "waiting for the upgrade of " + holder + ", one runs at a time"
	status := s.pendingStatus(reasonClusterLocked, message, time.Time{})
	switch {
	case inProgress(s.record):
		status.phase = s.record.Phase
	case s.now.Before(s.windowEnd()):
		status.nextTransition = s.windowEnd()
	}
	status.accepted = condition{metav1.ConditionFalse, reasonClusterLocked, message}
	return status
}

func (s *scope) windowMissedStatus() *summary {
	message := "the upgrade did not begin by " + formatTime(s.windowEnd()) + ", when its window closed"
	status := s.pendingStatus(reasonWindowMissed, message, time.Time{})
	accepted := meta.FindStatusCondition(s.cfg.Status.Conditions, v1alpha1.ConditionAccepted)
	if accepted != nil && accepted.Reason == reasonClusterLocked && accepted.ObservedGeneration == s.cfg.Generation {
		message += "; it was " + accepted.Message
		status.accepted = condition{accepted.Status, accepted.Reason, accepted.Message}
	}
	status.fail(reasonWindowMissed, message)
	return status
}

func (s *scope) alreadyAtVersionStatus() *summary {
	message := "the cluster is at " + s.record.Version + " already; there was nothing to do"
	status := s.pendingStatus(reasonAlreadyAtVersion, message, time.Time{})
	status.phase, status.finished = history.PhaseUpgraded, true
	status.succeeded = condition{metav1.ConditionTrue, reasonAlreadyAtVersion, message}
	return status
}

func (s *scope) unreadableStatus(err error) *summary {
	status := s.pendingStatus(reasonCannotObserve, err.Error(), time.Time{})
	status.phase = history.PhaseUnknown
	status.accepted = condition{metav1.ConditionUnknown, reasonCannotObserve, "the cluster cannot be read"}
	status.progressing.status = metav1.ConditionUnknown
	return status
}

// unknownTypeStatus is an upgrade under way whose type is not known any more.
func (s *scope) unknownTypeStatus() *summary {
	status := s.unreadableStatus(errors.New(s.unknownTypeMessage()))
	status.accepted = condition{metav1.ConditionFalse, reasonUnknownType, s.unknownTypeMessage()}
	return status
}

func (s *summary) fail(reason, message string) {
	s.phase, s.finished, s.nextTransition = history.PhaseFailed, true, time.Time{}
	s.progressing = condition{metav1.ConditionFalse, reasonFailed, message}
	s.succeeded = condition{metav1.ConditionFalse, reason, message}
}

func (s *scope) unknownTypeMessage() string {
	known := slices.Sorted(maps.Keys(s.snapshot.Upgraders))
	return fmt.Sprintf("spec.type %q is not known; this operator knows %s", s.cfg.Spec.Type, strings.Join(known, ", "))
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
