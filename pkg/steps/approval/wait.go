// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// maxText limits the text of another client's condition in messages.
const maxText = 200

// WaitUntilApproved waits until the condition Approved is True for the current spec of the
// UpgradeConfig. An approval of an earlier spec does not count, because it was for another time or
// version.
func WaitUntilApproved(reader client.Reader, upgrade *upgradev1alpha1.UpgradeConfig) engine.UpgradeStep {
	key := client.ObjectKeyFromObject(upgrade)
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		var cfg upgradev1alpha1.UpgradeConfig
		if err := reader.Get(ctx, key, &cfg); err != nil {
			return engine.Result{}, fmt.Errorf("reading the approval: %w", err)
		}
		approved := meta.FindStatusCondition(cfg.Status.Conditions, upgradev1alpha1.ConditionApproved)
		switch {
		case approved == nil:
			return engine.Wait("ApprovalAwaited", "waiting for the condition Approved in status.conditions"), nil
		case approved.ObservedGeneration != cfg.Generation:
			return engine.Wait("ApprovalOutdated", "the condition Approved is for generation %d of the spec, but the current generation is %d", approved.ObservedGeneration, cfg.Generation), nil
		case approved.Status != metav1.ConditionTrue:
			return engine.Wait("ApprovalDenied", "not approved: %s", said(approved)), nil
		}
		return engine.Done("approved: %s", said(approved)), nil
	}
}

// said returns the reason and message of the approver.
func said(c *metav1.Condition) string {
	return text.Sanitize(c.Reason+": "+c.Message, maxText)
}
