// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
)

// limits computes the number of slots and the budget, and compares the failures with it.
func (t *tally) limits(plan *Plan) {
	d := &t.decision
	d.CanaryFailed = len(t.failed)+plan.Departed.Canaries > 0 || plan.Stop.Reason == fleetv1beta1.ReasonCanaryFailed
	d.MaxFailuresExceeded = plan.Stop.Reason == fleetv1beta1.ReasonMaxFailuresExceeded
	d.Slots, _ = slots(plan, t.size)
	d.Tolerated = Unlimited
	least := 0
	first := true
	for group, b := range t.budgets {
		tolerated, err := tolerated(plan, b.size)
		if err != nil {
			continue // reported by stopped
		}
		if tolerated == Unlimited {
			d.Failures += b.failures
			continue
		}
		left := tolerated - b.failures
		if left < 0 {
			d.MaxFailuresExceeded = true
		}
		if first || left < least || left == least && group < t.worst {
			d.Failures, d.Tolerated, least, t.worst, first = b.failures, tolerated, left, group, false
		}
	}
}

// slots returns the number of slots for a fleet of that size without canaries.
func slots(plan *Plan, size int) (int, error) {
	if plan.MaxConcurrency == nil {
		if plan.Type == All {
			return Unlimited, nil
		}
		return 1, nil
	}
	n, err := Scale(*plan.MaxConcurrency, size)
	if err != nil {
		return 0, fmt.Errorf("spec.upgradeStrategy.maxConcurrency: %w", err)
	}
	if !isPositive(*plan.MaxConcurrency) {
		return 0, fmt.Errorf("spec.upgradeStrategy.maxConcurrency: %q must be at least 1 or 1%%", plan.MaxConcurrency.String())
	}
	return max(1, n), nil
}

// tolerated returns how many failures are tolerated among that many clusters without canaries.
func tolerated(plan *Plan, size int) (int, error) {
	if plan.MaxFailures == nil {
		return Unlimited, nil
	}
	n, err := Scale(*plan.MaxFailures, size)
	if err != nil {
		return 0, fmt.Errorf("spec.upgradeStrategy.maxFailures: %w", err)
	}
	return n, nil
}

// isPositive reports whether a valid limit is above zero.
func isPositive(limit intstr.IntOrString) bool {
	if limit.Type == intstr.Int {
		return limit.IntVal > 0
	}
	return strings.Trim(limit.StrVal, "0%") != ""
}

// Scale returns a number as it is, and a percentage of the size rounded up.
func Scale(limit intstr.IntOrString, size int) (int, error) {
	if limit.Type == intstr.Int {
		if limit.IntVal < 0 {
			return 0, fmt.Errorf("%d is negative", limit.IntVal)
		}
		return int(limit.IntVal), nil
	}
	digits, isPercentage := strings.CutSuffix(limit.StrVal, "%")
	percent, err := strconv.ParseUint(digits, 10, 7)
	if !isPercentage || err != nil || percent > 100 {
		return 0, fmt.Errorf("%q is neither a number nor a percentage from 0%% to 100%%", limit.StrVal)
	}
	return (int(percent)*size + 99) / 100, nil
}
