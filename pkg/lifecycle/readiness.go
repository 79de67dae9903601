// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/readiness"
)

// settledReasons are the reasons of skipped attempts after which there is nothing left to do.
var settledReasons = []string{engine.ReasonAlreadyAtVersion, maintenance.ReasonSuspended, maintenance.ReasonRescheduled}

// readiness returns the state of the object for tools that know nothing about upgrades.
func (s summary) readiness() readiness.Verdict {
	verdict := func(level readiness.Level, c condition) readiness.Verdict {
		return readiness.Verdict{Level: level, Reason: c.reason, Message: c.message}
	}
	refused := s.accepted.status == metav1.ConditionFalse && s.accepted.reason != ReasonClusterLocked
	switch {
	case s.finished && (s.phase == history.PhaseFailed || s.phase == history.PhaseSkipped):
		if s.phase == history.PhaseSkipped && slices.Contains(settledReasons, s.succeeded.reason) {
			return verdict(readiness.Ready, s.succeeded)
		}
		return verdict(readiness.Stalled, s.succeeded)
	case refused:
		return verdict(readiness.Stalled, s.accepted)
	case s.phase == history.PhaseUpgraded && s.succeeded.status == metav1.ConditionTrue: // a damaged record may have any phase
		return verdict(readiness.Ready, s.succeeded)
	case s.progressing.status == metav1.ConditionUnknown:
		return verdict(readiness.Unknown, s.progressing)
	case s.early:
		return readiness.Verdict{}
	case s.held:
		return verdict(readiness.Waiting, s.progressing)
	}
	return verdict(readiness.Reconciling, s.progressing)
}
