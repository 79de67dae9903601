// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informersdk

// Kept returns the number of cached decisions.
func (t *TokenReview) Kept() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.decisions)
}
