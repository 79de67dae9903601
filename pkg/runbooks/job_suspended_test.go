// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package runbooks

import (
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// A suspension skips an upgrade that is requested, unless it has commenced: the cache may be behind.
func TestUpgradeCommenced_suspended(t *testing.T) {
	t.Parallel()
	requested := &configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "version"},
		Spec:       configv1.ClusterVersionSpec{DesiredUpdate: &configv1.Update{Version: "4.4.6"}},
		Status: configv1.ClusterVersionStatus{
			Desired:          configv1.Release{Version: "4.4.5"},
			History:          []configv1.UpdateHistory{{Version: "4.4.5", State: configv1.CompletedUpdate}},
			AvailableUpdates: []configv1.Release{{Version: "4.4.6"}},
		},
	}
	accepted := requested.DeepCopy()
	accepted.Status.Desired.Version = "4.4.6"
	accepted.Status.History = []configv1.UpdateHistory{{Version: "4.4.6", State: configv1.PartialUpdate}, {Version: "4.4.5", State: configv1.CompletedUpdate}}
	freeze := &v1beta1.UpgradeSuspensionWindow{
		ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: "freeze"},
		Spec:       v1beta1.UpgradeSuspensionWindowSpec{Start: "2027-03-01T00:00:00Z", End: "2027-03-05T00:00:00Z", JobSelector: &v1beta1.LabelSelector{}},
	}
	job := &v1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: "job"},
		Spec: v1beta1.UpgradeJobSpec{
			StartAfter: "2027-03-02T21:00:00Z", StartBefore: "2027-03-02T22:00:00Z", DesiredVersion: v1beta1.DesiredVersion{Version: "4.4.6"},
		},
	}
	for name, tc := range map[string]struct {
		live   *configv1.ClusterVersion
		run    engine.Run
		reason string
	}{
		"requested":                        {live: requested, run: engine.Run{Requested: true}, reason: "Suspended"},
		"accepted since":                   {live: accepted, run: engine.Run{Requested: true}, reason: engine.ReasonDone},
		"observed for what it has reached": {live: accepted, reason: "Requested"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cached, live := simulation.NewFakeClient(t, requested, freeze), simulation.NewFakeClient(t, tc.live, freeze)
			record := history.Record{Version: "4.4.6", RequestTime: new(metav1.NewTime(time.Date(2027, 3, 2, 21, 1, 0, 0, time.UTC)))}
			s := newJobSteps(Deps{Client: cached, Live: live, Config: config.Default()}, job, record)
			result, err := s.UpgradeCommenced().Observe(t.Context(), tc.run)
			if err != nil || result.Reason() != tc.reason {
				t.Errorf("%s: %s, %v; want %s", result.Reason(), result.Message(), err, tc.reason)
			}
		})
	}
}
