// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
)

// minSamples is the minimum number of completed upgrades for an estimate.
const minSamples = 3

// Estimate is the remaining time of a rollout, assuming that clusters take as long as the completed ones.
type Estimate struct {
	// Low and High bound the remaining time.
	Low, High time.Duration
	// Done is the number of clusters that the estimate is based on. Median is their median duration.
	Done   int
	Median time.Duration
}

// load counts the unfinished clusters of a stage.
type load struct{ inFlight, pending int }

// NewEstimate estimates a rollout with the given number of slots. It returns false if too few clusters are
// complete. Stages run one after the other, and within a stage, clusters run one after the other in the
// slots. The low estimate counts only clusters that have not started and uses the lower quartile of the
// completed durations. The high estimate also counts clusters in flight and uses the upper quartile.
func NewEstimate(took []time.Duration, stages []load, slots int) (Estimate, bool) {
	e := Estimate{Done: len(took)}
	if len(took) < minSamples || slots == 0 {
		return e, false
	}
	took = slices.Sorted(slices.Values(took))
	e.Median = took[len(took)/2]
	fast, slow := took[len(took)/4], took[len(took)-1-len(took)/4]
	for _, stage := range stages {
		e.Low += time.Duration(rounds(stage.pending, slots)) * fast
		e.High += time.Duration(rounds(stage.pending+stage.inFlight, slots)) * slow
	}
	return e, true
}

// rounds returns how many clusters run one after the other in a slot.
func rounds(clusters, slots int) int {
	if slots < 0 {
		slots = max(1, clusters)
	}
	return (clusters + slots - 1) / slots
}

// estimate returns the estimate for the snapshot.
func (s *Snapshot) estimate() (Estimate, bool) {
	var took []time.Duration
	var stages []load
	last := [2]int{-1, -1}
	for _, m := range s.counted() {
		if d, is := duration(m); is {
			took = append(took, d)
		}
		if m.State == rollout.Complete || m.State == rollout.Failed {
			continue
		}
		if stage := s.stage(m); stage != last {
			stages, last = append(stages, load{}), stage
		}
		if m.State == rollout.NotStarted {
			stages[len(stages)-1].pending++
		} else {
			stages[len(stages)-1].inFlight++
		}
	}
	return NewEstimate(took, stages, s.Decision.Slots)
}

// stage identifies members that start without waiting for one another.
func (s *Snapshot) stage(m *admission.FleetMember) [2]int {
	switch {
	case m.Hub:
		return [2]int{2, 0}
	case m.IsCanary():
		return [2]int{0, 0}
	case s.Plan.Type == rollout.ProgressivePerGroup:
		return [2]int{1, m.Group}
	}
	return [2]int{1, 0}
}

// duration returns how long a cluster took from its admission to the end of its soak time. It returns false
// if the cluster was not upgraded.
func duration(m *admission.FleetMember) (time.Duration, bool) {
	run := m.Run
	if m.State != rollout.Complete || m.LateSuccess || run == nil || run.Spec.Outcome != nil || run.Status.CompletionTime == nil {
		return 0, false
	}
	d := run.Status.CompletionTime.Sub(run.Spec.AdmissionTime.Time)
	return d, d > 0
}
