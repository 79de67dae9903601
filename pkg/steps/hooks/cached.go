// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
)

// JobLabels returns the labels of all Jobs of hooks.
func JobLabels() labels.Set { return labels.Set{labelComponent: componentHook} }

// UpgradeJobOf returns the name and the UID of the UpgradeJob for which a Job was created; an empty
// name means that the Job is not one of a hook. They do not depend on the owner reference, which the
// garbage collector removes if the UpgradeJob is deleted with the policy Orphan.
func UpgradeJobOf(job metav1.Object) (string, types.UID) {
	return job.GetAnnotations()[annotationUpgradeJob], types.UID(job.GetLabels()[labelUpgradeJob])
}

// StripJob drops what is not read from a Job of a hook, before the Job is cached: above all the
// template of its pods.
func StripJob(obj any) (any, error) {
	job, ok := obj.(*batchv1.Job)
	if !ok {
		return obj, nil
	}
	kept := map[string]string{}
	for _, key := range []string{annotationUpgradeJob, annotationEvent, annotationItem, annotationHooks, annotationPolicy} {
		if value, ok := job.Annotations[key]; ok {
			kept[key] = value
		}
	}
	marks := map[string]string{}
	for _, key := range []string{labelComponent, labelUpgradeJob, labelAttempt, labelEvent} {
		if value, ok := job.Labels[key]; ok {
			marks[key] = value
		}
	}
	job.Annotations, job.Labels, job.ManagedFields, job.GenerateName = kept, marks, nil, ""
	job.Spec = batchv1.JobSpec{Suspend: job.Spec.Suspend}
	job.Status.UncountedTerminatedPods, job.Status.CompletedIndexes, job.Status.FailedIndexes = nil, "", nil
	return job, nil
}

// StripHook drops what is not read from an UpgradeJobHook, before it is cached: above all its
// template, which is read from the API server when the hook runs.
func StripHook(obj any) (any, error) {
	hook, ok := obj.(*v1beta1.UpgradeJobHook)
	if !ok {
		return obj, nil
	}
	hook.Annotations, hook.Labels, hook.ManagedFields, hook.OwnerReferences, hook.Finalizers = nil, nil, nil, nil, nil
	hook.Spec.Template = v1beta1.HookJobTemplate{}
	return hook, nil
}
