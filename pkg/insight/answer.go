// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"time"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
)

// Result holds what became of a request to an informer.
type Result string

// The results.
const (
	// Success is an answer that lists every insight that the informer has.
	Success Result = "Success"
	// Failure is an answer of an informer that could not determine its insights.
	Failure Result = "Failure"
	// Wait is an answer of an informer that has to be queried again.
	Wait Result = "Wait"
	// Unreachable is an informer that did not answer.
	Unreachable Result = "Unreachable"
	// Invalid is an answer that is not as the protocol requires.
	Invalid Result = "Invalid"
	// Disabled is an informer that an administrator has disabled.
	Disabled Result = "Disabled"
	// Deleted is the result for an informer that no longer exists.
	Deleted Result = "Deleted"
	// NotQueried is an informer that is not queried at present, such as one that does not report on
	// updates in progress. It changes no insight of the informer, and ends those about the informer, apart
	// from the one that it is degraded.
	NotQueried Result = "NotQueried"
)

// Answer is the latest result of an informer.
type Answer struct {
	Informer string
	Result   Result
	// Reason and Message explain a result other than Success, for people.
	Reason, Message string
	// Insights are the insights that the informer reported, unchanged.
	Insights []updatev1beta1.Insight
	// At is when the answer was received.
	At time.Time
	// Live reports that the answer is the complete state at that time, rather than one that the
	// informer may have acquired earlier: what it lacks is resolved.
	Live bool
	// Unread are the kinds of objects that the informer could not read. A Success neither confirms nor
	// resolves insights that involve them.
	Unread []string
	// UnreadUIDs are prefixes of the uids of insights that are neither confirmed nor resolved, either.
	UnreadUIDs []string
	// Degraded is why the informer reports that it does not work, in its condition Online; empty if it
	// does not report that.
	Degraded string
}
