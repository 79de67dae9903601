// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeschedule

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

// observe counts the UpgradeJobs of each slot, and ends those that start.
func (w *world) observe(change simulation.Change) {
	job, ok := change.New.(*maintenancev1beta1.UpgradeJob)
	if !ok || change.Old != nil {
		return
	}
	key := job.Labels[maintenancev1beta1.ConfigLabel] + "/" + job.Labels[maintenancev1beta1.SlotLabel]
	if change.Actor != "operator" {
		return
	}
	if w.created[key]++; w.created[key] > 1 {
		w.Fail(fmt.Errorf("slot %s has %d UpgradeJobs", key, w.created[key]))
	}
	start, err := maintenance.Time(job.Spec.StartAfter)
	w.Must(err)
	w.starts = append(w.starts, strings.TrimSpace(start.UTC().Format("01-02 15:04")+" "+job.Spec.DesiredVersion.Version))
	if w.phase != "" {
		w.After(start.Sub(w.Now())+time.Minute, func() { w.endJob(job.Name, w.phase) })
	}
}

func (w *world) get() *maintenancev1beta1.UpgradeConfig {
	w.TB.Helper()
	return simulation.Get(w.Harness, weekly, &maintenancev1beta1.UpgradeConfig{})
}

// jobs returns the names of the existing UpgradeJobs.
func (w *world) jobs() []string {
	list := simulation.List(w.Harness, &maintenancev1beta1.UpgradeJobList{})
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// job returns the only UpgradeJob.
func (w *world) job() *maintenancev1beta1.UpgradeJob {
	w.TB.Helper()
	list := simulation.List(w.Harness, &maintenancev1beta1.UpgradeJobList{})
	if len(list.Items) != 1 {
		w.TB.Fatalf("%d UpgradeJobs; %s", len(list.Items), w.describe())
	}
	return &list.Items[0]
}

// events returns the reasons of the Events, in order.
func (w *world) events() []string {
	var reasons []string
	for _, event := range w.Events() {
		reasons = append(reasons, event.Reason)
	}
	return reasons
}

// condition returns a condition in the form "True Scheduled: message".
func (w *world) condition(name string) string {
	c := meta.FindStatusCondition(w.get().Status.Conditions, name)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

// expectCondition checks the status and the reason of a condition, in the form "True Scheduled",
// and compares its message with the golden file.
func (w *world) expectCondition(name, want string) {
	w.TB.Helper()
	got, message, _ := strings.Cut(w.condition(name), ": ")
	if got != want {
		w.TB.Errorf("condition %s: got %q, want %q", name, got, want)
	}
	golden.Texts(w.TB, name+" "+w.Now().UTC().Format("01-02 15:04:05"), message)
}

// lastSlot returns the latest slot in the form "03-02 21:00 JobCreated".
func (w *world) lastSlot() string {
	last := w.get().Status.LastSlot
	if last == nil {
		return ""
	}
	return last.Time.UTC().Format("01-02 15:04") + " " + last.Result
}

func (w *world) describe() string {
	return fmt.Sprintf("starts %q, events %q, %s", w.starts, w.events(), w.Dump(&maintenancev1beta1.UpgradeConfigList{}))
}
