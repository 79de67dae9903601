// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
)

// observe exports the state of the fleet after a pass that ended without an error.
func (s *scope) observe() {
	s.memory.passed = s.now
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
	s.export(&fleet, s.now)
}

// observeFailure exports the published state after a pass that ended with an error. The time of the last
// pass without one remains; it is that of the first pass if there is none.
func (s *scope) observeFailure() {
	fleet, published := s.memory.exported, &s.upgrade.Status
	fleet.Namespace, fleet.Name, fleet.Causes, fleet.Blocked = s.upgrade.Namespace, s.upgrade.Name, published.Causes, ""
	if published.ClustersSummery != nil {
		fleet.Clusters = *published.ClustersSummery
	}
	if c := apimeta.FindStatusCondition(published.Conditions, fleetv1beta1.ConditionAdmitting); c != nil && c.Status != metav1.ConditionTrue {
		fleet.Blocked = c.Reason
	}
	passed := s.memory.passed
	if passed.IsZero() {
		passed = s.memory.started
	}
	s.export(&fleet, passed)
}

// export exports the state of the fleet, with the time of the last pass unless the upgrade is finished.
func (s *scope) export(fleet *metrics.Fleet, passed time.Time) {
	fleet.LastPass = time.Time{}
	if c := fleet.Clusters; c.Total == 0 || c.Complete+c.Failed < c.Total {
		fleet.LastPass = passed
	}
	s.memory.exported = *fleet
	s.Metrics.SetFleet(*fleet)
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
