// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package window

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
)

// +kubebuilder:rbac:groups=managedupgrade.appuio.io,resources=upgradeconfigs,namespace=managed-upgrade-operator,verbs=get

// windowPageSize is the page size for lists of UpgradeSuspensionWindows. It is small, because
// annotations may be long.
const windowPageSize = 25

// FailIfSuspended passes if an attempt that starts at that time is not suspended, either by an
// UpgradeSuspensionWindow or by the UpgradeConfig that created the UpgradeJob for a slot.
// Otherwise, it fails with the reason of maintenance.SuspendedJob, once the API server confirms
// that. If that UpgradeConfig does not exist, it waits, because the garbage collector will also
// delete the UpgradeJob.
func FailIfSuspended(r, live client.Reader, job *maintenancev1beta1.UpgradeJob, start time.Time) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		result, err := suspended(ctx, r, cachedWindows, job, start)
		if err == nil && !result.Passed() {
			result, err = suspended(ctx, live, liveWindows, job, start)
		}
		return result, err
	}
}

// listWindows returns the UpgradeSuspensionWindows in a namespace.
type listWindows func(ctx context.Context, r client.Reader, namespace string) ([]maintenancev1beta1.UpgradeSuspensionWindow, error)

func suspended(ctx context.Context, r client.Reader, list listWindows, job *maintenancev1beta1.UpgradeJob, start time.Time) (engine.Result, error) {
	windows, err := list(ctx, r, job.Namespace)
	if err != nil {
		return engine.Result{}, fmt.Errorf("listing the UpgradeSuspensionWindows: %w", err)
	}
	owner, err := ownerOf(ctx, r, job)
	if err != nil {
		return engine.Result{}, err
	}
	if owner == nil && maintenance.OwnerUID(job) != "" {
		return engine.Wait("ConfigDeleted", "the UpgradeConfig that created this UpgradeJob does not exist; the UpgradeJob is also about to be deleted"), nil
	}
	if reason, message := maintenance.SuspendedJob(job, owner, windows, start); reason != "" {
		return engine.Fail(reason, "%s", message), nil
	}
	return engine.Done("nothing suspends the upgrade"), nil
}

func cachedWindows(ctx context.Context, cache client.Reader, namespace string) ([]maintenancev1beta1.UpgradeSuspensionWindow, error) {
	var windows maintenancev1beta1.UpgradeSuspensionWindowList
	err := cache.List(ctx, &windows, client.InNamespace(namespace))
	return windows.Items, err
}

// liveWindows lists the windows page by page, because the API server does not strip them like the
// cache. It returns their names and specs.
func liveWindows(ctx context.Context, live client.Reader, namespace string) ([]maintenancev1beta1.UpgradeSuspensionWindow, error) {
	var windows []maintenancev1beta1.UpgradeSuspensionWindow
	page := maintenancev1beta1.UpgradeSuspensionWindowList{}
	for more := true; more; more = page.Continue != "" {
		from := page.Continue
		page = maintenancev1beta1.UpgradeSuspensionWindowList{}
		if err := live.List(ctx, &page, client.InNamespace(namespace), client.Limit(windowPageSize), client.Continue(from)); err != nil {
			return nil, err
		}
		for i := range page.Items {
			window := &page.Items[i]
			windows = append(windows, maintenancev1beta1.UpgradeSuspensionWindow{ObjectMeta: metav1.ObjectMeta{Name: window.Name}, Spec: window.Spec})
		}
	}
	return windows, nil
}

// ownerOf returns the UpgradeConfig that created the UpgradeJob for a slot, or nil if there is
// none.
func ownerOf(ctx context.Context, r client.Reader, job *maintenancev1beta1.UpgradeJob) (*maintenancev1beta1.UpgradeConfig, error) {
	uid := maintenance.OwnerUID(job)
	if uid == "" {
		return nil, nil
	}
	var owner maintenancev1beta1.UpgradeConfig
	key := client.ObjectKey{Namespace: job.Namespace, Name: metav1.GetControllerOf(job).Name}
	if err := r.Get(ctx, key, &owner); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil
		}
		return nil, fmt.Errorf("getting UpgradeConfig %s: %w", key.Name, err)
	}
	if string(owner.UID) != uid {
		return nil, nil
	}
	return &owner, nil
}
