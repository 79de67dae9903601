// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"strings"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// The milestones that no step of a runbook has: they follow from the state of the current step.
const (
	// MilestoneStalled means that the current step takes longer than it should.
	MilestoneStalled engine.Milestone = "Stalled"
	// MilestoneRecovered means that a step that had stalled is done.
	MilestoneRecovered engine.Milestone = "Recovered"
)

// reasonPrefix begins the reasons of the notifications that announce a milestone.
const reasonPrefix = "Upgrade"

// MilestoneReason returns the reason of the notification that announces a milestone.
func MilestoneReason(m engine.Milestone) string { return reasonPrefix + string(m) }

// MilestoneOf returns the milestone that a notification announces, by its field or by its reason.
// It may be one that does not exist.
func MilestoneOf(n engine.Notification) engine.Milestone {
	if n.Milestone != "" {
		return n.Milestone
	}
	name, _ := strings.CutPrefix(n.Reason, reasonPrefix)
	return engine.Milestone(name)
}
