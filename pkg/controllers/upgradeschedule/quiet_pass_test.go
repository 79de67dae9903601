// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeschedule

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// addMany adds UpgradeConfigs, windows, and ended UpgradeJobs, evenly spread over the
// UpgradeConfigs.
func (w *world) addMany(configs, windows, jobs int) {
	w.TB.Helper()
	complete := metav1.NewTime(w.Now().Add(-24 * time.Hour).Truncate(time.Second))
	for i := range configs {
		cfg := config(func(cfg *maintenancev1beta1.UpgradeConfig) { cfg.Spec.SuccessfulJobsHistoryLimit = new(int32(100)) })
		cfg.Name, cfg.UID = fmt.Sprintf("config-%03d", i), ""
		w.Create(cfg)
	}
	for i := range windows {
		start := w.Now().Add(time.Duration(i) * 24 * time.Hour)
		w.Create(w.window(fmt.Sprintf("window-%03d", i), start, start.Add(time.Hour), &maintenancev1beta1.LabelSelector{}, nil))
	}
	all := simulation.List(w.Harness, &maintenancev1beta1.UpgradeConfigList{})
	for i := range jobs {
		owner := all.Items[i%len(all.Items)]
		start := w.Now().Add(-time.Duration(i+48) * time.Hour)
		w.Must(w.Add(&maintenancev1beta1.UpgradeJob{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: jobName(owner.Name, start, strconv.Itoa(i)),
				Labels:          map[string]string{maintenancev1beta1.ConfigLabel: string(owner.UID), maintenancev1beta1.SlotLabel: slotID(start)},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: maintenancev1beta1.GroupVersion.String(), Kind: "UpgradeConfig", Name: owner.Name, UID: owner.UID, Controller: new(true)}},
			},
			Spec:   maintenancev1beta1.UpgradeJobSpec{StartAfter: maintenance.Timestamp(start), StartBefore: maintenance.Timestamp(start.Add(time.Hour))},
			Status: maintenancev1beta1.UpgradeJobStatus{History: []history.Record{{Attempt: 1, Phase: history.PhaseUpgraded, CompleteTime: &complete}}},
		}))
	}
}

func TestQuietWithManyObjects(t *testing.T) {
	if testing.Short() {
		t.Skip("the hours of 100 UpgradeConfigs are those of one")
	}
	t.Parallel()
	w := newWorld(t)
	w.Process.Kill()
	w.addMany(100, 100, 500)
	w.Begin()
	w.RunFor(time.Minute)
	w.Requests = nil
	w.RunFor(6 * time.Hour)
	if diff := cmp.Diff([]string(nil), w.Requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	w.Restart()
	w.RunFor(time.Hour)
	if diff := cmp.Diff([]string(nil), w.Requests); diff != "" {
		t.Errorf("requests after a restart (-want +got):\n%s", diff)
	}
}
