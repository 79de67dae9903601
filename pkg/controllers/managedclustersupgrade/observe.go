// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"time"

	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
)

// observe exports the state of the fleet after a pass that ended without an error.
func (s *scope) observe() {
	s.observeSteps()
	published := &s.upgrade.Status
	if published.ClustersSummery == nil {
		return
	}
	fleet := metrics.Fleet{
		Namespace: s.upgrade.Namespace, Name: s.upgrade.Name, Clusters: *published.ClustersSummery, Causes: published.Causes,
		Blocked: s.decision.Stopped.Reason, OldestInFlight: s.oldestInFlight(),
	}
	if tolerated := s.decision.Tolerated; tolerated != rollout.Unlimited {
		left := tolerated - s.decision.Failures
		fleet.BudgetLeft = &left
	}
	if c := fleet.Clusters; c.Total == 0 || c.Complete+c.Failed < c.Total {
		fleet.LastPass = s.now
	}
	s.Metrics.SetFleet(fleet)
}

// oldestInFlight returns when the cluster was admitted that is in flight for the longest time; zero
// means that none is in flight.
func (s *scope) oldestInFlight() time.Time {
	var oldest time.Time
	for i := range s.members {
		m := &s.members[i]
		if m.Run == nil || !m.InFlight() {
			continue
		}
		if at := m.Run.Spec.AdmissionTime.Time; oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	return oldest
}

// observeSteps observes the steps of the runs that have ended since the last pass, each run once an
// attempt. Those that had ended before the first pass of this process are not observed.
func (s *scope) observeSteps() {
	first := s.memory.ended == nil
	ended := make(map[string]int32, len(s.runs))
	for name, run := range s.runs {
		state := run.Status.State
		if run.Status.Attempt != run.Spec.Attempt || state != fleetv1alpha1.StateComplete && state != fleetv1alpha1.StateFailed {
			continue
		}
		ended[name] = run.Status.Attempt
		if first || s.memory.ended[name] == run.Status.Attempt || len(run.Status.History) == 0 {
			continue
		}
		for _, step := range run.Status.History[0].Conditions {
			s.Metrics.ObserveStep(step)
		}
	}
	s.memory.ended = ended
}
