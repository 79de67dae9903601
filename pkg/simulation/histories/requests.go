// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"reflect"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	record "github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// schedule is a time for which an upgrade to a version was requested.
type schedule struct {
	at    time.Time
	until time.Time
	seen  time.Time
}

func (c *checker) clusterVersion(change simulation.Change, after *configv1.ClusterVersion) {
	before := c.version
	c.version = after
	c.noteHold(change, after)
	c.noteChannel(change, before, after)
	if newest(before) != newest(after) {
		c.commenced(change, newest(after))
	}
	if installing(before) && !installing(after) {
		c.h.soonAfter(&c.h.once.completed)
	}
	if reflect.DeepEqual(before.Spec.DesiredUpdate, after.Spec.DesiredUpdate) {
		return
	}
	former := c.requestedBy
	c.requestedBy, c.requestedAt = change.Actor, change.Time
	if change.Actor != operatorActor {
		return
	}
	if after.Spec.DesiredUpdate == nil {
		if version := before.Spec.DesiredUpdate.Version; former != operatorActor && c.ours != version {
			c.h.violate("withdrawal: the operator withdraws %s, which %s has requested", version, former)
		}
		return
	}
	c.ours = after.Spec.DesiredUpdate.Version
	c.requested(change, before, after.Spec.DesiredUpdate.Version)
}

// requested checks that the operator may request a version. The window counts when it sends the
// request: what arrives late cannot be recalled, and has to be withdrawn or adopted instead.
func (c *checker) requested(change simulation.Change, before *configv1.ClusterVersion, version string) {
	c.h.soonAfter(&c.h.once.requested)
	if do := c.h.once.sent; do != nil && !c.h.calm {
		c.h.once.sent = nil
		c.h.world.After(c.h.upTo(time.Second), do)
	}
	if do := c.h.once.atRequest; do != nil && !c.h.calm {
		c.h.once.atRequest = nil
		c.h.world.After(time.Second, func() {
			c.h.world.Logf("action: the one that comes right after the request")
			do()
		})
	}
	if newest(before) == version {
		c.h.violate("request: %s is requested, which the cluster version operator has begun before", version)
	}
	sent := change.Sent
	inWindow := func(s schedule) bool { return !sent.Before(s.at) && sent.Before(s.until) }
	if !slices.ContainsFunc(c.asked[version], inWindow) && !c.h.clockStepped && !c.anyTampered(version) {
		c.h.violate("request: %s is requested outside of every window", version)
	}
	if c.calm(change.Time) && c.moves() {
		c.h.violate("request: %s is requested while the cluster moves to %s", version, newest(before))
	}
}

// noted checks that the Lease or a record contains the operator's request until the update has
// started. Otherwise, the request would never be withdrawn.
func (c *checker) noted() {
	requested := c.version.Spec.DesiredUpdate
	if requested == nil || c.requestedBy != operatorActor || c.hasBegun(requested.Version) || c.noteLost || c.restored {
		return
	}
	if c.lease != nil && c.lease.Annotations["upgrade.managed.openshift.io/requested"] == "true" {
		return
	}
	isNoted := func(h record.Record) bool { return h.RequestTime != nil && h.Version == requested.Version }
	for _, cfg := range c.configs {
		if c.tampered[cfg.UID] || slices.ContainsFunc(cfg.Status.History, isNoted) {
			return
		}
	}
	for _, job := range c.jobs.jobs {
		if c.tampered[job.UID] || slices.ContainsFunc(job.Status.History, isNoted) {
			return
		}
	}
	c.h.violate("note: the operator requests %s, and neither the Lease nor a record notes it", requested.Version)
}

// hasBegun reports whether the cluster version operator has started the update to a version. It may
// have reverted since, for example because the administrator's channel does not offer the version.
func (c *checker) hasBegun(version string) bool {
	return newest(c.version) == version || slices.ContainsFunc(c.version.Status.History, func(h configv1.UpdateHistory) bool {
		return h.Version == version && !h.StartedTime.Time.Before(c.requestedAt.Truncate(time.Second))
	})
}

// moves reports whether an update is in progress that no upgrade may replace: the control plane or
// the workers have not reached the newest version. An UpgradeJob does not wait for paused pools,
// because those are usually delayed by another job.
func (c *checker) moves() bool {
	if installing(c.version) {
		return true
	}
	for _, pool := range c.pools {
		delayed := c.h.kind == UpgradeJobs && pool.Spec.Paused
		if !delayed && !poolIsAt(pool, newest(c.version)) {
			return true
		}
	}
	return false
}

// installing reports whether the control plane is being updated.
func installing(version *configv1.ClusterVersion) bool {
	history := version.Status.History
	return len(history) == 0 || history[0].State != configv1.CompletedUpdate
}

// noteHold records since when all upgrades are on hold.
func (c *checker) noteHold(change simulation.Change, after *configv1.ClusterVersion) {
	_, held := after.Annotations["upgrade.managed.openshift.io/hold"]
	switch {
	case !held:
		c.heldSince = time.Time{}
	case c.heldSince.IsZero():
		c.heldSince = change.Time
	}
}

// noteChannel records which channel the operator has replaced.
func (c *checker) noteChannel(change simulation.Change, before, after *configv1.ClusterVersion) {
	switch {
	case before.Spec.Channel == after.Spec.Channel:
	case change.Actor != operatorActor:
		c.channelBefore = nil
	case c.channelBefore == nil:
		c.channelBefore, c.channelSetAt = &before.Spec.Channel, change.Time
	case *c.channelBefore == after.Spec.Channel:
		c.channelBefore = nil
	}
}

// anyTampered reports whether another client has written a status or finalizer of an upgrade to the
// version: clients that can write a status can start an upgrade.
func (c *checker) anyTampered(version string) bool {
	for _, cfg := range c.configs {
		for _, h := range cfg.Status.History {
			if h.Version == version && c.tampered[cfg.UID] {
				return true
			}
		}
	}
	return false
}

// commenced records that the control plane has started to update to a version.
func (c *checker) commenced(change simulation.Change, version string) {
	c.commencedAt = change.Time
	if c.requestedBy != operatorActor {
		return
	}
	c.h.report.Commit = true
	c.h.soonAfter(&c.h.once.commenced)
	if held := c.heldSince; !held.IsZero() && c.requestedAt.Before(held) && change.Time.Sub(held) > 20*time.Second && c.calm(held) && c.calm(change.Time) {
		c.h.violate("hold: %s commences although all upgrades are held since %s", version, held.UTC().Format(time.TimeOnly))
	}
	for key, since := range c.pausedAt {
		cfg := c.configs[key]
		if cfg == nil || cfg.Spec.Desired.Version != version || !inProgress(cfg) || c.requestedAt.After(since) || c.tampered[cfg.UID] {
			continue
		}
		if change.Time.Sub(since) > 20*time.Second && c.calm(since) && c.calm(change.Time) {
			c.h.violate("pause: %s commences although %s has been paused since %s", version, key, since.UTC().Format(time.TimeOnly))
		}
	}
}
