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
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// upgradeConfig returns an upgrade to the desired version.
func upgradeConfig(key client.ObjectKey, changes ...func(*v1alpha1.UpgradeConfigSpec)) *v1alpha1.UpgradeConfig {
	cfg := &v1alpha1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: v1alpha1.UpgradeConfigSpec{
			Type: "OSD", UpgradeAt: tenPast.Format(time.RFC3339), PDBForceDrainTimeout: new(int32(120)),
			Desired: v1alpha1.Update{Version: desired, Channel: channel},
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
func refuse(what string) simulation.Plan {
	return func(r simulation.Request) simulation.Fault {
		if nameOf(r) == what {
			return simulation.Fault{Outcome: simulation.Refuse}
		}
		return simulation.Fault{}
	}
}

// must ends the test on an error.
func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%v; %s", err, w.describe())
	}
}

// runFor lets time pass.
func (w *world) runFor(d time.Duration) {
	w.t.Helper()
	w.must(w.RunFor(d))
}

// runTo lets time pass until d after the time of the upgrade.
func (w *world) runTo(d time.Duration) {
	w.t.Helper()
	w.runFor(tenPast.Add(d).Sub(w.Now()))
}

// runUntil lets time pass until the condition holds, at most a week.
func (w *world) runUntil(done func() bool) {
	w.t.Helper()
	w.must(w.RunUntil(7*24*time.Hour, done))
}

// runUntilStep lets time pass until a step has started.
func (w *world) runUntilStep(step string) {
	w.t.Helper()
	w.runUntil(func() bool {
		all := w.get(upgrade).Status.History
		return len(all) > 0 && find(all, all[0].Version, all[0].Attempt, step) != nil
	})
}

// runUntilRequested lets time pass until the target was requested.
func (w *world) runUntilRequested() {
	w.t.Helper()
	w.runUntil(func() bool {
		all := w.get(upgrade).Status.History
		if len(all) == 0 {
			return false
		}
		c := find(all, all[0].Version, all[0].Attempt, "CommenceUpgrade")
		return c != nil && c.Reason == "Requested"
	})
	w.runFor(time.Second)
}

// enqueue requests a reconcile, as a change in the cluster does.
func (w *world) enqueue(key client.ObjectKey) {
	w.process.Enqueue(reconcile.Request{NamespacedName: key})
}

func (w *world) create(obj client.Object) {
	w.t.Helper()
	status, _ := obj.DeepCopyObject().(*v1alpha1.UpgradeConfig)
	w.must(w.client.Create(w.t.Context(), obj))
	if status != nil && len(status.Status.History) > 0 {
		status.ResourceVersion = obj.GetResourceVersion()
		w.must(w.client.Status().Update(w.t.Context(), status))
	}
}

// get returns an UpgradeConfig as the API server stores it.
func (w *world) get(key client.ObjectKey) *v1alpha1.UpgradeConfig {
	w.t.Helper()
	var cfg v1alpha1.UpgradeConfig
	if err := w.client.Get(w.t.Context(), key, &cfg); err != nil {
		w.t.Fatal(err)
	}
	return &cfg
}

// exists reports whether there is an UpgradeConfig.
func (w *world) exists(key client.ObjectKey) bool {
	err := w.client.Get(w.t.Context(), key, &v1alpha1.UpgradeConfig{})
	w.must(client.IgnoreNotFound(err))
	return err == nil
}

// record returns the first element of the history of the upgrade.
func (w *world) record() history.Record {
	w.t.Helper()
	cfg := w.get(upgrade)
	if len(cfg.Status.History) == 0 {
		w.t.Fatal("there is no history")
	}
	return cfg.Status.History[0]
}

// updateSpec changes the spec.
func (w *world) updateSpec(key client.ObjectKey, change func(*v1alpha1.UpgradeConfigSpec)) {
	w.t.Helper()
	cfg := w.get(key)
	change(&cfg.Spec)
	w.must(w.client.Update(w.t.Context(), cfg))
}

// pause sets spec.paused.
func (w *world) pause() {
	w.updateSpec(upgrade, func(s *v1alpha1.UpgradeConfigSpec) { s.Paused = new(true) })
}

// newTime requests another time.
func newTime(at time.Time) func(*v1alpha1.UpgradeConfigSpec) {
	return func(s *v1alpha1.UpgradeConfigSpec) { s.UpgradeAt = formatTime(at) }
}

// clearStatus removes the status.
func (w *world) clearStatus(key client.ObjectKey) {
	w.t.Helper()
	clear(w.completions)
	cfg := w.get(key)
	cfg.Status = v1alpha1.UpgradeConfigStatus{}
	w.must(w.client.Status().Update(w.t.Context(), cfg))
}

// remove deletes an UpgradeConfig and returns when.
func (w *world) remove(key client.ObjectKey) time.Time {
	w.t.Helper()
	w.must(w.client.Delete(w.t.Context(), w.get(key)))
	return w.Now().Truncate(time.Second)
}

// hold sets the annotation that holds every upgrade of the cluster, or removes it.
func (w *world) hold(reason string) {
	w.cluster.ChangeVersion(func(version *configv1.ClusterVersion) {
		delete(version.Annotations, v1alpha1.HoldAnnotation)
		if reason != "" {
			metav1.SetMetaDataAnnotation(&version.ObjectMeta, v1alpha1.HoldAnnotation, reason)
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
	w.t.Helper()
	var lease coordinationv1.Lease
	w.must(client.IgnoreNotFound(w.client.Get(w.t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: lock.Name}, &lease)))
	return &lease
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
	w.t.Helper()
	lease := w.getLease()
	lease.Spec.HolderIdentity = nil
	if holder != nil {
		lease.Spec.HolderIdentity = new(strings.Join([]string{holder.Kind, holder.Namespace, holder.Name, holder.UID}, "/"))
	}
	w.must(w.client.Update(w.t.Context(), lease))
}

// createLock has another client acquire the lock first.
func (w *world) createLock(holder *lock.Holder) {
	w.create(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: lock.Name}})
	w.setLockHolder(holder)
}

// events counts the Events with a reason.
func (w *world) events(reason string) int {
	var list corev1.EventList
	w.must(w.client.List(w.t.Context(), &list))
	n := 0
	for i := range list.Items {
		if list.Items[i].Reason == reason {
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
	var list v1alpha1.UpgradeConfigList
	if err := w.client.List(w.t.Context(), &list); err != nil {
		return err.Error()
	}
	var text strings.Builder
	fmt.Fprintf(&text, "after %s, held by %q, last requests %q", w.Now().Sub(noon), w.holder(), w.requests[max(0, len(w.requests)-8):])
	for i := range list.Items {
		cfg := &list.Items[i]
		fmt.Fprintf(&text, "\n%s/%s, finalizers %v, deleted %v", cfg.Namespace, cfg.Name, cfg.Finalizers, cfg.DeletionTimestamp)
		for _, c := range cfg.Status.Conditions {
			fmt.Fprintf(&text, "\n  %s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
		for _, h := range cfg.Status.History {
			fmt.Fprintf(&text, "\n  %s %s, attempt %d", h.Version, h.Phase, h.Attempt)
			for _, c := range h.Conditions {
				fmt.Fprintf(&text, "\n    %s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
			}
		}
	}
	return text.String()
}
