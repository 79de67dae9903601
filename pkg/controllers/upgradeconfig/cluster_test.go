// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

const (
	installed = "4.4.5"
	desired   = "4.4.6"
	channel   = "fast-4.4"
)

// upgrade is the object of most worlds.
var upgrade = client.ObjectKey{Namespace: "team-a", Name: "upgrade"}

// tenPast is when the upgrades of most worlds begin; their window ends at 12:40.
var tenPast = noon.Truncate(time.Minute).Add(10 * time.Minute)

// upgradeConfig asks for the desired version.
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

// script is how the cluster acts.
type script struct {
	available            []string      // in the channel
	rejection            string        // why the cluster version operator refuses what it is asked for
	unresponsive         bool          // it answers nothing at all
	acceptDelay          time.Duration // until it begins
	controlPlaneDuration time.Duration // until the control plane is done
	workersDuration      time.Duration // until the pools are done after that

	observedVersion string // what it was last seen to be asked for
}

func healthy() script {
	return script{
		available: []string{desired, "4.4.7", "4.5.1"}, acceptDelay: 20 * time.Second,
		controlPlaneDuration: 11 * time.Minute, workersDuration: 7 * time.Minute,
	}
}

func clusterObjects() []client.Object {
	objects := []client.Object{
		&configv1.ClusterVersion{
			ObjectMeta: metav1.ObjectMeta{Name: clusterstate.VersionKey.Name, Generation: 1},
			Spec:       configv1.ClusterVersionSpec{Channel: "stable-4.4"},
			Status: configv1.ClusterVersionStatus{
				ObservedGeneration: 1,
				History:            []configv1.UpdateHistory{{Version: installed, State: configv1.CompletedUpdate}},
			},
		},
		&configv1.ClusterOperator{
			ObjectMeta: metav1.ObjectMeta{Name: clusterstate.MachineConfigOperator},
			Status: configv1.ClusterOperatorStatus{
				Versions: []configv1.OperandVersion{{Name: "operator", Version: installed}},
				Conditions: []configv1.ClusterOperatorStatusCondition{
					{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue},
					{Type: configv1.OperatorDegraded, Status: configv1.ConditionFalse},
				},
			},
		},
	}
	for _, name := range []string{"master", "worker"} {
		pool := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
		rolled(pool, installed)
		objects = append(objects, pool, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-0"},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		})
	}
	return objects
}

func rolled(pool *mcfgv1.MachineConfigPool, version string) {
	pool.Spec.Configuration.Name = fmt.Sprintf("rendered-%s-%s", pool.Name, version)
	pool.Status.Configuration.Name = pool.Spec.Configuration.Name
	pool.Status.MachineCount, pool.Status.UpdatedMachineCount = 1, 1
	pool.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolUpdated, Status: corev1.ConditionTrue}}
}

// reconcile is what the cluster version operator does at once: it looks at what has changed.
func (s *script) reconcile(w *world) {
	version := w.clusterVersion()
	if w.specChanged {
		w.edit(version, func() { version.Generation++ })
		w.specChanged = false
	}
	if !s.unresponsive && version.Status.ObservedGeneration != version.Generation {
		w.edit(version, func() {
			version.Status.ObservedGeneration = version.Generation
			version.Status.AvailableUpdates = nil
			if version.Spec.Channel == channel {
				for _, v := range s.available {
					version.Status.AvailableUpdates = append(version.Status.AvailableUpdates, configv1.Release{Version: v})
				}
			}
		})
	}
	target := ""
	if version.Spec.DesiredUpdate != nil {
		target = version.Spec.DesiredUpdate.Version
	}
	if s.unresponsive || target == s.observedVersion {
		return
	}
	s.observedVersion = target
	switch {
	case target == "":
	case s.rejection != "":
		w.report(version, "ReleaseAccepted", configv1.ConditionFalse, fmt.Sprintf("version=%q %s", target, s.rejection))
	default:
		w.after(s.acceptDelay, func() { s.begin(w, target) })
	}
}

// begin moves the cluster to a version.
func (s *script) begin(w *world, target string) {
	version := w.clusterVersion()
	if version.Spec.DesiredUpdate == nil || version.Spec.DesiredUpdate.Version != target {
		return
	}
	w.edit(version, func() {
		version.Status.History = append([]configv1.UpdateHistory{{Version: target, State: configv1.PartialUpdate}}, version.Status.History...)
	})
	w.after(s.controlPlaneDuration, func() { s.finish(w, target) })
}

// finish completes the control plane; the pools follow.
func (s *script) finish(w *world, target string) {
	version := w.clusterVersion()
	if version.Status.History[0].Version != target {
		return
	}
	w.pools(func(pool *mcfgv1.MachineConfigPool) {
		pool.Spec.Configuration.Name = fmt.Sprintf("rendered-%s-%s", pool.Name, target)
		pool.Status.UpdatedMachineCount = 0
	})
	var operator configv1.ClusterOperator
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Name: clusterstate.MachineConfigOperator}, &operator); err != nil {
		w.t.Fatal(err)
	}
	w.edit(&operator, func() { operator.Status.Versions[0].Version = target })
	w.edit(version, func() { version.Status.History[0].State = configv1.CompletedUpdate })
	w.after(s.workersDuration, func() { w.pools(func(pool *mcfgv1.MachineConfigPool) { rolled(pool, target) }) })
}

func (w *world) clusterVersion() *configv1.ClusterVersion {
	var version configv1.ClusterVersion
	if err := w.api.Get(w.t.Context(), clusterstate.VersionKey, &version); err != nil {
		w.t.Fatal(err)
	}
	return &version
}

// report lets the cluster version operator report a condition.
func (w *world) report(version *configv1.ClusterVersion, name configv1.ClusterStatusConditionType, status configv1.ConditionStatus, message string) {
	w.edit(version, func() {
		version.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{Type: name, Status: status, Reason: "Told", Message: message}}
	})
}

func (w *world) pools(change func(*mcfgv1.MachineConfigPool)) {
	var list mcfgv1.MachineConfigPoolList
	if err := w.api.List(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	for i := range list.Items {
		w.edit(&list.Items[i], func() { change(&list.Items[i]) })
	}
}

// find is the condition of a step in an attempt, or nil.
func find(all []history.Record, version string, attempt int32, step string) *history.StepCondition {
	for i := range all {
		for j := range all[i].Conditions {
			if all[i].Version == version && all[i].Attempt == attempt && all[i].Conditions[j].Type == step {
				return &all[i].Conditions[j]
			}
		}
	}
	return nil
}
