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
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	record "github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/machineconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

const (
	operatorActor = "operator"
	// window is how long an upgrade may commence after its time.
	window = 30 * time.Minute
	// reaction is how long an undisturbed operator may take to react to a change.
	reaction = 2 * time.Minute
	// deletionLimit is how long the deletion of an upgrade may take while the operator runs.
	deletionLimit = 25 * time.Minute
)

// checker checks each stored change. It knows the objects as the API server has them.
type checker struct {
	h *runner

	version *configv1.ClusterVersion
	pools   map[string]*mcfgv1.MachineConfigPool
	configs map[client.ObjectKey]*v1alpha1.UpgradeConfig
	lease   *coordinationv1.Lease

	// heldAt is when control plane and pools were last at a version, by version; commencedAt is when
	// the control plane began to move to the version where it is.
	heldAt      map[string]time.Time
	commencedAt time.Time
	// requestedBy is the actor that has set the desired update, requestedAt when.
	requestedBy string
	requestedAt time.Time
	// ours is the version that the operator has requested last: another client may request it, too.
	ours string
	// asked are the schedules that were ever seen, by version.
	asked map[string][]schedule
	// pausedAt and deletedAt are since when an upgrade is paused, or deleted.
	pausedAt, deletedAt map[client.ObjectKey]time.Time
	// tampered are the upgrades whose status or finalizer another client has written.
	tampered map[types.UID]bool
	events   map[string]bool

	clockStepped bool
	disturbed    time.Time // until when requests fail or caches lag
}

// schedule is a version and time that an upgrade was requested for.
type schedule struct {
	at   time.Time
	seen time.Time
}

func newChecker(h *runner) *checker {
	c := &checker{
		h: h, version: h.cluster.Version(), pools: map[string]*mcfgv1.MachineConfigPool{},
		configs: map[client.ObjectKey]*v1alpha1.UpgradeConfig{}, heldAt: map[string]time.Time{}, asked: map[string][]schedule{},
		pausedAt: map[client.ObjectKey]time.Time{}, deletedAt: map[client.ObjectKey]time.Time{}, tampered: map[types.UID]bool{}, events: map[string]bool{},
		requestedBy: "administrator",
	}
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

func (c *checker) disturbedUntil(t time.Time) {
	if t.After(c.disturbed) {
		c.disturbed = t
	}
}

// calm reports whether the operator has run undisturbed for a time.
func (c *checker) calm(now time.Time) bool {
	return now.After(c.disturbed.Add(reaction)) && !c.clockStepped && len(c.alive()) == 1
}

func (c *checker) alive() []*simulation.Process {
	var alive []*simulation.Process
	for _, p := range c.h.leaders {
		if p.Alive() {
			alive = append(alive, p)
		}
	}
	return alive
}

// observe checks one change.
func (c *checker) observe(change simulation.Change) {
	c.h.report.Writes++
	switch object := change.Object().(type) {
	case *configv1.ClusterVersion:
		c.clusterVersion(change, object)
	case *mcfgv1.MachineConfigPool:
		c.pools[object.Name] = object
	case *v1alpha1.UpgradeConfig:
		c.upgradeConfig(change, object)
	case *coordinationv1.Lease:
		if object.Name == "cluster-upgrade" {
			c.lease = object
			if change.New == nil {
				c.lease = nil
			}
		}
	case *corev1.Event:
		c.event(change, object)
	case *corev1.Pod:
		c.pod(change, object)
	}
	c.noteHeld(change.Time)
	c.deletions(change.Time)
}

// noteHeld notes at which version the whole cluster is.
func (c *checker) noteHeld(now time.Time) {
	if v := c.wholeVersion(); v != "" {
		c.heldAt[v] = now
	}
}

// wholeVersion returns the version of control plane and pools; empty while something moves.
func (c *checker) wholeVersion() string {
	if len(c.version.Status.History) == 0 || c.version.Status.History[0].State != configv1.CompletedUpdate {
		return ""
	}
	version := c.version.Status.History[0].Version
	for _, pool := range c.pools {
		if !poolIsAt(pool, version) {
			return ""
		}
	}
	return version
}

func (c *checker) clusterVersion(change simulation.Change, after *configv1.ClusterVersion) {
	before := c.version
	c.version = after
	if newest(before) != newest(after) {
		c.commenced(change, newest(after))
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
	c.requested(change.Time, before, after.Spec.DesiredUpdate.Version)
}

// requested checks that the operator may request a version now.
func (c *checker) requested(now time.Time, before *configv1.ClusterVersion, version string) {
	c.h.soonAfter(&c.h.once.requested)
	if newest(before) == version {
		c.h.violate("request: %s is requested, which the cluster version operator has begun before", version)
	}
	allowed := false
	for _, s := range c.asked[version] {
		for _, p := range c.alive() {
			at := p.Clock().Now()
			allowed = allowed || !at.Before(s.at) && at.Before(s.at.Add(window))
		}
	}
	if !allowed && !c.clockStepped && !c.anyTampered(version) {
		c.h.violate("request: %s is requested outside of every window", version)
	}
	if c.calm(now) && c.wholeVersion() == "" {
		c.h.violate("request: %s is requested while the cluster moves to %s", version, newest(before))
	}
}

// anyTampered reports whether an upgrade to the version has a status or finalizer that another client
// has written: a client that may write a status may start an upgrade.
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

// commenced notes that the control plane moves to a version.
func (c *checker) commenced(change simulation.Change, version string) {
	c.commencedAt = change.Time
	if c.requestedBy != operatorActor {
		return
	}
	c.h.report.Commit = true
	c.h.soonAfter(&c.h.once.commenced)
	for key, since := range c.pausedAt {
		cfg := c.configs[key]
		if cfg == nil || cfg.Spec.Desired.Version != version || c.requestedAt.After(since) || c.tampered[cfg.UID] {
			continue
		}
		if change.Time.Sub(since) > 20*time.Second && c.calm(since) && c.calm(change.Time) {
			c.h.violate("pause: %s commences although %s has been paused since %s", version, key, since.UTC().Format(time.TimeOnly))
		}
	}
}

func (c *checker) upgradeConfig(change simulation.Change, after *v1alpha1.UpgradeConfig) {
	key := client.ObjectKeyFromObject(after)
	before := c.configs[key]
	if change.New == nil {
		delete(c.configs, key)
		delete(c.pausedAt, key)
		delete(c.deletedAt, key)
		return
	}
	c.configs[key] = after
	c.noteSpec(change, key, after)
	if before == nil || before.UID != after.UID {
		before = &v1alpha1.UpgradeConfig{}
		c.tampered[after.UID] = len(after.Finalizers) > 0
	}
	if !reflect.DeepEqual(before.Status, after.Status) {
		if change.Actor == operatorActor {
			c.status(change, key, before, after)
		} else {
			c.tampered[after.UID] = true
		}
	}
}

func (c *checker) noteSpec(change simulation.Change, key client.ObjectKey, cfg *v1alpha1.UpgradeConfig) {
	if at, err := time.Parse(time.RFC3339, cfg.Spec.UpgradeAt); err == nil {
		version := cfg.Spec.Desired.Version
		c.asked[version] = append(c.asked[version], schedule{at: at, seen: change.Time})
	}
	paused := cfg.Spec.Paused != nil && *cfg.Spec.Paused
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

// status checks what the operator writes into a status.
func (c *checker) status(change simulation.Change, key client.ObjectKey, before, after *v1alpha1.UpgradeConfig) {
	if len(after.Status.History) == 0 {
		return
	}
	now := after.Status.History[0]
	was := find(before.Status.History, now)
	c.note(now)
	if now.Phase == record.PhaseUpgraded && was.Phase != record.PhaseUpgraded && !c.held(now.Version, change.Time) {
		c.h.violate("outcome: %s is Upgraded to %s, but the cluster is not: control plane %s, pools %s", key, now.Version, newest(c.version), c.describePools())
	}
	if now.Phase == record.PhaseFailed && was.Phase != record.PhaseFailed {
		c.h.soonAfter(&c.h.once.failed)
		c.failed(change.Time, key, now, after)
	}
	if c.tampered[after.UID] || c.clockStepped {
		return
	}
	c.finality(key, was, now)
	c.oneAtATime(change.Time, key)
}

// note notes what the history has reached.
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

// failed checks that no upgrade fails by its window while the cluster moves to its version.
func (c *checker) failed(at time.Time, key client.ObjectKey, now record.Record, cfg *v1alpha1.UpgradeConfig) {
	reason := ""
	for _, condition := range cfg.Status.Conditions {
		if condition.Type == v1alpha1.ConditionSucceeded {
			reason = condition.Reason
		}
	}
	if reason == "WindowMissed" && newest(c.version) == now.Version && at.Sub(c.commencedAt) > reaction && c.calm(at) {
		c.h.violate("outcome: %s fails with %s, but the control plane has moved to %s since %s", key, reason, now.Version, c.commencedAt.UTC().Format(time.TimeOnly))
	}
}

// finality checks that what has ended does not change, except for when it was published.
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

// oneAtATime checks that one upgrade at most is in progress.
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

// event checks that a notification is sent once and is true.
func (c *checker) event(change simulation.Change, event *corev1.Event) {
	if change.Actor != operatorActor || change.Old != nil || event.InvolvedObject.Kind != "UpgradeConfig" {
		return
	}
	id := event.Namespace + "/" + event.Name
	if c.events[id] {
		c.h.violate("event: %s is sent twice: %s", id, event.Reason)
	}
	c.events[id] = true
	key := client.ObjectKey{Namespace: event.InvolvedObject.Namespace, Name: event.InvolvedObject.Name}
	cfg := c.configs[key]
	if cfg == nil || cfg.UID != event.InvolvedObject.UID || len(cfg.Status.History) == 0 || c.tampered[cfg.UID] {
		return
	}
	now := cfg.Status.History[0]
	switch event.Reason {
	case "UpgradeContinues":
		if now.Phase == record.PhaseFailed {
			c.h.violate("event: %q about %s, which has failed", event.Message, key)
		}
		if newest(c.version) != now.Version && c.calm(change.Time) {
			c.h.violate("event: %q about %s, but the control plane is at %s", event.Message, key, newest(c.version))
		}
	case "UpgradeCompleted":
		if !c.held(now.Version, change.Time) {
			c.h.violate("event: %q about %s, but the cluster is not", event.Message, key)
		}
	case "UpgradeFailed":
		if now.Phase != record.PhaseFailed {
			c.h.violate("event: %q about %s, whose phase is %s", event.Message, key, now.Phase)
		}
	}
}

// pod checks that pods are forced during an upgrade only.
func (c *checker) pod(change simulation.Change, pod *corev1.Pod) {
	if change.Actor != operatorActor || change.Old == nil || change.Old.GetDeletionTimestamp() != nil {
		return
	}
	for _, cfg := range c.configs {
		if inProgress(cfg) {
			return
		}
	}
	if c.calm(change.Time) {
		c.h.violate("drain: pod %s is forced, but no upgrade is in progress", pod.Name)
	}
}

// deletions checks that no deletion hangs while the operator runs.
func (c *checker) deletions(now time.Time) {
	for key, since := range c.deletedAt {
		if now.Sub(since) > deletionLimit && c.calm(since) && c.calm(now) {
			c.h.violate("deletion: %s was deleted at %s and is still there", key, since.UTC().Format(time.TimeOnly))
			c.deletedAt[key] = now
		}
	}
}

// held reports whether the whole cluster was at a version a moment ago, as far as caches can tell.
func (c *checker) held(version string, now time.Time) bool {
	at, ok := c.heldAt[version]
	if c.wholeVersion() == version {
		return true
	}
	return ok && now.Sub(at) < 10*time.Minute
}

func (c *checker) describePools() string {
	var parts []string
	for _, name := range []string{"master", "worker"} {
		if pool := c.pools[name]; pool != nil {
			parts = append(parts, fmt.Sprintf("%s %d of %d updated", name, pool.Status.UpdatedMachineCount, pool.Status.MachineCount))
		}
	}
	return strings.Join(parts, ", ")
}

// atRest reports whether everything has come to its end.
func (c *checker) atRest() bool { return c.unrest() == "" }

// unrest returns what has not come to its end.
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
	if c.lease != nil && c.lease.Spec.HolderIdentity != nil && *c.lease.Spec.HolderIdentity != "" {
		return fmt.Sprintf("the lock is held by %s", *c.lease.Spec.HolderIdentity)
	}
	if d := c.version.Spec.DesiredUpdate; d != nil && c.requestedBy == operatorActor && newest(c.version) != d.Version {
		return fmt.Sprintf("%s was requested by the operator, has not commenced, and is not withdrawn", d.Version)
	}
	return c.leftovers()
}

func (c *checker) leftovers() string {
	if silences := c.h.cluster.Alertmanager.InEffect(); len(silences) > 0 {
		return fmt.Sprintf("silence %q is left", silences[0].Comment)
	}
	var sets machinev1beta1.MachineSetList
	if err := c.h.cluster.Client.List(context.Background(), &sets); err != nil {
		return err.Error()
	}
	for i := range sets.Items {
		if _, ours := sets.Items[i].Labels["upgrade.managed.openshift.io/extra-node-of"]; ours {
			return "MachineSet " + sets.Items[i].Name + " is left"
		}
	}
	return ""
}

func describe(cfg *v1alpha1.UpgradeConfig) string {
	var parts []string
	for _, h := range cfg.Status.History {
		parts = append(parts, fmt.Sprintf("%s %s", h.Version, h.Phase))
	}
	for _, condition := range cfg.Status.Conditions {
		if condition.Type == v1alpha1.ConditionProgressing {
			parts = append(parts, condition.Reason+": "+condition.Message)
		}
	}
	return strings.Join(parts, "; ")
}

func newest(version *configv1.ClusterVersion) string {
	if len(version.Status.History) == 0 {
		return ""
	}
	return version.Status.History[0].Version
}

func inProgress(cfg *v1alpha1.UpgradeConfig) bool {
	for _, h := range cfg.Status.History {
		if h.StartTime != nil && h.CompleteTime == nil {
			return true
		}
	}
	return false
}

// find returns the record of the same version; the zero record if there is none.
func find(all []record.Record, of record.Record) record.Record {
	for _, h := range all {
		if h.Version == of.Version {
			return h
		}
	}
	return record.Record{}
}

// poolIsAt reports whether all nodes of a pool have the configuration of a release. The name of a
// rendered configuration depends on nothing but the pool and the release.
func poolIsAt(pool *mcfgv1.MachineConfigPool, version string) bool {
	name := machineconfig.RenderedName(pool.Name, version)
	return pool.Spec.Configuration.Name == name && pool.Status.Configuration.Name == name &&
		pool.Status.UpdatedMachineCount == pool.Status.MachineCount
}
