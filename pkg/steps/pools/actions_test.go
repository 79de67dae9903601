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
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
)

// begin creates the UpgradeJob and starts the operator.
func (w *world) begin() {
	job := &maintenancev1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{Namespace: jobKey.Namespace, Name: jobKey.Name, UID: "uid"}}
	job.Spec = maintenancev1beta1.UpgradeJobSpec{
		StartAfter: maintenance.Timestamp(w.start), StartBefore: maintenance.Timestamp(w.start.Add(time.Hour)), DesiredVersion: maintenancev1beta1.DesiredVersion{Version: w.to},
	}
	w.Must(w.Add(job))
	w.Observe(w.observe)
	w.Program.OnCrash = func() { w.After(10*time.Second, w.Begin) }
	w.Run(w.controllers)
}

func (w *world) addPool(name, label string) {
	pool := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1, Labels: map[string]string{"name": label}}}
	openshift.MarkUpdated(pool, from)
	w.Must(w.Add(pool))
}

// runToEnd lets time pass until some time after the attempt has ended.
func (w *world) runToEnd() {
	w.TB.Helper()
	ended := func() bool {
		record := w.job().Status.History
		return len(record) > 0 && record[0].Finished()
	}
	if err := w.RunUntil(24*time.Hour, ended); err != nil {
		w.TB.Fatalf("%v\n%s", err, w.record())
	}
	w.RunFor(time.Minute)
}

// setPaused pauses or unpauses a pool as a user.
func (w *world) setPaused(name string, paused bool) {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"paused":%t}}`, paused))
	w.Must(w.User.Patch(w.TB.Context(), w.pool(name), patch))
}

// setMark sets the annotation of pool night as a user; empty removes it.
func (w *world) setMark(mark string) {
	value := `"` + mark + `"`
	if mark == "" {
		value = "null"
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+clusterstate.AnnotationPausedBy+`":`+value+`}}}`))
	w.Must(w.User.Patch(w.TB.Context(), w.pool("night"), patch))
}
