// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	record "github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// recreate waits for the next upgrade that commences, and then deletes and recreates its object,
// usually while the upgrade is in progress.
func (h *runner) recreate() {
	do := func() {
		for _, key := range keys() {
			if cfg := h.checker.configs[key]; cfg != nil && inProgress(cfg) {
				again := &upgradev1alpha1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Spec: *cfg.Spec.DeepCopy()}
				if h.random.IntN(3) == 0 { // like Hive when an immutable field changes
					again.Spec.UpgradeAt = h.soon()
				}
				replace(h, &upgradev1alpha1.UpgradeConfig{}, again)
			}
		}
		for _, key := range jobKeys() {
			if job := h.checker.jobs.jobs[key]; job != nil && jobInProgress(job) {
				again := &maintenancev1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Spec: *job.Spec.DeepCopy()}
				replace(h, &maintenancev1beta1.UpgradeJob{}, again)
			}
		}
	}
	h.once.commenced, h.once.completed = do, nil
	if h.random.IntN(2) == 0 {
		h.once.commenced, h.once.completed = nil, do
	}
}

// replace deletes an object and recreates it once it is gone.
func replace[T client.Object](h *runner, old, again T) {
	key := client.ObjectKeyFromObject(again)
	if h.random.IntN(4) == 0 {
		edit(h.driver, old, key, func(obj T) { obj.SetFinalizers(nil) })
	}
	old.SetNamespace(key.Namespace)
	old.SetName(key.Name)
	if err := h.cluster.Client.Delete(context.Background(), old); err != nil {
		h.world.Logf("rejected: %s", firstLine(err))
	}
	create := func() {
		if h.calm {
			return
		}
		h.world.Logf("action: create it again")
		if err := h.cluster.Client.Create(context.Background(), again); err != nil {
			h.world.Logf("rejected: %s", firstLine(err))
		}
	}
	h.world.After(10*time.Second+h.upTo(20*time.Minute), create)
}

// successions tracks upgrades whose objects are deleted and recreated during the upgrade.
type successions struct {
	// left contains the commenced upgrades without an object, by the name of the object.
	left map[string]attempt
	// heirs contains the attempts that new objects must continue, by the UID of the object; followed
	// contains the attempts that continue them, by attempt.
	heirs    map[types.UID]attempt
	followed map[string]attempt
	// told contains the milestones that the receiver knows, by attempt.
	told map[string]map[string]bool
}

// attempt is an attempt that has commenced.
type attempt struct {
	id, version string
	commenced   metav1.Time
	moved       time.Time // when the update of the control plane started
}

func newSuccessions() successions {
	return successions{left: map[string]attempt{}, heirs: map[types.UID]attempt{}, followed: map[string]attempt{}, told: map[string]map[string]bool{}}
}

// goesOn returns the attempt that has commenced but has neither failed nor ended.
func goesOn(records []record.Record) (record.Record, bool) {
	for _, r := range records {
		failed := func(c record.StepCondition) bool { return c.CompleteTime != nil && c.Status == metav1.ConditionFalse }
		if r.CommenceTime != nil && r.CompleteTime == nil && !slices.ContainsFunc(r.Conditions, failed) {
			return r, true
		}
	}
	return record.Record{}, false
}

// succession checks a change of an upgrade: an object that is recreated during the upgrade must
// continue the attempt.
func (c *checker) succession(change simulation.Change, version string, records []record.Record) {
	obj := change.Object()
	name, uid := change.Kind.Kind+" "+client.ObjectKeyFromObject(obj).String(), obj.GetUID()
	now, ok := goesOn(records)
	if c.tampered[uid] && ok { // it has taken over the attempt
		clear(c.left)
		clear(c.heirs)
	}
	if c.noteLost || c.restored || c.tampered[uid] {
		return
	}
	if change.New == nil {
		id := stepKey(string(uid), now, "")
		switch noted := c.lease != nil && strings.Contains(c.lease.Annotations["upgrade.managed.openshift.io/note"], `"commenceTime"`); {
		case !ok, change.Actor != operatorActor && !noted: // the Lease cannot contain what has not been recorded
		default:
			c.left[name] = attempt{id, now.Version, *now.CommenceTime, c.commencedAt}
		}
		delete(c.heirs, uid)
		return
	}
	if left, is := c.left[name]; is && change.Old == nil && left.version == version {
		c.heirs[uid] = left
		delete(c.left, name)
	}
	former, heir := c.heirs[uid]
	if heir && change.Actor == operatorActor && former.moved.Equal(c.commencedAt) {
		c.checkHeir(name, former, records)
	}
	if slices.ContainsFunc(records, func(r record.Record) bool { return r.CompleteTime != nil }) {
		delete(c.heirs, uid) // the next attempt is unrelated
	}
	if !ok {
		return
	}
	clear(c.left) // another upgrade has commenced
	clear(c.heirs)
	if heir && former.moved.Equal(c.commencedAt) {
		c.followed[stepKey(string(uid), now, "")] = former
		if now.CompleteTime == nil {
			c.heirs[uid] = former
		}
	}
}

// checkHeir checks the records of an object that continues an earlier object's attempt.
func (c *checker) checkHeir(name string, former attempt, records []record.Record) {
	for _, r := range records {
		switch {
		case r.Version != former.version:
		case r.CommenceTime != nil && !r.CommenceTime.Equal(&former.commenced):
			c.h.violate("re-created: %s has commenced at %s, and its record says %s", name, former.commenced.UTC().Format(time.TimeOnly), r.CommenceTime.UTC().Format(time.TimeOnly))
		case r.CommenceTime == nil && r.CompleteTime != nil && r.Phase == record.PhaseUpgraded:
			c.h.violate("re-created: %s goes on, and its record ends as %s: %s", name, r.Reason, r.Message)
		}
	}
}

// tell checks that the receiver is notified of a milestone only once, regardless of the object.
// stepKey identifies the attempt.
func (c *checker) tell(id, milestone string) {
	if c.told[id] == nil {
		c.told[id] = map[string]bool{}
	}
	c.told[id][milestone] = true
	if uid, _, _ := strings.Cut(id, " "); c.tampered[types.UID(uid)] {
		return
	}
	for former, ok := c.followed[id]; ok; former, ok = c.followed[former.id] {
		if c.told[former.id][milestone] && !c.noteLost && !c.restored && former.moved.Equal(c.commencedAt) {
			c.h.violate("re-created: milestone %s of %s is told twice", milestone, id)
		}
	}
}
