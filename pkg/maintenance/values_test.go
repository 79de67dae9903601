// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
)

func TestDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[maintenancev1beta1.Duration]time.Duration{
		"": 0, "0s": 0, "2h": 2 * time.Hour, "90m": 90 * time.Minute, "1h30m15s": 90*time.Minute + 15*time.Second,
		"99999h99999m99999s": 99999*time.Hour + 99999*time.Minute + 99999*time.Second,
	} {
		if got, err := maintenance.Duration(text); err != nil || got != want {
			t.Errorf("%q is %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []maintenancev1beta1.Duration{"1d", "h", "2", "999999999999h"} {
		if got, err := maintenance.Duration(text); err == nil {
			t.Errorf("%q is %s, want an error", text, got)
		}
	}
}

func TestTimestamp(t *testing.T) {
	t.Parallel()
	nine := time.Date(2027, 3, 2, 21, 0, 0, 5, time.UTC)
	for _, text := range []maintenancev1beta1.Timestamp{
		"2027-03-02T21:00:00Z", "2027-03-02T22:00:00+01:00", maintenance.Timestamp(nine), maintenance.Timestamp(nine.In(time.FixedZone("", -3600))),
	} {
		if got, err := maintenance.Time(text); err != nil || !got.Equal(nine.Truncate(time.Second)) {
			t.Errorf("%q is %s, %v, want %s", text, got, err, nine)
		}
	}
	for _, text := range []maintenancev1beta1.Timestamp{"", "2027-03-02t21:00:00Z", "2027-02-30T21:00:00Z", "tomorrow"} {
		if got, err := maintenance.Time(text); err == nil {
			t.Errorf("%q is %s, want an error", text, got)
		}
	}
}

func TestRequestToken(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", maintenancev1beta1.MaxTokenLength)
	for value, want := range map[string]string{
		"":           "",
		"2027-03-02": "2027-03-02",
		long:         long,
		long + "a":   "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0",
	} {
		job := &maintenancev1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{maintenancev1beta1.RetryAnnotation: value}}}
		if got := maintenance.RequestToken(job, maintenancev1beta1.RetryAnnotation); got != want {
			t.Errorf("the token of %q is %q, want %q", value, got, want)
		}
		if got := maintenance.RequestToken(job, maintenancev1beta1.RunNowAnnotation); got != "" {
			t.Errorf("the token of another annotation is %q", got)
		}
	}
}
