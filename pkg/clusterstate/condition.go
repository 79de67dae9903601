// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"cmp"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Condition is a condition of an object. The zero Condition is not reported.
type Condition struct {
	Status  string // True, False, or Unknown; empty if not reported
	Reason  string
	Message string
	// Since is when the status last changed, or zero if this is unknown.
	Since time.Time
}

// IsTrue reports whether the status is True.
func (c Condition) IsTrue() bool { return c.Status == string(configv1.ConditionTrue) }

// IsFalse reports whether the status is False.
func (c Condition) IsFalse() bool { return c.Status == string(configv1.ConditionFalse) }

// MessageOrReason returns the message or, if it is empty, the reason as one line of limited length.
func (c Condition) MessageOrReason() string {
	return cmp.Or(sanitize(c.Message), text.Reason(c.Reason))
}

// ReasonAndMessage returns the reason and message as one line of limited length.
func (c Condition) ReasonAndMessage() string {
	reason, message := sanitize(c.Reason), sanitize(c.Message)
	if reason == "" || message == "" {
		return c.MessageOrReason()
	}
	return reason + ": " + message
}

// Mentions reports whether the message contains the name of an operator.
func (c Condition) Mentions(name string) bool {
	words := strings.FieldsFunc(c.Message, func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	return slices.Contains(words, name)
}

func condition(conditions []configv1.ClusterOperatorStatusCondition, name configv1.ClusterStatusConditionType) Condition {
	for i := range conditions {
		if c := &conditions[i]; c.Type == name {
			return Condition{Status: string(c.Status), Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time}
		}
	}
	return Condition{}
}

// sanitize returns reported text as one line of limited length.
func sanitize(reported string) string { return text.Sanitize(reported, text.MaxReason) }
