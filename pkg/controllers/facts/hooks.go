// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/hooks"
)

// HookJobs declares the Jobs of hooks in these namespaces, as every controller caches them. A change
// of a Job requests the reconcile of its UpgradeJob.
func HookJobs(namespaces []string) manager.Kind {
	return manager.Kind{
		Object: &batchv1.Job{}, AddToScheme: batchv1.AddToScheme, Namespaces: namespaces, Labels: hooks.JobLabels(),
		Transform: hooks.StripJob, Requests: requestUpgradeJob,
	}
}

// UpgradeJobHooks declares the UpgradeJobHooks in these namespaces, as every controller caches them.
// For an UpgradeJob, their changes apply to events that begin later, so they request nothing.
func UpgradeJobHooks(namespaces []string) manager.Kind {
	return manager.Kind{Object: &v1beta1.UpgradeJobHook{}, AddToScheme: v1beta1.AddToScheme, Namespaces: namespaces, Transform: hooks.StripHook}
}

func requestUpgradeJob(_ context.Context, job client.Object) []reconcile.Request {
	name, _ := hooks.UpgradeJobOf(job)
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: job.GetNamespace(), Name: name}}}
}
