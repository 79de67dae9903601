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
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// mayStart says what there is to say about an upgrade that has not begun, or
// nil if it is to begin now, or to be gone on with because its record was lost.
func (l *look) mayStart(ctx context.Context) *summary {
	if l.upgrader == nil {
		return l.refused(reasonUnknownType, l.unknownType())
	}
	version, err := cluster.ReadVersion(ctx, l.Client)
	if err != nil {
		return l.unobservable(err)
	}
	if version.Installed == "" {
		return l.unobservable(errors.New("the cluster version names no installed version yet"))
	}
	change, invalid := cluster.Compare(version.Installed, l.record.Version)
	if invalid == nil && change == cluster.Same && version.Completed && !l.hasFinalizer() {
		return l.alreadyThere()
	}
	committed, err := engine.Committed(ctx, l.book, l.record)
	switch {
	case err != nil:
		return l.unobservable(err)
	case committed: // there is no record of it; go on with the rest
		return nil
	case l.hasFinalizer() && !l.upgradeAt.IsZero() && !l.now.Before(l.upgradeAt):
		return nil // neither is there of this, and the cluster version operator may have been asked: if the window has closed, the engine cleans up
	}
	if reason, message := unreachable(version.Installed, l.record.Version); reason != "" {
		return l.refused(reason, message)
	}
	return l.schedule(ctx)
}

// unreachable says why a version cannot be upgraded to, whenever.
func unreachable(installed, desired string) (reason, message string) {
	change, err := cluster.Compare(installed, desired)
	switch {
	case err != nil:
		return reasonInvalidVersion, fmt.Sprintf("spec.desired.version: %v", err)
	case change == cluster.Downgrade:
		return reasonDowngrade, fmt.Sprintf("spec.desired.version is %s, and %s is installed: an upgrade leads to a newer version", desired, installed)
	}
	return "", ""
}

// schedule waits for the time, and knows when it is too late.
func (l *look) schedule(ctx context.Context) *summary {
	switch {
	case l.upgradeAt.IsZero():
		return l.refused(reasonInvalidTime, fmt.Sprintf("spec.upgradeAt is %q, which is no time; write it as in 2020-05-01T12:00:00Z", l.cfg.Spec.UpgradeAt))
	case l.now.Before(l.upgradeAt):
		s := l.pending(reasonScheduled, "the upgrade begins at "+clockTime(l.upgradeAt), l.upgradeAt)
		s.early, s.again = l.foresee(ctx)
		return s
	case !l.now.Before(l.windowEnd()):
		return l.missed()
	case l.paused():
		return l.pending(reasonPaused, "spec.paused holds the upgrade; its window closes at "+clockTime(l.windowEnd()), l.windowEnd())
	}
	return nil
}

func (l *look) pending(reason, message string, next time.Time) *summary {
	return &summary{
		phase:       history.PhasePending,
		accepted:    valid,
		progressing: condition{metav1.ConditionFalse, reason, message},
		next:        next,
	}
}

// refused is an upgrade that cannot run as it is written. It can be corrected until its window closes.
func (l *look) refused(reason, message string) *summary {
	s := l.pending(reason, message, l.windowEnd())
	s.accepted = condition{metav1.ConditionFalse, reason, message}
	if !l.upgradeAt.IsZero() && !l.now.Before(l.windowEnd()) {
		s.fail(reason, message)
	}
	return s
}

// locked is an upgrade that waits for another one; so does one under way whose
// lock was taken away, whatever its window.
func (l *look) locked(holder string) *summary {
	message := "waiting for the upgrade of " + holder + ", one runs at a time"
	s := l.pending(reasonClusterLocked, message, time.Time{})
	switch {
	case underWay(l.record):
		s.phase = l.record.Phase
	case l.now.Before(l.windowEnd()):
		s.next = l.windowEnd()
	}
	s.accepted = condition{metav1.ConditionFalse, reasonClusterLocked, message}
	return s
}

func (l *look) missed() *summary {
	message := "the upgrade did not begin by " + clockTime(l.windowEnd()) + ", when its window closed"
	s := l.pending(reasonWindowMissed, message, time.Time{})
	accepted := meta.FindStatusCondition(l.cfg.Status.Conditions, v1alpha1.ConditionAccepted)
	if accepted != nil && accepted.Reason == reasonClusterLocked && accepted.ObservedGeneration == l.cfg.Generation {
		message += "; it was " + accepted.Message
		s.accepted = condition{accepted.Status, accepted.Reason, accepted.Message}
	}
	s.fail(reasonWindowMissed, message)
	return s
}

func (l *look) alreadyThere() *summary {
	message := "the cluster is at " + l.record.Version + " already; there was nothing to do"
	s := l.pending(reasonAlreadyAtVersion, message, time.Time{})
	s.phase, s.over = history.PhaseUpgraded, true
	s.succeeded = condition{metav1.ConditionTrue, reasonAlreadyAtVersion, message}
	return s
}

func (l *look) unobservable(err error) *summary {
	s := l.pending(reasonCannotObserve, err.Error(), time.Time{})
	s.phase = history.PhaseUnknown
	s.accepted = condition{metav1.ConditionUnknown, reasonCannotObserve, "the cluster cannot be read"}
	s.progressing.status = metav1.ConditionUnknown
	return s
}

// orphaned is an upgrade under way whose type is not known any more.
func (l *look) orphaned() *summary {
	s := l.unobservable(errors.New(l.unknownType()))
	s.accepted = condition{metav1.ConditionFalse, reasonUnknownType, l.unknownType()}
	return s
}

func (s *summary) fail(reason, message string) {
	s.phase, s.over, s.next = history.PhaseFailed, true, time.Time{}
	s.progressing = condition{metav1.ConditionFalse, reasonFailed, message}
	s.succeeded = condition{metav1.ConditionFalse, reason, message}
}

func (l *look) unknownType() string {
	known := slices.Sorted(maps.Keys(l.setup.Upgraders))
	return fmt.Sprintf("spec.type %q is not known; this operator knows %s", l.cfg.Spec.Type, strings.Join(known, ", "))
}

func clockTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
