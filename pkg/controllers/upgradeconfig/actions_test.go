// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"errors"
	"fmt"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// upgradeConfig returns an upgrade to the desired version.
func upgradeConfig(key client.ObjectKey, changes ...func(*upgradev1alpha1.UpgradeConfigSpec)) *upgradev1alpha1.UpgradeConfig {
	cfg := &upgradev1alpha1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: upgradev1alpha1.UpgradeConfigSpec{
			Type: "OSD", UpgradeAt: tenPast.Format(time.RFC3339), PDBForceDrainTimeout: new(int32(120)),
			Desired: upgradev1alpha1.Update{Version: desired, Channel: channel},
		},
	}
	for _, change := range changes {
		change(&cfg.Spec)
	}
	return cfg
}

// nameOf returns a request as in "patch UpgradeConfig/status".
func nameOf(r simulation.Request) string {
	text, _, _ := strings.Cut(r.String(), " "+r.Key.String())
	return text
}

// refuse returns a plan that refuses the writes of a name.
func refuse(what string) simulation.FaultPlan {
	return simulation.Fault{Outcome: simulation.Refuse}.If(func(r simulation.Request) bool { return nameOf(r) == what })
}

// runTo lets time pass until d after the time of the upgrade.
func (w *world) runTo(d time.Duration) {
	w.TB.Helper()
	w.RunFor(tenPast.Add(d).Sub(w.Now()))
}

// runUntil lets time pass until the condition holds, at most a week.
func (w *world) runUntil(done func() bool) {
	w.TB.Helper()
	w.Await(7*24*time.Hour, done)
}

// runUntilStep lets time pass until a step has started.
func (w *world) runUntilStep(step string) {
	w.TB.Helper()
	w.runUntil(func() bool { return w.step(step) != nil })
}

// runUntilRequested lets time pass until the target was requested.
func (w *world) runUntilRequested() {
	w.TB.Helper()
	w.runUntil(func() bool {
		c := w.step("CommenceUpgrade")
		return c != nil && c.Reason == "Requested"
	})
	w.RunFor(time.Second)
}

// step returns a step of the newest attempt; nil if it has not started.
func (w *world) step(name string) *history.StepCondition {
	all := w.get(upgrade).Status.History
	if len(all) == 0 {
		return nil
	}
	return find(all, all[0].Version, all[0].Attempt, name)
}

// enqueue requests a reconcile, as a change in the cluster does.
func (w *world) enqueue(key client.ObjectKey) {
	w.Process.Enqueue(reconcile.Request{NamespacedName: key})
}

// create creates an object with its status.
func (w *world) create(obj client.Object) {
	w.TB.Helper()
	status, _ := obj.DeepCopyObject().(*upgradev1alpha1.UpgradeConfig)
	w.Create(obj)
	if status != nil && len(status.Status.History) > 0 {
		status.ResourceVersion = obj.GetResourceVersion()
		w.UpdateStatus(status)
	}
}

// get returns an UpgradeConfig as the API server stores it.
func (w *world) get(key client.ObjectKey) *upgradev1alpha1.UpgradeConfig {
	w.TB.Helper()
	return simulation.Get(w.Harness, key, &upgradev1alpha1.UpgradeConfig{})
}

// exists reports whether there is an UpgradeConfig.
func (w *world) exists(key client.ObjectKey) bool {
	return simulation.Find(w.Harness, key, &upgradev1alpha1.UpgradeConfig{}) != nil
}

// record returns the first element of the history of the upgrade.
func (w *world) record() history.Record {
	w.TB.Helper()
	cfg := w.get(upgrade)
	if len(cfg.Status.History) == 0 {
		w.TB.Fatal("there is no history")
	}
	return cfg.Status.History[0]
}

// updateSpec changes the spec.
func (w *world) updateSpec(key client.ObjectKey, change func(*upgradev1alpha1.UpgradeConfigSpec)) {
	w.TB.Helper()
	simulation.Edit(w.Harness, w.get(key), func(cfg *upgradev1alpha1.UpgradeConfig) { change(&cfg.Spec) })
}

// pause sets spec.paused.
func (w *world) pause() {
	w.updateSpec(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Paused = new(true) })
}

// newTime requests another time.
func newTime(at time.Time) func(*upgradev1alpha1.UpgradeConfigSpec) {
	return func(s *upgradev1alpha1.UpgradeConfigSpec) { s.UpgradeAt = formatTime(at) }
}

// clearStatus removes the status.
func (w *world) clearStatus(key client.ObjectKey) {
	w.TB.Helper()
	clear(w.completions)
	cfg := w.get(key)
	cfg.Status = upgradev1alpha1.UpgradeConfigStatus{}
	w.UpdateStatus(cfg)
}

// remove deletes an UpgradeConfig and returns when.
func (w *world) remove(key client.ObjectKey) time.Time {
	w.TB.Helper()
	w.Delete(w.get(key))
	return w.Now().Truncate(time.Second)
}

// removeFinalizers removes all finalizers of an object by hand.
func (w *world) removeFinalizers(key client.ObjectKey) {
	w.TB.Helper()
	cfg := w.get(key)
	cfg.Finalizers = nil
	w.Update(cfg)
}

// hold sets the annotation that holds every upgrade of the cluster, or removes it.
func (w *world) hold(reason string) {
	w.cluster.ChangeVersion(func(version *configv1.ClusterVersion) {
		delete(version.Annotations, upgradev1alpha1.HoldAnnotation)
		if reason != "" {
			metav1.SetMetaDataAnnotation(&version.ObjectMeta, upgradev1alpha1.HoldAnnotation, reason)
		}
	})
}

// requestElsewhere sets desiredUpdate as another client does.
func (w *world) requestElsewhere(version string) {
	w.cluster.ChangeVersion(func(current *configv1.ClusterVersion) {
		current.Spec.DesiredUpdate = &configv1.Update{Version: version}
	})
}

// cordonWorker makes the cluster unhealthy, or healthy again.
func (w *world) cordonWorker(cordoned bool) {
	w.cluster.ChangeNode("worker-0", func(node *corev1.Node) { node.Spec.Unschedulable = cordoned })
}

// failReads has the reads of the ClusterVersion fail for a time.
func (w *world) failReads(d time.Duration) {
	w.readError = func(kind string) error {
		if kind == "ClusterVersion" {
			return errors.New("not now")
		}
		return nil
	}
	w.After(d, func() { w.readError = nil })
}

// getLease returns the Lease of the lock; an empty one if there is none.
func (w *world) getLease() *coordinationv1.Lease {
	w.TB.Helper()
	lease := &coordinationv1.Lease{}
	simulation.Find(w.Harness, client.ObjectKey{Namespace: operatorNamespace, Name: lock.Name}, lease)
	return lease
}

// holder returns the holder of the lock; empty if it is free.
func (w *world) holder() string {
	if identity := w.getLease().Spec.HolderIdentity; identity != nil {
		return *identity
	}
	return ""
}

// setLockHolder has another client set the holder of the lock; nil releases it.
func (w *world) setLockHolder(holder *lock.Holder) {
	w.TB.Helper()
	lease := w.getLease()
	lease.Spec.HolderIdentity = nil
	if holder != nil {
		lease.Spec.HolderIdentity = new(strings.Join([]string{holder.Kind, holder.Namespace, holder.Name, holder.UID}, "/"))
	}
	w.Update(lease)
}

// createLock has another client acquire the lock first.
func (w *world) createLock(holder *lock.Holder) {
	w.create(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: lock.Name}})
	w.setLockHolder(holder)
}

// events counts the Events with a reason.
func (w *world) events(reason string) int {
	n := 0
	for _, e := range w.Events() {
		if e.Reason == reason {
			n++
		}
	}
	return n
}

// condition returns status, reason, and message of a condition; empty if it is absent.
func (w *world) condition(name string) string {
	for _, c := range w.get(upgrade).Status.Conditions {
		if c.Type == name {
			return string(c.Status) + " " + c.Reason + ": " + c.Message
		}
	}
	return ""
}

// describe returns what is stored of the upgrades.
func (w *world) describe() string {
	return fmt.Sprintf("held by %q, %s", w.holder(), w.Dump(&upgradev1alpha1.UpgradeConfigList{}))
}
