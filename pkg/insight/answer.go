// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"time"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
)

// Result is the outcome of a request to an informer.
type Result string

// The results.
const (
	// Success is an answer that lists every insight of the informer.
	Success Result = "Success"
	// Failure is an answer from an informer that could not determine its insights.
	Failure Result = "Failure"
	// Wait is an answer from an informer that must be queried again.
	Wait Result = "Wait"
	// Unreachable is an informer that did not answer.
	Unreachable Result = "Unreachable"
	// Invalid is an answer that violates the protocol.
	Invalid Result = "Invalid"
	// Disabled is the result for an informer that an administrator has disabled.
	Disabled Result = "Disabled"
	// Deleted is the result for an informer that no longer exists.
	Deleted Result = "Deleted"
	// NotQueried is the result for an informer that is currently not queried, for example because it does not
	// report on updates in progress. It does not change the informer's insights. It ends the insights about
	// the informer, except the one that reports it as degraded.
	NotQueried Result = "NotQueried"
)

// Answer is the latest result of an informer.
type Answer struct {
	Informer string
	Result   Result
	// Reason and Message explain a result other than Success to users.
	Reason, Message string
	// Insights holds the insights exactly as reported.
	Insights []updatev1beta1.Insight
	// At is the time when the answer was received.
	At time.Time
	// Live is set if the answer is the complete state at that time, not data that the informer may have
	// acquired earlier. Anything it lacks is resolved.
	Live bool
	// Unread lists the kinds of objects that the informer could not read. A Success neither confirms nor
	// resolves insights that involve them.
	Unread []string
	// UnreadUIDs lists uid prefixes. Insights with these prefixes are neither confirmed nor resolved.
	UnreadUIDs []string
	// Degraded is the problem that the informer reports in its Online condition, or empty if it reports none.
	Degraded string
}
