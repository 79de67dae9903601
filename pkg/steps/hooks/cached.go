// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
)

// JobLabels returns the common labels of all Jobs of hooks.
func JobLabels() labels.Set { return labels.Set{labelComponent: componentHook} }

// OwnerOf returns the upgrade and the attempt of a hook's Job. The name is empty if the Job is not
// a hook's Job. OwnerOf does not use the owner reference, because the garbage collector removes it
// if the object is deleted with the policy Orphan.
func OwnerOf(job metav1.Object) maintenance.Owner {
	for _, kind := range maintenance.OwnerKinds() {
		name, uid := job.GetAnnotations()[kind.Mark()], types.UID(job.GetLabels()[kind.Mark()+uidSuffix])
		if name == "" {
			continue
		}
		attempt, err := strconv.ParseInt(job.GetLabels()[labelAttempt], 10, 32)
		if err != nil {
			attempt = 0 // another client changed it, so no attempt waits for the Job
		}
		return maintenance.Owner{OwnerKind: kind, Namespace: job.GetNamespace(), Name: name, UID: uid, Attempt: int32(attempt)}
	}
	return maintenance.Owner{}
}

// StripJob drops unread parts from a hook's Job before it is cached, above all the template of its
// pods.
func StripJob(obj any) (any, error) {
	job, ok := obj.(*batchv1.Job)
	if !ok {
		return obj, nil
	}
	kept := map[string]string{}
	annotations := []string{annotationEvent, annotationItem, annotationHooks, annotationPolicy, annotationSuspended}
	labels := []string{labelComponent, labelAttempt, labelEvent, labelQueue}
	for _, kind := range maintenance.OwnerKinds() {
		annotations, labels = append(annotations, kind.Mark()), append(labels, kind.Mark()+uidSuffix)
	}
	for _, key := range annotations {
		if value, ok := job.Annotations[key]; ok {
			kept[key] = value
		}
	}
	marks := map[string]string{}
	for _, key := range labels {
		if value, ok := job.Labels[key]; ok {
			marks[key] = value
		}
	}
	job.Annotations, job.Labels, job.ManagedFields, job.GenerateName = kept, marks, nil, ""
	job.Spec = batchv1.JobSpec{Suspend: job.Spec.Suspend}
	job.Status.UncountedTerminatedPods, job.Status.CompletedIndexes, job.Status.FailedIndexes = nil, "", nil
	return job, nil
}

// StripHook drops unread parts from an UpgradeJobHook before it is cached, above all its template.
// When the hook runs, the template is read from the API server.
func StripHook(obj any) (any, error) {
	hook, ok := obj.(*maintenancev1beta1.UpgradeJobHook)
	if !ok {
		return obj, nil
	}
	hook.Annotations, hook.Labels, hook.ManagedFields, hook.OwnerReferences, hook.Finalizers = nil, nil, nil, nil, nil
	hook.Spec.Template = maintenancev1beta1.HookJobTemplate{}
	return hook, nil
}
