// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"reflect"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	record "github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// status checks a status written by the operator.
func (c *checker) status(change simulation.Change, key client.ObjectKey, before, after *upgradev1alpha1.UpgradeConfig) {
	if len(after.Status.History) == 0 {
		return
	}
	now := after.Status.History[0]
	was := find(before.Status.History, now)
	c.note(now)
	if do := c.h.once.started; do != nil && now.StartTime != nil && was.StartTime == nil && now.CompleteTime == nil && !c.h.calm {
		c.h.once.started = nil
		c.h.world.After(0, func() { do(after) })
	}
	if do := c.h.once.ended; do != nil && now.CompleteTime != nil && was.CompleteTime == nil && now.StartTime != nil && !c.h.calm {
		c.h.once.ended = nil
		c.h.world.After(0, func() { do(key) })
	}
	if now.Phase == record.PhaseUpgraded && was.Phase != record.PhaseUpgraded && !c.held(now.Version, change.Time) {
		c.h.violate("outcome: %s is Upgraded to %s, but the cluster is not: control plane %s, pools %s", key, now.Version, newest(c.version), c.describePools())
	}
	_, isShownAgain := c.ended[stepKey(string(after.UID), now, "")]
	if now.Phase == record.PhaseFailed && was.Phase != record.PhaseFailed && !isShownAgain {
		c.h.soonAfter(&c.h.once.failed)
		c.failed(change.Time, key, now, after)
	}
	if c.tampered[after.UID] || c.h.clockStepped {
		return
	}
	c.finality(key, was, now)
	c.wholeness(key, after)
	c.oneAtATime(change.Time, key)
}

// note records the progress in a history.
func (c *checker) note(now record.Record) {
	if now.WorkerStartTime != nil {
		c.h.report.Workers = true
	}
	for _, step := range now.Conditions {
		if step.Type == "TargetWithdrawn" {
			c.h.report.Cleanup = true
		}
	}
}

// failed checks that no upgrade fails because of its window while the cluster is updating to its
// version.
func (c *checker) failed(at time.Time, key client.ObjectKey, now record.Record, cfg *upgradev1alpha1.UpgradeConfig) {
	reason := ""
	for _, condition := range cfg.Status.Conditions {
		if condition.Type == upgradev1alpha1.ConditionSucceeded {
			reason = condition.Reason
		}
	}
	ended := at
	if now.CompleteTime != nil { // withdrawing a retry makes an earlier failure visible again
		ended = now.CompleteTime.Time
	}
	if reason == "WindowMissed" && newest(c.version) == now.Version && ended.Sub(c.commencedAt) > reaction && c.calm(at) {
		c.h.violate("outcome: %s fails with %s, but the control plane has moved to %s since %s", key, reason, now.Version, c.commencedAt.UTC().Format(time.TimeOnly))
	}
}

// finality checks that a finished record does not change, except for the time when it was
// published.
func (c *checker) finality(key client.ObjectKey, was, now record.Record) {
	was.NotifiedTime = now.NotifiedTime
	if was.CompleteTime != nil && was.Attempt == now.Attempt && was.UpgradeAt.Equal(now.UpgradeAt) && !reflect.DeepEqual(was, now) {
		c.h.violate("record: the attempt of %s at %s has ended and is written again", key, now.Version)
	}
	if was.Attempt != now.Attempt {
		return
	}
	for _, step := range was.Conditions {
		for _, same := range now.Conditions {
			if step.Type == same.Type && step.CompleteTime != nil && !reflect.DeepEqual(step, same) {
				c.h.violate("record: step %s of %s has ended and is written again", step.Type, key)
			}
		}
	}
}

// wholeness checks that a finished attempt always looks the way it ended, except for the time when
// it was published: withdrawing a retry must bring back the unchanged record.
func (c *checker) wholeness(key client.ObjectKey, cfg *upgradev1alpha1.UpgradeConfig) {
	for _, now := range cfg.Status.History {
		if now.CompleteTime == nil {
			continue
		}
		id := stepKey(string(cfg.UID), now, "")
		was, known := c.ended[id]
		was.NotifiedTime = now.NotifiedTime
		if known && was.Attempt == now.Attempt && !c.restored && !reflect.DeepEqual(was, now) {
			c.h.violate("record: the attempt of %s at %s has ended and is shown again as another one: %s", key, now.Version, cmp.Diff(was, now))
		}
		c.ended[id] = now
	}
}

// oneAtATime checks that at most one upgrade is in progress.
func (c *checker) oneAtATime(now time.Time, key client.ObjectKey) {
	if !c.calm(now) {
		return
	}
	for other, cfg := range c.configs {
		if other != key && !c.tampered[cfg.UID] && inProgress(cfg) && inProgress(c.configs[key]) {
			c.h.violate("lock: %s and %s are in progress", key, other)
		}
	}
}
