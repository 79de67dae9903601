// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	simulated "github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/spoke"
)

// feedbackCondition is the condition of a manifest that reports on its feedback.
const feedbackCondition = "StatusFeedbackSynced"

// wellKnown lists the paths of the WellKnownStatus rule by kind.
var wellKnown = map[string][]workv1.JsonPath{
	"Job": {
		{Name: "JobComplete", Path: ".status.conditions[?(@.type==\"Complete\")].status"},
		{Name: "JobSucceeded", Path: ".status.succeeded"},
	},
}

// configOf returns the first configuration with feedback rules that matches a manifest, or nil.
func configOf(meta *workv1.ManifestResourceMeta, configs []workv1.ManifestConfigOption) *workv1.ManifestConfigOption {
	i := slices.IndexFunc(configs, func(c workv1.ManifestConfigOption) bool {
		return len(c.FeedbackRules) > 0 && delivery.Matches(meta, &c.ResourceIdentifier)
	})
	if i < 0 {
		return nil
	}
	return &configs[i]
}

// values evaluates the feedback rules of a configuration, which may be nil. It returns the values
// and the feedback condition.
func values(of object, kind string, config *workv1.ManifestConfigOption) ([]workv1.FeedbackValue, metav1.Condition) {
	if config == nil {
		return nil, metav1.Condition{Type: feedbackCondition, Status: metav1.ConditionTrue, Reason: "NoStatusFeedbackSynced"}
	}
	var all []workv1.FeedbackValue
	for i := range config.FeedbackRules {
		paths := config.FeedbackRules[i].JsonPaths
		if config.FeedbackRules[i].Type == workv1.WellKnownStatusType {
			paths = wellKnown[kind]
		}
		for _, path := range paths {
			value, err := simulated.Evaluate(of, path, false)
			if err != nil {
				return all, metav1.Condition{
					Type: feedbackCondition, Status: metav1.ConditionFalse, Reason: "StatusFeedbackSyncFailed",
					Message: fmt.Sprintf("Sync status feedback failed with error %v", err),
				}
			}
			if value != nil {
				all = append(all, *value)
			}
		}
	}
	return all, metav1.Condition{Type: feedbackCondition, Status: metav1.ConditionTrue, Reason: "StatusFeedbackSynced"}
}
