// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
)

// maxObject is the maximum size of a ManagedClustersUpgrade, in bytes.
const maxObject = 10_000

// Status checks one status of an upgrade. A status without counters is not checked.
func Status(upgrade *fleetv1beta1.ManagedClustersUpgrade) error {
	s := &upgrade.Status
	if s.ClustersSummery == nil {
		return nil
	}
	encoded, err := json.Marshal(upgrade)
	if err != nil {
		return fmt.Errorf("encoding the ManagedClustersUpgrade: %w", err)
	}
	if len(encoded) >= maxObject {
		err = fmt.Errorf("the ManagedClustersUpgrade has %d bytes", len(encoded))
	}
	return errors.Join(err, counters(s), conditions(s))
}

// counters checks that the states add up to the total, and the canaries and groups to the fleet.
func counters(s *fleetv1beta1.ManagedClustersUpgradeStatus) error {
	all, parts := *s.ClustersSummery, fleetv1beta1.ClustersSummary{}
	summaries := []fleetv1beta1.ClustersSummary{}
	if s.CanaryClustersSummery != nil {
		summaries = append(summaries, *s.CanaryClustersSummery)
	}
	for i := range s.Groups {
		summaries = append(summaries, s.Groups[i].ClustersSummary)
	}
	for _, c := range summaries {
		parts.Total += c.Total
		parts.Initialized += c.Initialized
		parts.PartialUpgrade += c.PartialUpgrade
		parts.Complete += c.Complete
		parts.Finishing += c.Finishing
		parts.Failed += c.Failed
		parts.Pending += c.Pending
	}
	for _, c := range append(summaries, all) {
		if c.InFlight()+c.Complete+c.Failed+c.Pending != c.Total || c.Finishing > c.Complete {
			return fmt.Errorf("the states do not sum to the total: %+v", c)
		}
	}
	if parts != all {
		return fmt.Errorf("the canaries and the groups sum to %+v, not to %+v", parts, all)
	}
	return nil
}

// conditions checks that each condition is True if and only if the counters imply it.
func conditions(s *fleetv1beta1.ManagedClustersUpgradeStatus) error {
	c := s.ClustersSummery
	isTrue := func(name string) bool { return apimeta.IsStatusConditionTrue(s.Conditions, name) }
	for name, want := range map[string]bool{
		fleetv1beta1.ConditionSelected:   c.Total > 0,
		fleetv1beta1.ConditionInProgress: c.PartialUpgrade > 0,
		fleetv1beta1.ConditionFailed:     c.Failed > 0 || len(s.Departed) > 0,
	} {
		if isTrue(name) != want {
			return fmt.Errorf("condition %s is True: %t, with %+v", name, !want, *c)
		}
	}
	switch isComplete := isTrue(fleetv1beta1.ConditionComplete); {
	case isComplete && (!c.Ended() || c.Failed > 0 || len(s.Departed) > 0): // a complete upgrade may still wait for a stable selection
		return fmt.Errorf("condition Complete is True, with %+v", *c)
	case isComplete != (s.CompletionTime != nil):
		return fmt.Errorf("condition Complete is True: %t, with completion time %s", isComplete, s.CompletionTime)
	}
	return nil
}

// inFlight returns the number of clusters that hold a slot.
func inFlight(c *fleetv1beta1.ClustersSummary) int32 { return c.InFlight() + c.Finishing }

// limit returns the maximum number of clusters in flight.
func limit(upgrade *fleetv1beta1.ManagedClustersUpgrade) int32 {
	n := upgrade.Spec.UpgradeStrategy.MaxConcurrency
	if n == nil {
		if upgrade.Spec.UpgradeStrategy.RolloutType == fleetv1beta1.RolloutAll {
			return math.MaxInt32
		}
		return 1
	}
	var percent int32
	if _, err := fmt.Sscanf(n.StrVal, "%d%%", &percent); err != nil {
		return n.IntVal
	}
	if upgrade.Status.ClustersSummery == nil { // nothing has been counted
		return math.MaxInt32
	}
	size := upgrade.Status.ClustersSummery.Total
	if canaries := upgrade.Status.CanaryClustersSummery; canaries != nil {
		size -= canaries.Total
	}
	return max(1, (size*percent+99)/100)
}

// stops lists the reasons of the Admitting condition that persist until the next attempt.
var stops = []string{
	fleetv1beta1.ReasonCanaryFailed, fleetv1beta1.ReasonMaxFailuresExceeded, fleetv1beta1.ReasonCancelled, fleetv1beta1.ReasonRecordsLost,
}

// isStopped reports whether the status shows that no more clusters will start in this attempt.
func isStopped(s *fleetv1beta1.ManagedClustersUpgradeStatus) bool { return hasReason(s, stops...) }

// hasReason reports whether the Admitting condition has one of the reasons.
func hasReason(s *fleetv1beta1.ManagedClustersUpgradeStatus, reasons ...string) bool {
	admitting := apimeta.FindStatusCondition(s.Conditions, fleetv1beta1.ConditionAdmitting)
	return admitting != nil && slices.Contains(reasons, admitting.Reason)
}
