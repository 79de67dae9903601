// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !e2e

package upgradejobhook_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/hooks"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

func (w *world) observe(change simulation.Change) {
	if job, ok := change.New.(*batchv1.Job); ok && change.Old == nil {
		w.names = append(w.names, job.Name)
	}
	if job, ok := change.New.(*batchv1.Job); ok && change.Old == nil && change.Actor == "operator" {
		owner := job.Annotations["managedupgrade.appuio.io/upgradejob"]
		if config := job.Annotations["upgrade.managed.openshift.io/upgradeconfig"]; config != "" {
			owner += "UpgradeConfig " + config
		}
		w.created[owner+": "+job.Annotations["managedupgrade.appuio.io/item"]]++
	}
	if event, ok := change.New.(*corev1.Event); ok && change.Old == nil {
		w.events = append(w.events, event.Type+" "+event.Reason+" "+event.InvolvedObject.Name+": "+event.Message)
	}
}

// hasSeries reports whether a hook has metrics.
func (w *world) hasSeries(hook string) bool {
	return slices.ContainsFunc(w.Series(), func(s simulation.Series) bool { return s.Name == "hook_runs_total" && s.Labels["hook"] == hook })
}

// count returns the number of times that a hook has ended.
func (w *world) count(hook, event, outcome string) float64 {
	for _, s := range w.Series() {
		if s.Name == "hook_runs_total" && s.Labels["hook"] == hook && s.Labels["event"] == event && s.Labels["outcome"] == outcome {
			return s.Value
		}
	}
	return -1
}

// record returns the record of an UpgradeJob; it is empty if there is none.
func (w *world) record(name string) history.Record {
	w.TB.Helper()
	job := simulation.Find(w.Harness, client.ObjectKey{Namespace: namespace, Name: name}, &maintenancev1beta1.UpgradeJob{})
	if job == nil || len(job.Status.History) == 0 {
		return history.Record{}
	}
	return job.Status.History[0]
}

func (w *world) hook(name string) *maintenancev1beta1.UpgradeJobHook {
	w.TB.Helper()
	return simulation.Get(w.Harness, client.ObjectKey{Namespace: namespace, Name: name}, &maintenancev1beta1.UpgradeJobHook{})
}

func (w *world) jobs() []batchv1.Job {
	w.TB.Helper()
	return simulation.List(w.Harness, &batchv1.JobList{}).Items
}

// jobOf returns the Job of an item.
func (w *world) jobOf(item string) *batchv1.Job {
	w.TB.Helper()
	jobs := w.jobs()
	i := slices.IndexFunc(jobs, func(job batchv1.Job) bool { return job.Annotations["managedupgrade.appuio.io/item"] == item })
	if i < 0 {
		w.TB.Fatalf("no Job of item %s", item)
	}
	return &jobs[i]
}

// expect compares steps of a record as step returns them, and their messages with the golden file.
func (w *world) expect(record history.Record, want map[string]string) {
	w.TB.Helper()
	for name := range want {
		got := step(record, name)
		if got != want[name] {
			w.TB.Errorf("step %s:\ngot  %s\nwant %s", name, got, want[name])
		}
		golden.Texts(w.TB, name, w.anonymous(record.Step(name).Message))
	}
}

// anonymous returns a text in which each Job has the name JOB.
func (w *world) anonymous(text string) string {
	for _, name := range w.names {
		text = strings.ReplaceAll(text, name, "JOB")
	}
	return text
}

// reasonOf matches the reason in the message of an item.
var reasonOf = regexp.MustCompile(`\b[A-Z][a-z][A-Za-z]*:`)

// step returns the reason of a step and the status of its items, with the reason that the message of an item has, as in
// "HookFailed [Start/a Failed: TimedOut]". It is empty if the step has not started.
func step(record history.Record, name string) string {
	c := record.Step(name)
	text := c.Reason
	for _, item := range c.Items {
		reason := ""
		if found := reasonOf.FindString(item.Message); found != "" {
			reason = ": " + strings.TrimSuffix(found, ":")
		}
		text += fmt.Sprintf(" [%s %s%s]", item.Name, item.Status, reason)
	}
	return text
}

// item returns an item of a record in the form "Failed: message".
func item(record history.Record, name string) string {
	for _, c := range record.Conditions {
		for _, item := range c.Items {
			if item.Name == name {
				return item.Status + ": " + item.Message
			}
		}
	}
	return ""
}

// checkReleased fails if a Job still has the finalizer of this operator. Every test ends with it.
func (w *world) checkReleased() {
	w.TB.Helper()
	for _, job := range w.jobs() {
		if slices.Contains(job.Finalizers, hooks.Finalizer) {
			w.TB.Errorf("Job %s of item %s has the finalizer", job.Name, job.Annotations["managedupgrade.appuio.io/item"])
		}
	}
}
