// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha

// MaxAnswerBytes bounds the body of an answer. The Update Status Controller rejects a larger one.
const MaxAnswerBytes = 1 << 20

// The limits of what an answer reports. The Update Status Controller accepts an answer that exceeds
// them. It publishes the most severe insights, the first references of each in sorted order, and the
// beginnings of texts.
const (
	MaxInsights         = 320
	MaxUIDBytes         = 253
	MaxSummaryBytes     = 256
	MaxDescriptionBytes = 4096
	MaxWordBytes        = 128 // of a type or a reason
	MaxReferences       = 16  // of resources, and of pools

	MaxControlPlaneInsights = 64  // that the Update Status Controller publishes of an informer, the most severe ones
	MaxPoolInsights         = 256 // likewise, of each pool
)

// The times of a request, in seconds.
const (
	// DefaultTimeoutSeconds is the time for a discovery, and for the answer of a handler that requests
	// no other time.
	DefaultTimeoutSeconds = 10
	// MaxTimeoutSeconds bounds the time that a handler may request.
	MaxTimeoutSeconds = 30
	// WaitRetrySeconds is the time from an answer Wait to the next request.
	WaitRetrySeconds = 5
	// MaxStatusWaitSeconds is the time after which the controller reports an informer that answers
	// Wait about an update in progress.
	MaxStatusWaitSeconds = 2 * 60
	// MaxPlanWaitSeconds is the time after which the controller reports an informer that answers
	// Wait about a plan.
	MaxPlanWaitSeconds = 10 * 60
	// MaxAheadSeconds is how far an acquisition time may be in the future. The controller replaces a
	// later one by the time at which it received the answer.
	MaxAheadSeconds = 60
)
