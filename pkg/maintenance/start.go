// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"time"

	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// UpgradeStart returns the time from which an upgrade may commence: the time of the last request by an
// annotation that was answered for this spec.upgradeAt, or else spec.upgradeAt.
func UpgradeStart(cfg *upgradev1alpha1.UpgradeConfig) (time.Time, error) {
	start, err := time.Parse(time.RFC3339, cfg.Spec.UpgradeAt)
	if err != nil {
		return time.Time{}, err
	}
	var requested time.Time
	for _, answer := range []*upgradev1alpha1.StartStatus{cfg.Status.Retry, cfg.Status.RunNow} {
		if answer != nil && answer.StartTime != nil && answer.UpgradeAt == cfg.Spec.UpgradeAt && answer.StartTime.After(requested) {
			requested = answer.StartTime.Time
		}
	}
	if requested.IsZero() {
		return start, nil
	}
	return requested, nil
}

// StartRequest is an unanswered request to start an upgrade.
type StartRequest struct {
	Annotation, Token string
	// Answer is the field of the status for the answer.
	Answer **upgradev1alpha1.StartStatus
}

// StartRequests returns the unanswered requests to start an upgrade.
func StartRequests(cfg *upgradev1alpha1.UpgradeConfig) []StartRequest {
	var open []StartRequest
	for _, request := range []StartRequest{
		{Annotation: upgradev1alpha1.RetryAnnotation, Answer: &cfg.Status.Retry}, {Annotation: upgradev1alpha1.RunNowAnnotation, Answer: &cfg.Status.RunNow},
	} {
		request.Token = RequestToken(cfg, request.Annotation)
		if answer := *request.Answer; request.Token != "" && (answer == nil || answer.Token != request.Token) {
			open = append(open, request)
		}
	}
	return open
}

// PausedBy returns what holds an upgrade before it commences: spec.paused, an annotation, or an empty string.
func PausedBy(cfg *upgradev1alpha1.UpgradeConfig) string {
	reason, annotated := cfg.Annotations[upgradev1alpha1.PauseAnnotation]
	switch {
	case cfg.Spec.Paused != nil && *cfg.Spec.Paused:
		return "paused by spec.paused"
	case annotated:
		return "paused by annotation " + upgradev1alpha1.PauseAnnotation + ": " + text.Reason(reason)
	}
	return ""
}
