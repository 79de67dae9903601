// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejob_test

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
)

// An UpgradeJob that is deleted and created again in mid-upgrade continues the same attempt, even with other
// times.
func TestUpgradeJobIsCreatedAgainInMidUpgrade(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*maintenancev1beta1.UpgradeJob){
		"the same": func(*maintenancev1beta1.UpgradeJob) {},
		"with other times": func(job *maintenancev1beta1.UpgradeJob) {
			job.Spec.StartAfter = timestamp(startAfter.Add(10 * time.Minute))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.cluster.ControlPlaneDuration = time.Hour
			w.Create(newJob())
			w.RunTo(startAfter.Add(30 * time.Minute))
			before := w.record()
			if before.CommenceTime == nil || before.RequestedImage == nil {
				t.Fatalf("the record is %+v", before)
			}
			job := w.job()
			w.Delete(job)
			w.settle()
			if err := w.User.Get(t.Context(), client.ObjectKeyFromObject(job), job); !apierrors.IsNotFound(err) {
				t.Fatalf("the UpgradeJob is still there: %v", err)
			}
			w.Create(newJob(edit))
			w.settle()
			if got := w.record().Step("UpgradeCommenced").Reason; got != "AlreadyReached" {
				t.Errorf("UpgradeCommenced is %q; %s", got, w.describe())
			}
			w.untilEnded()
			after, all := w.record(), w.job().Status.History
			if !after.CommenceTime.Equal(before.CommenceTime) || after.PrecedingVersion != before.PrecedingVersion || after.Phase != history.PhaseUpgraded || len(all) != 1 {
				t.Errorf("commenced at %s from %q, then at %s from %q; %s after %d attempts", before.CommenceTime, before.PrecedingVersion, after.CommenceTime, after.PrecedingVersion, after.Phase, len(all))
			}
		})
	}
}
