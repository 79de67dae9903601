// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"slices"
	"strings"

	"github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
)

// levels are the levels in ascending order, which is that of checks.Level.
var levels = []v1beta1.Level{
	v1beta1.LevelStatus, v1beta1.LevelInfo, v1beta1.LevelWarning, v1beta1.LevelError, v1beta1.LevelCritical,
}

// Rank orders levels by severity. An unknown level counts as a warning.
func Rank(level v1beta1.Level) int {
	if rank := slices.Index(levels, level); rank >= 0 {
		return rank
	}
	return int(checks.LevelWarning)
}

// cleanLevel returns the level that an informer reported; false means that it is an unknown one, which
// counts as a warning.
func cleanLevel(reported v1beta1.Level) (v1beta1.Level, bool) {
	level := v1beta1.Level(strings.ToLower(strings.TrimSpace(string(reported))))
	if slices.Contains(levels, level) {
		return level, true
	}
	return v1beta1.LevelWarning, false
}
