// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"slices"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
)

// maxHistory is how many versions the history holds at most.
const maxHistory = 16

// underWay says whether the attempt has begun and is not over.
func underWay(record history.History) bool {
	return record.StartTime != nil && record.CompleteTime == nil
}

// ended says whether the attempt is over, its clean-up included.
func ended(record history.History) bool { return record.CompleteTime != nil }

// attemptOf is the record of the attempt that is to be looked at: the one under
// way whatever the spec says now, else the one that the spec asks for, which may be new.
func attemptOf(cfg *v1alpha1.UpgradeConfig, upgradeAt time.Time) history.History {
	if i := slices.IndexFunc(cfg.Status.History, underWay); i >= 0 {
		return *cfg.Status.History[i].DeepCopy()
	}
	fresh := history.History{Version: cfg.Spec.Desired.Version, Phase: history.PhaseNew, Attempt: 1}
	if !upgradeAt.IsZero() {
		fresh.UpgradeAt = stamp(upgradeAt)
	}
	i := slices.IndexFunc(cfg.Status.History, func(h history.History) bool { return h.Version == fresh.Version })
	if i < 0 {
		return fresh
	}
	former := *cfg.Status.History[i].DeepCopy()
	switch {
	case ended(former) && former.Phase == history.PhaseFailed && !former.UpgradeAt.Equal(fresh.UpgradeAt):
		fresh.Attempt = former.Attempt + 1
		return fresh
	case !ended(former):
		former.UpgradeAt = fresh.UpgradeAt
	}
	return former
}

// withAttempt is the history with that record first. What was asked for before
// and never began is no history.
func withAttempt(all []history.History, record history.History) []history.History {
	rest := slices.DeleteFunc(slices.Clone(all), func(h history.History) bool {
		return h.Version == record.Version || h.Attempt <= 1 && h.StartTime == nil && !ended(h)
	})
	all = append([]history.History{record}, rest...)
	return all[:min(len(all), maxHistory)]
}
