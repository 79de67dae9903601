// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pools_test

import (
	"fmt"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
)

// begin creates the UpgradeJob and starts the operator.
func (w *world) begin() {
	job := &maintenancev1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{Namespace: jobKey.Namespace, Name: jobKey.Name, UID: "uid"}}
	job.Spec = maintenancev1beta1.UpgradeJobSpec{
		StartAfter: maintenance.Timestamp(w.start), StartBefore: maintenance.Timestamp(w.start.Add(time.Hour)), DesiredVersion: maintenancev1beta1.DesiredVersion{Version: w.to},
	}
	if err := w.Add(job); err != nil {
		w.t.Fatal(err)
	}
	w.Observe(w.observe)
	w.program = simulation.Program{
		Name: "operator", Controllers: w.controllers, OnCrash: func() { w.After(10*time.Second, w.run) },
		Plan: func(r simulation.Request) simulation.Fault {
			if w.plan == nil || !r.IsWrite() {
				return simulation.Fault{}
			}
			return w.plan(r)
		},
	}
	w.run()
}

func (w *world) addPool(name, label string) {
	pool := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1, Labels: map[string]string{"name": label}}}
	openshift.MarkUpdated(pool, from)
	if err := w.Add(pool); err != nil {
		w.t.Fatal(err)
	}
}

// run starts a process of the operator.
func (w *world) run() {
	process, err := w.Start(&w.program)
	if err != nil {
		w.t.Fatal(err)
	}
	w.process = process
}

// runFor lets time pass.
func (w *world) runFor(d time.Duration) {
	w.t.Helper()
	if err := w.RunFor(d); err != nil {
		w.t.Fatalf("%v\n%s", err, w.record())
	}
}

// runToEnd lets time pass until some time after the attempt has ended.
func (w *world) runToEnd() {
	w.t.Helper()
	ended := func() bool {
		record := w.job().Status.History
		return len(record) > 0 && record[0].Finished()
	}
	if err := w.RunUntil(24*time.Hour, ended); err != nil {
		w.t.Fatalf("%v\n%s", err, w.record())
	}
	w.runFor(time.Minute)
}

// setPaused pauses or unpauses a pool as a user.
func (w *world) setPaused(name string, paused bool) {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"paused":%t}}`, paused))
	if err := w.client.Patch(w.t.Context(), w.pool(name), patch); err != nil {
		w.t.Fatal(err)
	}
}

// setMark sets the annotation of pool night as a user; empty removes it.
func (w *world) setMark(mark string) {
	value := `"` + mark + `"`
	if mark == "" {
		value = "null"
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+clusterstate.AnnotationPausedBy+`":`+value+`}}}`))
	if err := w.client.Patch(w.t.Context(), w.pool("night"), patch); err != nil {
		w.t.Fatal(err)
	}
}
