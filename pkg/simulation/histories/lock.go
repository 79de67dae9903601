// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"strings"
	"time"
)

// idleHolder checks that an upgrade that has ended does not keep the lock.
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

// isIdleHolder reports whether the holder of the lock has ended or does not exist.
func (c *checker) isIdleHolder() bool {
	if c.lease == nil || c.lease.Spec.HolderIdentity == nil || *c.lease.Spec.HolderIdentity == "" {
		return false
	}
	for _, cfg := range c.configs {
		if strings.HasSuffix(*c.lease.Spec.HolderIdentity, "/"+string(cfg.UID)) {
			return len(cfg.Status.History) > 0 && cfg.Status.History[0].CompleteTime != nil
		}
	}
	return true
}
