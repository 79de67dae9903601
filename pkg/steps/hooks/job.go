// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"cmp"
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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Finalizer keeps the Job of a hook until its result is in the record of the upgrade.
const Finalizer = "managedupgrade.appuio.io/hook-result"

// Marks on the Jobs of hooks.
const (
	// labelComponent selects the Jobs of hooks.
	labelComponent = "managedupgrade.appuio.io/component"
	componentHook  = "hook"
	labelAttempt   = "managedupgrade.appuio.io/attempt"
	labelEvent     = "managedupgrade.appuio.io/event"
	// uidSuffix turns the mark of a kind, the annotation with the name of the upgrade, into the
	// label with its UID.
	uidSuffix = "-uid"

	// annotationEvent holds the key of the event, and annotationItem the name of the step's item.
	annotationEvent = "managedupgrade.appuio.io/event"
	annotationItem  = "managedupgrade.appuio.io/item"
	// annotationHooks lists the hooks of the event. They are fixed when the event begins.
	annotationHooks = "managedupgrade.appuio.io/hooks"
	// annotationPolicy holds the failure policy of the hook at the beginning of the event.
	annotationPolicy = "managedupgrade.appuio.io/failure-policy"
	// annotationSuspended marks a Job that its template suspends.
	annotationSuspended = "managedupgrade.appuio.io/suspended-by-template"

	// labelQueue names the Kueue queue that suspends the Job until it admits it.
	labelQueue = "kueue.x-k8s.io/queue-name"
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

// maxItemName is the maximum length of an item's name, in bytes.
const maxItemName = 253

// itemName returns the name of a hook's item.
func (e Event) itemName(hook string) string {
	name := e.key() + "/" + hook
	if len(name) <= maxItemName {
		return name
	}
	return name[:maxItemName-1-shortHash] + "-" + text.Hash(name, shortHash/2)
}

// maxJobName is the maximum length of a Job's name, in bytes, because its pods have the name as a
// label.
const (
	maxJobName = 63
	shortHash  = 16
)

// jobName returns the name of the Job that runs a hook for an event. It only depends on the
// arguments.
func jobName(upgrade types.UID, attempt int32, hook hookRef, event Event) string {
	id := text.Hash(fmt.Sprintf("%q %d %q %q %q", upgrade, attempt, hook.UID, event.Name, event.Pool), shortHash/2)
	head := strings.ReplaceAll(hook.Name, ".", "-")
	head = strings.TrimRight(head[:min(len(head), maxJobName-1-len(id))], "-")
	return head + "-" + id
}

// jobLabels returns the labels of the Jobs of an event.
func (e *eventRun) jobLabels() map[string]string {
	return map[string]string{
		labelComponent: componentHook, e.owner.Mark() + uidSuffix: string(e.owner.UID), labelAttempt: strconv.Itoa(int(e.owner.Attempt)), labelEvent: string(e.event.Name),
	}
}

// newJob returns the Job that runs a hook for the event; see template.
func (e *eventRun) newJob(upgrade client.Object, hook *maintenancev1beta1.UpgradeJobHook, all []hookRef) (*unstructured.Unstructured, error) {
	job, err := template(hook, e.Config().ServiceAccounts)
	if err != nil {
		return nil, err
	}
	variables, err := newEnvironment(e.event, e.run.Since, e.owner.OwnerKind, upgrade, len(containersOf(job)))
	if err != nil {
		return nil, err
	}
	addEnvironment(job, variables)
	selection, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("encoding the hooks of event %s: %w", e.event.Name, err)
	}
	job.SetNamespace(e.owner.Namespace)
	job.SetName(jobName(e.owner.UID, e.owner.Attempt, hookRef{hook.Name, hook.UID}, e.event))
	job.SetLabels(merge(job.GetLabels(), e.jobLabels()))
	job.SetAnnotations(merge(job.GetAnnotations(), map[string]string{
		e.owner.Mark(): e.owner.Name, annotationEvent: e.event.key(), annotationItem: e.event.itemName(hook.Name),
		annotationHooks: string(selection), annotationPolicy: string(cmp.Or(hook.Spec.FailurePolicy, maintenancev1beta1.HookFailureIgnore)),
	}))
	if suspend, _, _ := unstructured.NestedBool(job.Object, "spec", "suspend"); suspend {
		job.SetAnnotations(merge(job.GetAnnotations(), map[string]string{annotationSuspended: "true"}))
	}
	job.SetFinalizers([]string{Finalizer})
	// Setting blockOwnerDeletion would require a permission and delay the deletion of the owner.
	job.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: e.owner.GroupVersion().String(), Kind: e.owner.Kind, Name: e.owner.Name, UID: e.owner.UID, Controller: new(true),
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
	return job.Annotations[annotationEvent] == e.event.key() && owner != nil && owner.UID == e.owner.UID
}

// selection returns the hooks of the event that a Job lists, or nil if it lists none.
func selection(job *batchv1.Job) []hookRef {
	var all []hookRef
	if err := utiljson.Unmarshal([]byte(job.Annotations[annotationHooks]), &all); err != nil {
		return nil // another client changed it
	}
	return all
}

// JobRecorded reports whether the result of a Job can be discarded: the attempt of its owner has
// ended, or the step that waited for it has ended with the result among its items. known is false
// if the object has no record of the attempt, because the cache may be stale.
func JobRecorded(owner maintenance.Owner, object client.Object, job *batchv1.Job) (recorded, known bool) {
	if owner.Attempt == 0 {
		return true, true
	}
	state, record := owner.OwnerKind.Attempt(object, owner.Attempt)
	return state == maintenance.AttemptEnded || record != nil && resultIn(record.Conditions, job), record != nil
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

// finishedCondition returns the condition that reports how a Job ended, or nil if it has not ended.
func finishedCondition(job *batchv1.Job) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		c := &job.Status.Conditions[i]
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}
