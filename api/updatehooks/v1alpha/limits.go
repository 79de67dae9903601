// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha

// MaxAnswerBytes is the maximum size of a response body. The Update Status Controller rejects larger
// responses.
const MaxAnswerBytes = 1 << 20

// Limits of the content of a response. The Update Status Controller accepts responses that exceed them, but
// publishes only the most severe insights, the first references of each in sorted order, and the beginning
// of each text.
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

// Times of a request, in seconds.
const (
	// DefaultTimeoutSeconds is the timeout of a discovery, and of a handler that does not request another
	// timeout.
	DefaultTimeoutSeconds = 10
	// MaxTimeoutSeconds is the maximum timeout that a handler may request.
	MaxTimeoutSeconds = 30
	// WaitRetrySeconds is the time between a Wait response and the next request.
	WaitRetrySeconds = 5
	// MaxStatusWaitSeconds is the time after which the controller reports an informer that keeps responding
	// Wait about an update in progress.
	MaxStatusWaitSeconds = 2 * 60
	// MaxPlanWaitSeconds is the time after which the controller reports an informer that keeps responding
	// Wait about a plan.
	MaxPlanWaitSeconds = 10 * 60
	// MaxAheadSeconds limits how far an acquisition time may be in the future. The controller replaces
	// later times with the time of the response.
	MaxAheadSeconds = 60
)
