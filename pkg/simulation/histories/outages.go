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

// goDown takes the operator down for hours: longer than windows and timeouts.
func (h *runner) goDown() { h.outage(time.Hour, 2*time.Hour) }

// goDownAt takes the operator down for hours at some point of the next upgrade. Once or twice
// during the outage, something happens that the operator would react to.
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

// afterUnlessCalm does something after d unless the history has started to come to rest.
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

// schedule sets the start time of an upgrade.
func (h *runner) schedule(key client.ObjectKey, at string) {
	edit(h.driver, &upgradev1alpha1.UpgradeConfig{}, key, func(cfg *upgradev1alpha1.UpgradeConfig) { cfg.Spec.UpgradeAt = at })
}

// retry requests retries of failed upgrades.
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

// takeRetryBack requests a retry, some hours later, of the next upgrade that fails, and withdraws
// the request before then, like GitOps.
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

// retryUndelivered requests a retry of the next upgrade that fails while the webhook's receiver is
// down. Usually, the operator restarts as well.
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
