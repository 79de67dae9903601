// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	record "github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
)

// deletions checks that no deletion hangs while the operator runs.
func (c *checker) deletions(now time.Time) {
	for key, since := range c.deletedAt {
		began := since
		if c.h.up.After(began) { // no process was running before
			began = c.h.up
		}
		if now.Sub(began) > deletionLimit && c.calm(since) && c.calm(now) {
			c.h.violate("deletion: %s was deleted at %s and is still there", key, since.UTC().Format(time.TimeOnly))
			c.deletedAt[key] = now
		}
	}
}

// unrest describes something that has not finished, or returns an empty string.
func (c *checker) unrest() string {
	for _, key := range keys() {
		cfg := c.configs[key]
		if cfg == nil {
			continue
		}
		ended := len(cfg.Status.History) > 0 && cfg.Status.History[0].CompleteTime != nil
		scheduled, err := time.Parse(time.RFC3339, cfg.Spec.UpgradeAt)
		later := err == nil && c.h.world.Now().Before(scheduled.Add(window))
		if cfg.DeletionTimestamp != nil || inProgress(cfg) || later || !ended || len(cfg.Finalizers) > 0 {
			return fmt.Sprintf("%s is not over: deleted %t, finalizers %v, status %s", key, cfg.DeletionTimestamp != nil, cfg.Finalizers, describe(cfg))
		}
	}
	if unrest := c.jobs.unrest(); unrest != "" {
		return unrest
	}
	if c.lease != nil && c.lease.Spec.HolderIdentity != nil && *c.lease.Spec.HolderIdentity != "" {
		return fmt.Sprintf("the lock is held by %s", *c.lease.Spec.HolderIdentity)
	}
	// If another client has replaced the record and deleted the Lease, nothing names the request.
	unnamed := c.noteDeletedAt.After(c.requestedAt) && len(c.tampered) > 0
	if d := c.version.Spec.DesiredUpdate; d != nil && c.requestedBy == operatorActor && !c.hasBegun(d.Version) && !unnamed {
		return fmt.Sprintf("%s was requested by the operator, has not commenced, and is not withdrawn", d.Version)
	}
	if before := c.channelBefore; before != nil && c.commencedAt.Before(c.channelSetAt) && !c.upgradedSince(c.channelSetAt) && !c.restored && !c.everTampered() {
		return fmt.Sprintf("the operator has replaced channel %s by %s, and has not restored it", *before, c.version.Spec.Channel)
	}
	if missing := c.undelivered(); missing != "" {
		return missing
	}
	if left := c.leftovers(); left != "" || c.h.kind != UpgradeJobs {
		return left
	}
	return c.jobs.leftBehind()
}

// upgradedSince reports whether an upgrade has succeeded since t.
func (c *checker) upgradedSince(t time.Time) bool {
	for _, cfg := range c.configs {
		for _, h := range cfg.Status.History {
			if h.Phase == record.PhaseUpgraded && h.CompleteTime != nil && !h.CompleteTime.Time.Before(t.Truncate(time.Second)) {
				return true
			}
		}
	}
	return false
}

// everTampered reports whether another client has ever written a status or a finalizer.
func (c *checker) everTampered() bool {
	for _, tampered := range c.tampered {
		if tampered {
			return true
		}
	}
	return false
}

// undelivered describes a finished attempt whose end has not reached the webhook's receiver, even
// if another attempt has replaced its record since.
func (c *checker) undelivered() string {
	if c.restored || c.h.clockStepped {
		return ""
	}
	exists := map[string]bool{}
	for _, cfg := range c.configs {
		exists[string(cfg.UID)] = !c.tampered[cfg.UID]
	}
	for _, job := range c.jobs.jobs {
		exists[string(job.UID)] = !c.tampered[job.UID]
	}
	for _, id := range slices.Sorted(maps.Keys(c.ended)) {
		uid, _, _ := strings.Cut(id, " ")
		steps := notify.FromRecord(corev1.ObjectReference{UID: types.UID(uid)}, c.ended[id])
		if exists[uid] && len(steps) > 0 && !c.h.receiver.steps[id+steps[len(steps)-1].Step] {
			return "the receiver does not know that attempt " + id + " has ended"
		}
	}
	return ""
}

func (c *checker) leftovers() string {
	if silences := c.h.cluster.Alertmanager.InEffect(); len(silences) > 0 {
		return fmt.Sprintf("silence %q is left", silences[0].Comment)
	}
	var sets machinev1beta1.MachineSetList
	if err := c.h.cluster.Client.List(context.Background(), &sets); err != nil {
		return err.Error()
	}
	exists := map[string]bool{}
	for _, cfg := range c.configs {
		exists[string(cfg.UID)] = true
	}
	for i := range sets.Items {
		// If another client has removed both the finalizer and the Lease, nothing refers to the
		// MachineSet. The next upgrade removes it.
		of, ours := sets.Items[i].Labels["upgrade.managed.openshift.io/extra-node-of"]
		if ours && (exists[of] || !c.stripped[types.UID(of)] || !c.noteLost) {
			return "MachineSet " + sets.Items[i].Name + " is left"
		}
	}
	return ""
}
