// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package insight

import "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"

// The limits of what is kept of one informer.
const (
	MaxControlPlane = 64
	MaxPool         = 256
)

// Keep returns the most severe insights of one informer in one section, at most limit, and the number
// of the others. The insights are sorted.
func Keep(insights []v1beta1.Insight, limit int) (kept []v1beta1.Insight, dropped int) {
	kept = insights[:min(len(insights), limit)]
	return kept, len(insights) - len(kept)
}
