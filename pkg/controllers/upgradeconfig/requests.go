// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
)

// answerRequests answers requests of users to start the upgrade now, and reports whether it did. The change of
// the UpgradeConfig triggers the next pass. During an attempt, the lifecycle answers them, see CompleteStatus.
func (r *Reconciler) answerRequests(ctx context.Context, cfg *upgradev1alpha1.UpgradeConfig) (bool, error) {
	after := cfg.DeepCopy()
	open := maintenance.StartRequests(after)
	running := slices.Contains(cfg.Finalizers, upgradev1alpha1.Finalizer) && ended(cfg) == nil // whatever the status shows
	if len(open) == 0 || !cfg.DeletionTimestamp.IsZero() || running {
		return false, nil
	}
	for _, request := range open {
		answer := &upgradev1alpha1.StartStatus{Token: request.Token, Message: refusal(after, request.Annotation)}
		if answer.Message == "" {
			answer.StartTime, answer.UpgradeAt = new(metav1.NewTime(r.Clock.Now().Truncate(time.Second))), cfg.Spec.UpgradeAt
		}
		*request.Answer = answer
	}
	patch := client.MergeFromWithOptions(cfg, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, after, patch); err != nil {
		return false, fmt.Errorf("answering a request to start the upgrade: %w", err)
	}
	return true, nil
}

// refusal returns why a request to start the upgrade has no effect, or an empty string.
func refusal(cfg *upgradev1alpha1.UpgradeConfig, annotation string) string {
	record := ended(cfg)
	switch {
	case record != nil && record.Phase == history.PhaseUpgraded:
		return "the cluster was upgraded to " + record.Version
	case record == nil && annotation == upgradev1alpha1.RetryAnnotation:
		return "the upgrade has not ended; to start it now, set the annotation " + upgradev1alpha1.RunNowAnnotation
	}
	if _, err := maintenance.UpgradeStart(cfg); err != nil {
		return "spec.upgradeAt is not a valid time"
	}
	return ""
}

// ended returns the record of the requested attempt if it has ended, or nil.
func ended(cfg *upgradev1alpha1.UpgradeConfig) *history.Record {
	start, err := maintenance.UpgradeStart(cfg)
	if err != nil {
		return nil
	}
	key := history.Record{UpgradeAt: new(metav1.NewTime(start.Truncate(time.Second)))}.Key()
	at := slices.IndexFunc(cfg.Status.History, func(record history.Record) bool {
		return record.Version == cfg.Spec.Desired.Version && record.Key() == key && record.Finished()
	})
	if at < 0 {
		return nil
	}
	return &cfg.Status.History[at]
}

// inProgress returns the record of the attempt in progress, or nil.
func inProgress(cfg *upgradev1alpha1.UpgradeConfig) *history.Record {
	at := slices.IndexFunc(cfg.Status.History, history.Record.InProgress)
	if at < 0 {
		return nil
	}
	return &cfg.Status.History[at]
}

// CompleteStatus answers requests to start an upgrade that is in progress. If the status was lost, the request
// may have started the attempt: the answer is then its start.
func (kind) CompleteStatus(cfg *upgradev1alpha1.UpgradeConfig) {
	record := inProgress(cfg)
	if record == nil {
		return
	}
	for _, request := range maintenance.StartRequests(cfg) {
		*request.Answer = &upgradev1alpha1.StartStatus{Token: request.Token, StartTime: record.UpgradeAt, UpgradeAt: cfg.Spec.UpgradeAt, Message: "the upgrade is in progress"}
	}
}
