// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"strings"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Milestones that no step announces. They follow from the state of the current step.
const (
	// MilestoneStalled is reached when the current step takes longer than it should.
	MilestoneStalled engine.Milestone = "Stalled"
	// MilestoneRecovered is reached when a stalled step is done.
	MilestoneRecovered engine.Milestone = "Recovered"
)

// reasonPrefix is the prefix of the reasons of notifications that announce a milestone.
const reasonPrefix = "Upgrade"

// MilestoneReason returns the reason of the notification that announces a milestone.
func MilestoneReason(m engine.Milestone) string { return reasonPrefix + string(m) }

// MilestoneOf returns the milestone that a notification announces, according to its field or its
// reason. The milestone may be unknown.
func MilestoneOf(n engine.Notification) engine.Milestone {
	if n.Milestone != "" {
		return n.Milestone
	}
	name, _ := strings.CutPrefix(n.Reason, reasonPrefix)
	return engine.Milestone(name)
}
