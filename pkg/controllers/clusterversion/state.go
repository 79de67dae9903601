// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterversion

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// state holds what is known about one ClusterVersion. It is lost when the process ends.
type state struct {
	// verified is the result of the last pass that compared or applied.
	verified verified
	// applied are the parameters in effect, and overlay is the time of their overlay; nil if the
	// status names both.
	applied parameters
	overlay time.Time
	// notRemoved are the fields that are no longer wanted and were still there in that pass; leftovers
	// describes them with their managers.
	notRemoved []string
	leftovers  string
	// holder is the upgrade that the channel was left to in that pass; empty means none.
	holder      string
	failures    failures
	corrections corrections
	// generation is the generation of the spec for which corrections and failures are counted.
	generation int64
}

// verified identifies what was compared.
type verified struct {
	uid        types.UID // of OpenShift's object
	generation int64
	spec       int64 // the generation of the ClusterVersion
	overlay    time.Time
}

// failures are consecutive failures to apply the parameters.
type failures struct {
	count   int
	retryAt time.Time
	message string
	// rejected reports that the API server rejects the parameters themselves.
	rejected bool
}

// retryDue reports whether it is time to apply parameters again that could not be applied.
func (s *state) retryDue(now time.Time) bool {
	return s.failures.count > 0 && !now.Before(s.failures.retryAt)
}

// notBefore returns the earliest time at which OpenShift's object is compared again although it has
// changed. Changed parameters are compared at once.
func (s *state) notBefore(seen verified) time.Time {
	if s.verified.spec != 0 && (s.verified.spec != seen.spec || !s.verified.overlay.Equal(seen.overlay)) {
		return time.Time{}
	}
	next := s.corrections.next()
	if next.Before(s.failures.retryAt) {
		return s.failures.retryAt
	}
	return next
}
