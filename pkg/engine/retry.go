// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import "time"

// Retry returns when a step that has been tried for so long is to be tried again: after half as long
// as it has been tried for. It returns false once the timeout is over.
func (r Run) Retry(timeout time.Duration) (after time.Duration, ok bool) {
	elapsed := r.Now.Sub(r.Since)
	return min(max(elapsed/2, minRetry), timeout-elapsed), elapsed < timeout
}
