// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejob

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
)

// The latest attempt counts, in whatever order the records are.
func TestRequest_is_that_of_the_latest_attempt(t *testing.T) {
	t.Parallel()
	first := time.Date(2027, 3, 2, 21, 0, 0, 0, time.UTC)
	retry := first.Add(24 * time.Hour)
	job := &maintenancev1beta1.UpgradeJob{Spec: maintenancev1beta1.UpgradeJobSpec{StartAfter: "2027-03-02T21:00:00Z", StartBefore: "2027-03-02T22:00:00Z"}}
	job.Status.History = []history.Record{{Attempt: 2, UpgradeAt: &metav1.Time{Time: retry}}, {Attempt: 1, UpgradeAt: &metav1.Time{Time: first}}}
	for range 2 {
		if got := (kind{}).Request(job); !got.At.Equal(retry) || got.InvalidTime != "" {
			t.Errorf("attempt %d is the first record: the request is %+v", job.Status.History[0].Attempt, got)
		}
		slices.Reverse(job.Status.History)
	}
}
