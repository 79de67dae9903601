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

// inProgress says whether the attempt has begun and is not over.
func inProgress(record history.Record) bool {
	return record.StartTime != nil && record.CompleteTime == nil
}

// isFinished says whether the attempt is over, its clean-up included.
func isFinished(record history.Record) bool { return record.CompleteTime != nil }

// currentAttempt is the record of the attempt that is to be looked at: the one under
// way whatever the spec says now, else the one that the spec asks for, which may be new.
func currentAttempt(cfg *v1alpha1.UpgradeConfig, upgradeAt time.Time) history.Record {
	if i := slices.IndexFunc(cfg.Status.History, inProgress); i >= 0 {
		return *cfg.Status.History[i].DeepCopy()
	}
	fresh := history.Record{Version: cfg.Spec.Desired.Version, Phase: history.PhaseNew, Attempt: 1}
	if !upgradeAt.IsZero() {
		fresh.UpgradeAt = toMetaTime(upgradeAt)
	}
	i := slices.IndexFunc(cfg.Status.History, func(h history.Record) bool { return h.Version == fresh.Version })
	if i < 0 {
		return fresh
	}
	previous := *cfg.Status.History[i].DeepCopy()
	switch {
	case isFinished(previous) && previous.Phase == history.PhaseFailed && !previous.UpgradeAt.Equal(fresh.UpgradeAt):
		fresh.Attempt = previous.Attempt + 1
		return fresh
	case !isFinished(previous):
		previous.UpgradeAt = fresh.UpgradeAt
	}
	return previous
}

// upsertAttempt is the history with that record first. What was asked for before
// and never began is no history.
func upsertAttempt(all []history.Record, record history.Record) []history.Record {
	rest := slices.DeleteFunc(slices.Clone(all), func(h history.Record) bool {
		return h.Version == record.Version || h.Attempt <= 1 && h.StartTime == nil && !isFinished(h)
	})
	all = append([]history.Record{record}, rest...)
	return all[:min(len(all), maxHistory)]
}
