// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
)

// Finalizer keeps a Job of a hook until its result is in the record of the upgrade.
const Finalizer = "managedupgrade.appuio.io/hook-result"

// What a Job of a hook is marked with.
const (
	// labelComponent is what the Jobs of hooks are selected by.
	labelComponent = "managedupgrade.appuio.io/component"
	componentHook  = "hook"
	// labelUpgradeJob is the UID of the UpgradeJob.
	labelUpgradeJob = "managedupgrade.appuio.io/upgradejob-uid"
	labelAttempt    = "managedupgrade.appuio.io/attempt"
	labelEvent      = "managedupgrade.appuio.io/event"

	// annotationUpgradeJob is the name of the UpgradeJob.
	annotationUpgradeJob = "managedupgrade.appuio.io/upgradejob"
	// annotationEvent is the key of the event, annotationItem the name of the item of the step.
	annotationEvent = "managedupgrade.appuio.io/event"
	annotationItem  = "managedupgrade.appuio.io/item"
	// annotationHooks lists the hooks of the event, which are fixed when it begins.
	annotationHooks = "managedupgrade.appuio.io/hooks"
	// annotationPolicy is the failure policy of the hook when the event began.
	annotationPolicy = "managedupgrade.appuio.io/failure-policy"
)

// hookRef identifies a hook.
type hookRef struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}

// key identifies the event within an attempt.
func (e Event) key() string {
	if e.Pool == "" {
		return string(e.Name)
	}
	return string(e.Name) + "/" + e.Pool
}

// maxItemName is the length of the longest name of an item, in bytes.
const maxItemName = 253

// itemName returns the name of the item of a hook.
func (e Event) itemName(hook string) string {
	name := e.key() + "/" + hook
	if len(name) <= maxItemName {
		return name
	}
	return name[:maxItemName-1-shortHash] + "-" + hash(name)[:shortHash]
}

// maxJobName is the length of the longest name of a Job, in bytes: its pods have it as a label.
const (
	maxJobName = 63
	shortHash  = 16
)

// jobName returns the name of the Job that runs a hook on an event. Nothing else leads to it.
func jobName(upgrade types.UID, attempt int32, hook hookRef, event Event) string {
	id := hash(fmt.Sprintf("%q %d %q %q %q", upgrade, attempt, hook.UID, event.Name, event.Pool))[:shortHash]
	head := strings.ReplaceAll(hook.Name, ".", "-")
	head = strings.TrimRight(head[:min(len(head), maxJobName-1-len(id))], "-")
	return head + "-" + id
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// jobLabels are the labels of the Jobs of an event.
func (e *eventRun) jobLabels() map[string]string {
	return map[string]string{
		labelComponent: componentHook, labelUpgradeJob: string(e.job.UID), labelAttempt: strconv.Itoa(int(e.record.Attempt)), labelEvent: string(e.event.Name),
	}
}

// newJob returns the Job that runs a hook on the event, see template.
func (e *eventRun) newJob(upgrade *v1beta1.UpgradeJob, hook *v1beta1.UpgradeJobHook, all []hookRef) (*unstructured.Unstructured, error) {
	job, err := template(hook, e.Config().ServiceAccounts)
	if err != nil {
		return nil, err
	}
	variables, err := newEnvironment(e.event, e.run.Since, upgrade, len(containersOf(job)))
	if err != nil {
		return nil, err
	}
	addEnvironment(job, variables)
	selection, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("encoding the hooks of event %s: %w", e.event.Name, err)
	}
	job.SetNamespace(upgrade.Namespace)
	job.SetName(jobName(upgrade.UID, e.record.Attempt, hookRef{hook.Name, hook.UID}, e.event))
	job.SetLabels(merge(job.GetLabels(), e.jobLabels()))
	job.SetAnnotations(merge(job.GetAnnotations(), map[string]string{
		annotationUpgradeJob: upgrade.Name, annotationEvent: e.event.key(), annotationItem: e.event.itemName(hook.Name),
		annotationHooks: string(selection), annotationPolicy: string(cmp.Or(hook.Spec.FailurePolicy, v1beta1.HookFailureIgnore)),
	}))
	job.SetFinalizers([]string{Finalizer})
	// blockOwnerDeletion would require a permission, and delay the deletion of the UpgradeJob.
	job.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: v1beta1.GroupVersion.String(), Kind: "UpgradeJob", Name: upgrade.Name, UID: upgrade.UID, Controller: new(true),
	}})
	return job, nil
}

func merge(labels ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, l := range labels {
		maps.Copy(all, l)
	}
	return all
}

// isOurs reports whether a Job was created for a hook of this event.
func (e *eventRun) isOurs(job *batchv1.Job) bool {
	for key, value := range e.jobLabels() {
		if job.Labels[key] != value {
			return false
		}
	}
	owner := metav1.GetControllerOf(job)
	return job.Annotations[annotationEvent] == e.event.key() && owner != nil && owner.UID == e.job.UID
}

// selection returns the hooks of the event that a Job lists; nil means that it lists none.
func selection(job *batchv1.Job) []hookRef {
	var all []hookRef
	if err := utiljson.Unmarshal([]byte(job.Annotations[annotationHooks]), &all); err != nil {
		return nil // another client has changed it
	}
	return all
}

// JobRecorded reports whether the result of a Job need not be kept any more: its attempt has ended,
// or the step that waited for it has, and its result is among the items.
func JobRecorded(records []history.Record, job *batchv1.Job) bool {
	attempt, err := strconv.ParseInt(job.Labels[labelAttempt], 10, 32)
	if err != nil {
		return true // another client has changed it: no attempt waits for it
	}
	for i := range records {
		switch {
		case records[i].Attempt > int32(attempt):
			return true
		case records[i].Attempt == int32(attempt):
			return records[i].Finished() || resultIn(records[i].Conditions, job)
		}
	}
	return false
}

func resultIn(conditions []history.StepCondition, job *batchv1.Job) bool {
	for i := range conditions {
		if conditions[i].CompleteTime == nil {
			continue
		}
		for _, item := range conditions[i].Items {
			if (item.Name == job.Annotations[annotationItem] || item.Name == job.Annotations[annotationEvent]) && item.Ended() {
				return true
			}
		}
	}
	return false
}

// finishedCondition returns the condition that reports how a Job ended; nil means that it has not.
func finishedCondition(job *batchv1.Job) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		c := &job.Status.Conditions[i]
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}
