// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/schedule"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// The reasons why the UpgradeJob of an UpgradeConfig does not start.
const (
	// ReasonSuspended is the reason of an upgrade suspended by schedule.suspend or a window.
	ReasonSuspended = "Suspended"
	// ReasonRescheduled is the reason of an upgrade whose start is no longer in the schedule.
	ReasonRescheduled = "Rescheduled"
	// ReasonExpired is the reason of an upgrade that did not commence in its window.
	ReasonExpired = "Expired"
)

// ReasonHookFailed is the reason of an upgrade aborted by a failed hook, and of the Event about a failed hook.
const ReasonHookFailed = "HookFailed"

// The reasons of steps that are skipped because they have nothing to do.
const (
	// ReasonNoHooks is the reason of a step whose event has no hooks.
	ReasonNoHooks = "NoHooks"
	// ReasonNoDelayedPools is the reason of a step without machine config pools.
	ReasonNoDelayedPools = "NoDelayedPools"
)

// SuspendField names the field of an UpgradeConfig that suspends its upgrades.
const SuspendField = "schedule.suspend"

// Schedule returns the schedule of an UpgradeConfig. Without a cron expression, it selects no start. The error
// names each invalid expression.
func Schedule(spec *maintenancev1beta1.UpgradeConfigSchedule) (schedule.Schedule, error) {
	if spec.Cron == "" {
		return schedule.Schedule{}, nil
	}
	week, location := "", "UTC"
	if spec.ISOWeek != nil {
		week = *spec.ISOWeek
	}
	if spec.Location != "" {
		location = spec.Location
	}
	return schedule.Parse(spec.Cron, week, location)
}

// IsSuspended reports whether schedule.suspend of an UpgradeConfig is set.
func IsSuspended(cfg *maintenancev1beta1.UpgradeConfig) bool {
	return cfg.Spec.Schedule.Suspend != nil && *cfg.Spec.Schedule.Suspend
}

// OwnerUID returns the UID of the UpgradeConfig that created an UpgradeJob for a slot, or "" if a
// user created it.
func OwnerUID(job *maintenancev1beta1.UpgradeJob) string {
	owner := metav1.GetControllerOf(job)
	if owner == nil || owner.Kind != "UpgradeConfig" || job.Labels[maintenancev1beta1.SlotLabel] == "" {
		return ""
	}
	if group, _, _ := strings.Cut(owner.APIVersion, "/"); group != maintenancev1beta1.GroupVersion.Group {
		return ""
	}
	return string(owner.UID)
}

// IsRunNow reports whether a slot is a request to upgrade now.
func IsRunNow(slot string) bool { return strings.HasPrefix(slot, maintenancev1beta1.SlotRunNowPrefix) }

// SuspendedJob returns why an attempt of an UpgradeJob that starts at that time must not start: ReasonSuspended
// or ReasonRescheduled, and a message. It returns empty strings if the attempt may start. The owner is the
// UpgradeConfig that created the UpgradeJob, or nil. The windows belong to the namespace.
//
// The schedule and schedule.suspend of the owner apply only to the start of the slot, because requested
// upgrades and retries override them. Windows apply to every start.
func SuspendedJob(job *maintenancev1beta1.UpgradeJob, owner *maintenancev1beta1.UpgradeConfig, windows []maintenancev1beta1.UpgradeSuspensionWindow, at time.Time) (reason, message string) {
	if by, suspended := SuspendedBy(windows, job.Labels, at, SelectedJobs); suspended {
		return ReasonSuspended, "suspended by " + by.String()
	}
	if owner == nil || OwnerUID(job) != string(owner.UID) {
		return "", ""
	}
	if by, suspended := SuspendedBy(windows, owner.Labels, at, SelectedConfigs); suspended {
		return ReasonSuspended, "suspended by " + by.String()
	}
	slot, err := Time(job.Spec.StartAfter)
	if err != nil || !at.Equal(slot) || IsRunNow(job.Labels[maintenancev1beta1.SlotLabel]) {
		return "", ""
	}
	if IsSuspended(owner) {
		return ReasonSuspended, fmt.Sprintf("suspended by %s of UpgradeConfig %s", SuspendField, owner.Name)
	}
	if !selectsStart(owner, slot) {
		return ReasonRescheduled, fmt.Sprintf("the schedule of UpgradeConfig %s no longer selects %s", owner.Name, text.FormatTime(slot))
	}
	return "", ""
}

// selectsStart reports whether the current schedule of an UpgradeConfig selects a start. Without cron, new
// versions select starts, and an existing UpgradeJob is never moved. An invalid schedule selects no start.
func selectsStart(cfg *maintenancev1beta1.UpgradeConfig, start time.Time) bool {
	if cfg.Spec.Schedule.Cron == "" {
		return true
	}
	cron, err := Schedule(&cfg.Spec.Schedule)
	if err != nil {
		return false
	}
	next, found := cron.Next(start.Add(-time.Nanosecond))
	return found && next.Equal(start)
}
