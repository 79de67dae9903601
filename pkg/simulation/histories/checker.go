// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	record "github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

const (
	operatorActor = "operator"
	// window is how long after its start time an upgrade may commence.
	window = 30 * time.Minute
	// reaction is the maximum reaction time of an undisturbed operator.
	reaction = 2 * time.Minute
	// idleLimit is how long a finished upgrade may hold the lock while it waits for the notification
	// of its end.
	idleLimit = 10 * time.Minute
	// waitLimit is how long another upgrade may wait for such a lock. The operator breaks the lock
	// when it reconciles the waiting upgrade, every five minutes.
	waitLimit = 5*time.Minute + 20*time.Second
	// deletionLimit is how long the deletion of an upgrade may take while the operator is running.
	deletionLimit = 25 * time.Minute
)

// checker checks each stored change. It knows the objects as stored by the API server.
type checker struct {
	h    *runner
	jobs *jobChecker

	version *configv1.ClusterVersion
	pools   map[string]*mcfgv1.MachineConfigPool
	configs map[client.ObjectKey]*upgradev1alpha1.UpgradeConfig
	lease   *coordinationv1.Lease
	// idleSince is since when, with an undisturbed operator, the holder of the lock has finished or
	// does not exist. It is zero if the holder is in progress or the lock is free.
	idleSince time.Time
	// waitingSince is since when another upgrade has been waiting for such a lock, or zero.
	waitingSince time.Time

	// heldAt is when the control plane and pools were last at a version, by version. commencedAt is
	// when the control plane started to update to its current version.
	heldAt      map[string]time.Time
	commencedAt time.Time
	requester
	// requestedAt is when the desired update was set.
	requestedAt time.Time
	// asked contains all schedules seen so far, by version.
	asked map[string][]schedule
	// heldSince is since when all upgrades are on hold, or zero.
	heldSince time.Time
	// channelBefore is the channel that the operator replaced at channelSetAt. It is nil if another
	// client has set the current channel.
	channelBefore *string
	channelSetAt  time.Time
	// pausedAt and deletedAt record since when an upgrade is paused or deleted.
	pausedAt, deletedAt map[client.ObjectKey]time.Time
	// tampered contains the upgrades whose status or finalizer another client has written.
	tampered map[types.UID]bool
	// stripped contains the upgrades whose finalizer another client has removed.
	stripped map[types.UID]bool
	events   map[string]bool
	// ended contains the finished attempts of UpgradeConfigs, by stepKey.
	ended map[string]record.Record

	successions

	restored bool // etcd was restored, and later writes are lost
	noteLost bool // another client has written the Lease, or a deletion was abandoned
	// noteDeletedAt is when another client last deleted the Lease.
	noteDeletedAt time.Time
}

// requester is who requested the update. A restore of etcd brings it back with the request.
type requester struct {
	// requestedBy is the actor that set the desired update.
	requestedBy string
	// ours is the version that the operator requested last. Another client may request the same
	// version.
	ours string
}

func newChecker(h *runner) *checker {
	c := &checker{
		h: h, version: h.cluster.Version(), pools: map[string]*mcfgv1.MachineConfigPool{},
		configs: map[client.ObjectKey]*upgradev1alpha1.UpgradeConfig{}, heldAt: map[string]time.Time{}, asked: map[string][]schedule{},
		pausedAt: map[client.ObjectKey]time.Time{}, deletedAt: map[client.ObjectKey]time.Time{}, tampered: map[types.UID]bool{}, stripped: map[types.UID]bool{}, events: map[string]bool{},
		ended:       map[string]record.Record{},
		requester:   requester{requestedBy: "administrator"},
		successions: newSuccessions(),
	}
	c.jobs = &jobChecker{checker: c, jobs: map[client.ObjectKey]*maintenancev1beta1.UpgradeJob{}, deletedAt: map[types.UID]time.Time{}, slots: map[string]types.UID{}}
	var pools mcfgv1.MachineConfigPoolList
	if err := h.cluster.Client.List(context.Background(), &pools); err != nil {
		h.violate("setup: %v", err)
	}
	for i := range pools.Items {
		c.pools[pools.Items[i].Name] = &pools.Items[i]
	}
	c.noteHeld(h.world.Now())
	return c
}

// calm reports whether the operator has been undisturbed for a while.
func (c *checker) calm(now time.Time) bool {
	return now.After(c.h.disturbed.Add(reaction)) && !c.h.clockStepped && !c.restored && len(c.h.alive()) == 1
}

// observe checks one change.
func (c *checker) observe(change simulation.Change) {
	c.h.report.Writes++
	c.waiter(change.Time)
	switch object := change.Object().(type) {
	case *configv1.ClusterVersion:
		c.clusterVersion(change, object)
	case *mcfgv1.MachineConfigPool:
		c.pool(change, object)
	case *upgradev1alpha1.UpgradeConfig:
		c.upgradeConfig(change, object)
	case *maintenancev1beta1.UpgradeJob:
		c.jobs.observe(change, object)
	case *coordinationv1.Lease:
		if object.Name == "cluster-upgrade" {
			c.lease = object
			if change.New == nil {
				c.lease = nil
			}
			if change.Actor != operatorActor {
				c.noteLost = true
				if change.New == nil {
					c.noteDeletedAt = change.Time
				}
			}
		}
	case *corev1.Event:
		c.event(change, object)
	case *corev1.Pod:
		c.pod(change, object)
	}
	c.noteHeld(change.Time)
	c.noted()
	c.idleHolder(change.Time)
	c.deletions(change.Time)
}

// pool checks that the operator unpauses a delayed pool before its release window only if its nodes have nothing
// to update. The mark is <uid>/<attempt>/<releaseAfter>/<releaseBefore>.
func (c *checker) pool(change simulation.Change, pool *mcfgv1.MachineConfigPool) {
	before := c.pools[pool.Name]
	c.pools[pool.Name] = pool
	if change.Actor != operatorActor || before == nil || !before.Spec.Paused || pool.Spec.Paused || c.h.clockStepped {
		return
	}
	mark := strings.Split(before.Annotations["managedupgrade.appuio.io/paused-by"], "/")
	if len(mark) != 4 {
		c.h.violate("pool: %s is unpaused by the operator, which has not paused it", pool.Name)
		return
	}
	after, err := time.Parse(time.RFC3339, mark[2])
	updating := len(c.version.Status.History) > 0 && c.version.Status.History[0].State == configv1.PartialUpdate && change.Sent.Sub(c.commencedAt) > time.Second
	outdated := pool.Spec.Configuration.Name != pool.Status.Configuration.Name
	if err != nil || change.Time.Before(after) && (updating || outdated) {
		c.h.violate("pool: %s is unpaused before %s, and its nodes will be updated (update in progress %t, other configuration %t)", pool.Name, mark[2], updating, outdated)
	}
}

func (c *checker) upgradeConfig(change simulation.Change, after *upgradev1alpha1.UpgradeConfig) {
	key := client.ObjectKeyFromObject(after)
	before := c.configs[key]
	c.succession(change, after.Spec.Desired.Version, after.Status.History)
	if before != nil && change.Actor != operatorActor && len(before.Finalizers) > 0 && (change.New == nil || len(after.Finalizers) == 0) {
		c.stripped[before.UID] = true
	}
	if change.New == nil {
		delete(c.configs, key)
		delete(c.pausedAt, key)
		delete(c.deletedAt, key)
		return
	}
	c.configs[key] = after
	c.noteSpec(change, key, after)
	if before == nil || before.UID != after.UID {
		before = &upgradev1alpha1.UpgradeConfig{}
		c.tampered[after.UID] = len(after.Finalizers) > 0 || c.restored
	}
	if !reflect.DeepEqual(before.Status, after.Status) {
		if change.Actor == operatorActor {
			c.status(change, key, before, after)
		} else {
			c.tampered[after.UID] = true
		}
	}
}

func (c *checker) noteSpec(change simulation.Change, key client.ObjectKey, cfg *upgradev1alpha1.UpgradeConfig) {
	if at, err := time.Parse(time.RFC3339, cfg.Spec.UpgradeAt); err == nil {
		version := cfg.Spec.Desired.Version
		c.asked[version] = append(c.asked[version], schedule{at: at, until: at.Add(window), seen: change.Time})
	}
	for _, answer := range []*upgradev1alpha1.StartStatus{cfg.Status.Retry, cfg.Status.RunNow} {
		if answer != nil && answer.StartTime != nil {
			version := cfg.Spec.Desired.Version
			c.asked[version] = append(c.asked[version], schedule{at: answer.StartTime.Time, until: answer.StartTime.Add(window), seen: change.Time})
		}
	}
	_, annotated := cfg.Annotations[upgradev1alpha1.PauseAnnotation]
	paused := cfg.Spec.Paused != nil && *cfg.Spec.Paused || annotated
	if _, was := c.pausedAt[key]; paused && !was {
		c.pausedAt[key] = change.Time
	}
	if !paused {
		delete(c.pausedAt, key)
	}
	if _, was := c.deletedAt[key]; cfg.DeletionTimestamp != nil && !was {
		c.deletedAt[key] = change.Time
		c.h.report.Deletion = true
	}
}

// find returns the record with the same version, or the zero record.
func find(all []record.Record, of record.Record) record.Record {
	for _, h := range all {
		if h.Version == of.Version {
			return h
		}
	}
	return record.Record{}
}

func inProgress(cfg *upgradev1alpha1.UpgradeConfig) bool {
	for _, h := range cfg.Status.History {
		if h.StartTime != nil && h.CompleteTime == nil {
			return true
		}
	}
	return false
}

func describe(cfg *upgradev1alpha1.UpgradeConfig) string {
	var parts []string
	for _, h := range cfg.Status.History {
		parts = append(parts, fmt.Sprintf("%s %s", h.Version, h.Phase))
	}
	for _, condition := range cfg.Status.Conditions {
		if condition.Type == upgradev1alpha1.ConditionProgressing {
			parts = append(parts, condition.Reason+": "+condition.Message)
		}
	}
	return strings.Join(parts, "; ")
}
