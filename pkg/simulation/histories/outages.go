// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	record "github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
)

// goDown has the operator be down for hours: longer than windows and timeouts.
func (h *runner) goDown() { h.outage(time.Hour, 2*time.Hour) }

// goDownAt has the operator go down for hours at a moment of the next upgrade. Something that it would react to happens
// while it is down, once or twice.
func (h *runner) goDownAt() {
	all := []func(){
		func() { h.moveClusterVersion("4.20.6") }, func() { h.moveClusterVersion("4.20.7") }, func() { h.moveClusterVersion("") },
		func() { h.hold(true) }, func() { h.degrade(true) }, func() { h.pausePool(true) }, h.deleteLock,
	}
	if h.kind == UpgradeJobs {
		all = append(all, h.deleteJob, h.deleteJob, h.suspendJobs, func() { h.annotateJob(maintenancev1beta1.RetryAnnotation) })
	} else {
		all = append(all, h.deleteUpgrade, h.deleteUpgrade, h.retry, func() {
			h.editSpec(func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Paused = new(true) })
		})
	}
	moments := []*func(){&h.once.sent, &h.once.requested, &h.once.commenced, &h.once.completed, &h.once.failed}
	*moments[h.random.IntN(len(moments))] = func() {
		h.goDown()
		for range 1 + h.random.IntN(2) {
			do := all[h.random.IntN(len(all))]
			h.afterUnlessCalm(h.upTo(time.Hour), func() {
				h.world.Logf("action: the one while the operator is down")
				do()
			})
		}
	}
}

// afterUnlessCalm does something later, unless the history comes to rest before.
func (h *runner) afterUnlessCalm(d time.Duration, do func()) {
	h.world.After(d, func() {
		if !h.calm {
			do()
		}
	})
}

// failedUpgrades returns the upgrades whose requested attempt has failed.
func (h *runner) failedUpgrades() []client.ObjectKey {
	var failed []client.ObjectKey
	for _, key := range keys() {
		if cfg := h.checker.configs[key]; cfg != nil && len(cfg.Status.History) > 0 && cfg.Status.History[0].Phase == record.PhaseFailed {
			failed = append(failed, key)
		}
	}
	return failed
}

// schedule sets the time of an upgrade.
func (h *runner) schedule(key client.ObjectKey, at string) {
	edit(h.driver, &upgradev1alpha1.UpgradeConfig{}, key, func(cfg *upgradev1alpha1.UpgradeConfig) { cfg.Spec.UpgradeAt = at })
}

// retry has the upgrades that have failed be tried again.
func (h *runner) retry() {
	for _, key := range h.failedUpgrades() {
		h.schedule(key, h.soon())
	}
	for _, key := range jobKeys() {
		if job := h.checker.jobs.jobs[key]; job != nil && !jobInProgress(job) {
			h.annotateJob(maintenancev1beta1.RetryAnnotation)
		}
	}
}

// takeRetryBack has the next upgrade that fails be tried again some hours later, and has this be taken back before, as
// GitOps does.
func (h *runner) takeRetryBack() {
	h.once.failed = func() {
		for _, key := range h.failedUpgrades() {
			former := h.checker.configs[key].Spec.UpgradeAt
			later := h.world.Now().Add(2*time.Hour + h.upTo(2*time.Hour)).UTC().Format(time.RFC3339)
			h.afterUnlessCalm(h.upTo(10*time.Minute), func() { h.schedule(key, later) })
			h.world.After(10*time.Minute+h.upTo(time.Hour), func() {
				if cfg := h.checker.configs[key]; cfg != nil && cfg.Spec.UpgradeAt == later {
					h.world.Logf("action: the retry is taken back")
					h.schedule(key, former)
				}
			})
		}
	}
}

// retryUndelivered has the next upgrade that fails be tried again while the receiver of the webhook is down, and mostly
// the operator restart.
func (h *runner) retryUndelivered() {
	h.receiver.down = true
	h.once.failed = func() {
		h.receiver.down = true
		h.afterUnlessCalm(h.upTo(10*time.Minute), h.retry)
		if h.random.IntN(3) > 0 {
			h.afterUnlessCalm(h.upTo(30*time.Minute), h.kill)
		}
	}
}
