// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"slices"
	"strings"
	"time"

	record "github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// idleHolder checks that a finished upgrade does not keep the lock.
func (c *checker) idleHolder(now time.Time) {
	if !c.isIdleHolder() {
		c.idleSince = time.Time{}
		return
	}
	if c.idleSince.IsZero() || !c.calm(now) {
		c.idleSince = now
	}
	if now.Sub(c.idleSince) > idleLimit {
		c.h.violate("lock: %s has the lock since %s, and has ended or does not exist", *c.lease.Spec.HolderIdentity, c.idleSince.UTC().Format(time.TimeOnly))
		c.idleSince = now
	}
}

// waiter checks that no upgrade is due and waiting while a finished one holds the lock. It must be
// called before a change is applied, since the change may release the lock.
func (c *checker) waiter(now time.Time) {
	waits := c.waitingUpgrade(now)
	if waits == "" || !c.isIdleHolder() {
		c.waitingSince = time.Time{}
		return
	}
	if c.waitingSince.IsZero() || !c.calm(now) {
		c.waitingSince = now
	}
	if now.Sub(c.waitingSince) > waitLimit {
		c.h.violate("lock: %s waits since %s for %s, which has ended or does not exist", waits, c.waitingSince.UTC().Format(time.TimeOnly), *c.lease.Spec.HolderIdentity)
		c.waitingSince = now
	}
}

// waitingUpgrade returns the name of an upgrade that may start because its window is open, or an
// empty string.
func (c *checker) waitingUpgrade(now time.Time) string {
	if !c.heldSince.IsZero() {
		return ""
	}
	for _, key := range keys() {
		cfg := c.configs[key]
		if cfg == nil || cfg.DeletionTimestamp != nil || c.tampered[cfg.UID] || cfg.Spec.Paused != nil && *cfg.Spec.Paused || cfg.Spec.Type == "Unknown" {
			continue
		}
		at, err := time.Parse(time.RFC3339, cfg.Spec.UpgradeAt)
		if err != nil || now.Before(at) || !now.Before(at.Add(window)) {
			continue
		}
		started := slices.ContainsFunc(cfg.Status.History, func(r record.Record) bool {
			return r.UpgradeAt != nil && r.UpgradeAt.Time.Equal(at.Truncate(time.Second)) && (r.StartTime != nil || r.CompleteTime != nil)
		})
		if !started && !inProgress(cfg) {
			return key.String()
		}
	}
	return ""
}

// isIdleHolder reports whether the holder of the lock has finished or does not exist.
func (c *checker) isIdleHolder() bool {
	if c.lease == nil || c.lease.Spec.HolderIdentity == nil || *c.lease.Spec.HolderIdentity == "" {
		return false
	}
	for _, cfg := range c.configs {
		if strings.HasSuffix(*c.lease.Spec.HolderIdentity, "/"+string(cfg.UID)) {
			return len(cfg.Status.History) > 0 && cfg.Status.History[0].CompleteTime != nil
		}
	}
	for _, job := range c.jobs.jobs {
		if strings.HasSuffix(*c.lease.Spec.HolderIdentity, "/"+string(job.UID)) {
			return !jobInProgress(job)
		}
	}
	return true
}
