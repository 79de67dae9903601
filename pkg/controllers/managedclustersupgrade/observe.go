// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"cmp"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
)

// observe exports the state of the fleet after a pass that ended without an error.
func (s *scope) observe() {
	s.cache.passed = s.Now
	if s.Runs == nil { // it is at rest
		s.exportAgain(fleetv1beta1.ReasonFinished, s.Now)
		return
	}
	s.observeSteps()
	if s.Upgrade.Status.ClustersSummery == nil {
		return
	}
	fleet := metrics.Fleet{Blocked: s.decision.Stopped.Reason, OldestInFlight: s.oldestInFlight()}
	if tolerated := s.decision.Tolerated; tolerated != rollout.Unlimited {
		left := tolerated - s.decision.Failures
		fleet.BudgetLeft = &left
	}
	s.export(&fleet, s.Now)
}

// observeFailure exports the published state after a pass that ended with an error. The time of the last pass without an
// error remains; the first pass sets it if there is none.
func (s *scope) observeFailure() {
	blocked := ""
	if c := apimeta.FindStatusCondition(s.Upgrade.Status.Conditions, fleetv1beta1.ConditionAdmitting); c != nil && c.Status != metav1.ConditionTrue {
		blocked = c.Reason
	}
	s.exportAgain(blocked, cmp.Or(s.cache.passed, s.cache.started))
}

// exportAgain exports what the metrics contain, with another reason why no cluster begins.
func (s *scope) exportAgain(blocked string, passed time.Time) {
	fleet := s.cache.exported
	fleet.Blocked = blocked
	s.export(&fleet, passed)
}

// export exports the fleet with the published counts, and the time of the last pass unless nothing is left to do.
func (s *scope) export(fleet *metrics.Fleet, passed time.Time) {
	fleet.Namespace, fleet.Name = s.Upgrade.Namespace, s.Upgrade.Name
	clusters := ptr.Deref(s.Upgrade.Status.ClustersSummery, fleetv1beta1.ClustersSummary{})
	fleet.Clusters = map[string]int32{
		string(rollout.NotStarted): clusters.Pending, string(rollout.Initialized): clusters.Initialized,
		string(rollout.PartialUpgrade): clusters.PartialUpgrade, string(rollout.Complete): clusters.Complete,
		string(rollout.Failed): clusters.Failed,
	}
	fleet.Failures, fleet.Stalled = map[string]int32{}, 0
	for i := range s.Upgrade.Status.Causes {
		switch c := &s.Upgrade.Status.Causes[i]; c.Type {
		case fleetv1beta1.CauseFailed:
			fleet.Failures[c.Reason] += c.Count
		case fleetv1beta1.CauseStalled:
			fleet.Stalled += c.Count
		case fleetv1beta1.CauseBlocked:
		}
	}
	fleet.LastPass = time.Time{}
	if s.Upgrade.DeletionTimestamp != nil || !clusters.Ended() {
		fleet.LastPass = passed
	}
	s.cache.exported = *fleet
	s.Metrics.SetFleet(*fleet)
}

// oldestInFlight returns the first admission of a cluster in flight; zero if there is none.
func (s *scope) oldestInFlight() time.Time {
	var oldest time.Time
	for i := range s.members {
		if m := &s.members[i]; m.Run != nil && m.InFlight() && (oldest.IsZero() || m.Run.Spec.AdmissionTime.Time.Before(oldest)) {
			oldest = m.Run.Spec.AdmissionTime.Time
		}
	}
	return oldest
}

// observeSteps observes the steps of the runs that have ended since the last pass, each run once an attempt, and none that had
// ended before the first pass of this process.
func (s *scope) observeSteps() {
	for name, run := range s.Runs {
		r, state := s.cache.of(name), run.Status.State
		before := r.ended
		if r.ended = run.Status.Attempt; r.ended != run.Spec.Attempt || state != fleetv1alpha1.StateComplete && state != fleetv1alpha1.StateFailed {
			r.ended = 0
		}
		if r.ended != 0 && r.ended != before && s.cache.observed {
			for _, step := range run.Record().Conditions {
				s.Metrics.ObserveStep(step)
			}
		}
	}
	s.cache.observed = true
}
