// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateinformer

import (
	"hash/fnv"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
)

// Intervals between requests to an informer.
const (
	pollActive      = 15 * time.Second // an update is pending and active
	pollPending     = 2 * time.Minute  // an update is pending and inactive, or may be pending
	pollAfterUpdate = 15 * time.Minute // an insight needs attention after the update
	afterUpdateFor  = 14 * 24 * time.Hour

	discoveryInterval = 10 * time.Minute // while an informer is in use

	waitInterval    = hooksv1alpha.WaitRetrySeconds * time.Second     // after the answer Wait
	waitLimitStatus = hooksv1alpha.MaxStatusWaitSeconds * time.Second // until the informer is reported
	waitLimitPlan   = hooksv1alpha.MaxPlanWaitSeconds * time.Second   // until the informer is reported
)

// pollInterval returns the interval between requests for an informer's insights about the update in
// progress; 0 if none are needed. It depends on the UpdateStatus: after a restart, the first update
// of that object decides.
func pollInterval(status updatev1beta1.UpdateStatusStatus, informer string, now time.Time) time.Duration {
	pending, active := false, false
	for _, section := range status.Sections() {
		if c := apimeta.FindStatusCondition(section.Conditions, updatev1beta1.ConditionUpdatePending); c != nil && c.Status != metav1.ConditionFalse {
			pending = true
			active = active || apimeta.IsStatusConditionTrue(section.Conditions, updatev1beta1.ConditionUpdateActive)
		}
	}
	switch {
	case active:
		return pollActive
	case pending:
		return pollPending
	}
	for _, retained := range status.AfterUpdate {
		if retained.UpdateInformer == informer && now.Sub(retained.RetainedSince.Time) < afterUpdateFor {
			return pollAfterUpdate
		}
	}
	return 0
}

// repairInterval is the longest time between two attempts. Following the advice of a condition or
// an insight takes effect within it.
const repairInterval = 30 * time.Second

// Settings of the circuit breaker.
const (
	breakerThreshold = 5 // consecutive failures
	breakerFirst     = 5 * time.Second
	breakerLongest   = repairInterval
)

// breaker counts consecutive failures. After breakerThreshold failures it opens and pauses
// requests, longer with each failure. A success closes it.
type breaker struct {
	failures int
	retryAt  time.Time
}

// fail counts a failure. The key spreads the retries of informers that fail at the same time.
func (b *breaker) fail(key string, now time.Time) {
	b.failures++
	if b.failures < breakerThreshold {
		b.retryAt = now.Add(breakerFirst)
		return
	}
	pause := breakerFirst
	for range min(b.failures-breakerThreshold, 10) {
		pause *= 2
	}
	pause = min(pause, breakerLongest)
	b.retryAt = now.Add(pause - jitter(key, b.failures, pause/5))
}

// succeed closes the breaker.
func (b *breaker) succeed() { *b = breaker{} }

// isOpen reports whether the breaker has opened since the last success.
func (b *breaker) isOpen() bool { return b.failures >= breakerThreshold }

// jitter returns a duration below most. It depends only on the key and the number.
func jitter(key string, n int, most time.Duration) time.Duration {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte{byte(n)}) // it never fails
	_, _ = hash.Write([]byte(key))
	return time.Duration(int64(hash.Sum32()) * int64(most) >> 32)
}
