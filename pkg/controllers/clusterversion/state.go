// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterversion

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// state holds what this process knows about one ClusterVersion.
type state struct {
	// verified identifies what the last pass compared or applied.
	verified verified
	// applied holds the parameters in effect, and overlay the time of their overlay. applied is nil
	// if the status has both.
	applied parameters
	overlay time.Time
	// notRemoved lists the fields that are no longer wanted but were still there in that pass.
	// leftovers describes them and their managers.
	notRemoved []string
	leftovers  string
	// holder is the upgrade that owned the channel in that pass; empty if none did.
	holder      string
	failures    failures
	corrections corrections
	// generation is the spec generation that the corrections and failures belong to.
	generation int64
}

// verified identifies what was compared.
type verified struct {
	uid        types.UID // of OpenShift's object
	generation int64
	spec       int64 // the generation of the ClusterVersion
	overlay    time.Time
}

// failures counts consecutive failures to apply the parameters.
type failures struct {
	count   int
	retryAt time.Time
	message string
	// rejected reports that the API server rejects the parameters themselves.
	rejected bool
}

// retryDue reports whether it is time to retry a failed apply.
func (s *state) retryDue(now time.Time) bool {
	return s.failures.count > 0 && !now.Before(s.failures.retryAt)
}

// notBefore returns the earliest time to compare OpenShift's object again after it has changed.
// Changed parameters are compared at once.
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
