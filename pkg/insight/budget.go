// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"slices"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
)

// Limits on the insights kept per informer and section.
const (
	MaxControlPlane = hooksv1alpha.MaxControlPlaneInsights
	MaxPool         = hooksv1alpha.MaxPoolInsights
)

// Keep returns a copy of the first limit insights of one informer in one section, without spare capacity, and the
// number of dropped insights. The insights must be sorted by severity, most severe first.
func Keep(insights []updatev1beta1.Insight, limit int) (kept []updatev1beta1.Insight, dropped int) {
	kept = slices.Clone(insights[:min(len(insights), limit)])
	return kept, len(insights) - len(kept)
}
