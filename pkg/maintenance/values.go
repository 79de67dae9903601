// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package maintenance converts the values of the API group managedupgrade.appuio.io. It reads no
// clock and no objects.
package maintenance

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Duration returns a length of time, 0 for an empty value. It returns an error if the API server would not have
// accepted the value.
func Duration(text maintenancev1beta1.Duration) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	duration, err := time.ParseDuration(string(text))
	if err != nil {
		return 0, fmt.Errorf("reading a length of time: %w", err)
	}
	return duration, nil
}

// Time returns an instant. It returns an error if the API server would not have accepted the value.
func Time(text maintenancev1beta1.Timestamp) (time.Time, error) {
	instant, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		return time.Time{}, fmt.Errorf("reading a time: %w", err)
	}
	return instant, nil
}

// Timestamp returns the text of an instant, in UTC and without fractions of a second.
func Timestamp(instant time.Time) maintenancev1beta1.Timestamp {
	return maintenancev1beta1.Timestamp(text.FormatTime(instant))
}

// RequestToken returns the token of a request as the status shows it: the value of the annotation, or its
// SHA-256 hash if it is longer than maintenancev1beta1.MaxTokenLength. It is empty without a request.
func RequestToken(object metav1.Object, annotation string) string {
	value := object.GetAnnotations()[annotation]
	if len(value) <= maintenancev1beta1.MaxTokenLength {
		return value
	}
	return text.Hash(value, 32)
}

// Window returns when the first attempt of an UpgradeJob may start, and when it must have commenced. It returns
// an error if the API server would not have accepted the UpgradeJob.
func Window(job *maintenancev1beta1.UpgradeJob) (start, end time.Time, err error) {
	if start, err = Time(job.Spec.StartAfter); err != nil {
		return time.Time{}, time.Time{}, fmt.Errorf("spec.startAfter: %w", err)
	}
	if end, err = Time(job.Spec.StartBefore); err != nil {
		return time.Time{}, time.Time{}, fmt.Errorf("spec.startBefore: %w", err)
	}
	return start, end, nil
}
