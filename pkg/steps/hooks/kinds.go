// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// Jobs declares the Jobs of the hooks in these namespaces, as every controller caches them. A change
// of a Job requests the reconcile of its UpgradeJob.
func Jobs(namespaces []string) manager.Kind {
	return manager.Kind{
		Object: &batchv1.Job{}, AddToScheme: batchv1.AddToScheme, Namespaces: namespaces, Labels: labels.Set{labelComponent: componentHook},
		Transform: StripJob, Requests: requestUpgradeJob,
	}
}

// UpgradeJobHooks declares the UpgradeJobHooks in these namespaces, as every controller caches them.
// Their changes cause no requests: they apply to events that begin later.
func UpgradeJobHooks(namespaces []string) manager.Kind {
	return manager.Kind{Object: &v1beta1.UpgradeJobHook{}, AddToScheme: v1beta1.AddToScheme, Namespaces: namespaces, Transform: StripHook}
}

// UpgradeJobOf returns the name and the UID of the UpgradeJob for which a Job was created; an empty
// name means that the Job is not one of a hook.
func UpgradeJobOf(job metav1.Object) (string, types.UID) {
	owner := metav1.GetControllerOf(job)
	if owner == nil || owner.Kind != "UpgradeJob" || string(owner.UID) != job.GetLabels()[labelUpgradeJob] {
		return "", ""
	}
	return owner.Name, owner.UID
}

func requestUpgradeJob(_ context.Context, job client.Object) []reconcile.Request {
	name, _ := UpgradeJobOf(job)
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: job.GetNamespace(), Name: name}}}
}

// StripJob drops what is not read from a Job of a hook, before the Job is cached: above all the
// template of its pods.
func StripJob(obj any) (any, error) {
	job, ok := obj.(*batchv1.Job)
	if !ok {
		return obj, nil
	}
	kept := map[string]string{}
	for _, key := range []string{annotationEvent, annotationItem, annotationHooks, annotationPolicy} {
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
