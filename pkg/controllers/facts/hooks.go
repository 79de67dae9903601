// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/hooks"
)

// Upgrades declares how controllers cache the UpgradeConfigs of upgrade.managed.openshift.io in
// these namespaces.
func Upgrades(namespaces []string) manager.Kind {
	return manager.Kind{Object: &upgradev1alpha1.UpgradeConfig{}, AddToScheme: upgradev1alpha1.AddToScheme, Namespaces: namespaces, Transform: StripUpgradeConfig}
}

// Owners declares how controllers cache the objects of a kind in these namespaces.
func Owners(kind maintenance.OwnerKind, namespaces []string) manager.Kind {
	if _, ok := kind.New().(*upgradev1alpha1.UpgradeConfig); ok {
		return Upgrades(namespaces)
	}
	return UpgradeJobs(namespaces)
}

// HookJobs declares how controllers cache the Jobs of hooks in these namespaces. A change of a Job
// requests a reconcile of its owner if the owner is of one of the kinds.
func HookJobs(namespaces []string, of ...maintenance.OwnerKind) manager.Kind {
	request := func(_ context.Context, job client.Object) []reconcile.Request {
		owner := hooks.OwnerOf(job)
		if !slices.ContainsFunc(of, func(k maintenance.OwnerKind) bool { return k.GroupVersionKind == owner.GroupVersionKind }) {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: owner.Namespace, Name: owner.Name}}}
	}
	return manager.Kind{
		Object: &batchv1.Job{}, AddToScheme: batchv1.AddToScheme, Namespaces: namespaces, Labels: hooks.JobLabels(),
		Transform: hooks.StripJob, Requests: request,
	}
}

// UpgradeJobHooks declares how controllers cache the UpgradeJobHooks in these namespaces. Their
// changes request no reconcile, because they only apply to events that start later.
func UpgradeJobHooks(namespaces []string) manager.Kind {
	return manager.Kind{Object: &maintenancev1beta1.UpgradeJobHook{}, AddToScheme: maintenancev1beta1.AddToScheme, Namespaces: namespaces, Transform: hooks.StripHook}
}
