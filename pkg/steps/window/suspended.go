// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package window

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
)

// FailIfSuspended passes if nothing suspends an attempt that starts at that time: neither an
// UpgradeSuspensionWindow, nor the UpgradeConfig that created the UpgradeJob for a slot. It fails
// with the reason of maintenance.SuspendedJob otherwise, once the API server confirms it. It waits
// while that UpgradeConfig does not exist: the garbage collector deletes the UpgradeJob, too.
func FailIfSuspended(r, live client.Reader, job *v1beta1.UpgradeJob, start time.Time) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		result, err := suspended(ctx, r, job, start)
		if err == nil && !result.Passed() {
			result, err = suspended(ctx, live, job, start)
		}
		return result, err
	}
}

func suspended(ctx context.Context, r client.Reader, job *v1beta1.UpgradeJob, start time.Time) (engine.Result, error) {
	var windows v1beta1.UpgradeSuspensionWindowList
	if err := r.List(ctx, &windows, client.InNamespace(job.Namespace)); err != nil {
		return engine.Result{}, fmt.Errorf("listing the UpgradeSuspensionWindows: %w", err)
	}
	owner, err := ownerOf(ctx, r, job)
	if err != nil {
		return engine.Result{}, err
	}
	if owner == nil && maintenance.OwnerUID(job) != "" {
		return engine.Wait("ConfigDeleted", "the UpgradeConfig that created this UpgradeJob does not exist; the UpgradeJob is about to be deleted, too"), nil
	}
	if reason, message := maintenance.SuspendedJob(job, owner, windows.Items, start); reason != "" {
		return engine.Fail(reason, "%s", message), nil
	}
	return engine.Done("nothing suspends the upgrade"), nil
}

// ownerOf returns the UpgradeConfig that created the UpgradeJob for a slot; nil means that there is
// none.
func ownerOf(ctx context.Context, r client.Reader, job *v1beta1.UpgradeJob) (*v1beta1.UpgradeConfig, error) {
	uid := maintenance.OwnerUID(job)
	if uid == "" {
		return nil, nil
	}
	var configs v1beta1.UpgradeConfigList // the operator may not get single ones
	if err := r.List(ctx, &configs, client.InNamespace(job.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the UpgradeConfigs: %w", err)
	}
	for i := range configs.Items {
		if string(configs.Items[i].UID) == uid {
			return &configs.Items[i], nil
		}
	}
	return nil, nil
}
