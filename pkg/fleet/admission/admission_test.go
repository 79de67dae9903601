// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/selection"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// fleetOf returns a fleet of one cluster.
func fleetOf(windows ...fleetv1beta1.AdmissionWindow) *admission.Fleet {
	upgrade := &fleetv1beta1.ManagedClustersUpgrade{}
	upgrade.Spec.UpgradeStrategy.Windows = windows
	return &admission.Fleet{
		Upgrade: upgrade, Now: noon, Selection: selection.Selection{Members: []selection.SelectedCluster{{Name: "a"}}},
		Clusters: map[string]*clusterv1.ManagedCluster{"a": {
			ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
			Status: clusterv1.ManagedClusterStatus{Conditions: []metav1.Condition{{Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue}}},
		}},
	}
}

func TestWindows(t *testing.T) {
	t.Parallel()
	open := fleetv1beta1.AdmissionWindow{Cron: "0 * * * *", Location: "UTC", Duration: "1h"}
	closed := fleetv1beta1.AdmissionWindow{Cron: "0 22 * * *", Location: "UTC", Duration: "1h"}
	for name, tc := range map[string]struct {
		windows []fleetv1beta1.AdmissionWindow
		reason  string
		message string
	}{
		"none":                            {},
		"one that is open":                {windows: []fleetv1beta1.AdmissionWindow{closed, open}},
		"one that is closed":              {windows: []fleetv1beta1.AdmissionWindow{closed}, reason: fleetv1beta1.ReasonOutsideWindow, message: "2026-11-23T22:00:00Z"},
		"a schedule that cannot be read":  {windows: []fleetv1beta1.AdmissionWindow{open, {Cron: "61 * * * *", Location: "UTC", Duration: "1h"}}, reason: fleetv1beta1.ReasonInvalidStrategy, message: "spec.upgradeStrategy.windows[1]: "},
		"a duration that cannot be read":  {windows: []fleetv1beta1.AdmissionWindow{{Cron: "0 * * * *", Location: "UTC", Duration: "soon"}}, reason: fleetv1beta1.ReasonInvalidStrategy, message: "windows[0]: duration"},
		"a time zone that does not exist": {windows: []fleetv1beta1.AdmissionWindow{{Cron: "0 * * * *", Location: "Mars/Olympus", Duration: "1h"}}, reason: fleetv1beta1.ReasonInvalidStrategy, message: "Mars/Olympus"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fleet, windows := fleetOf(tc.windows...), &admission.Windows{}
			for range 2 { // the second time with schedules that are parsed already
				decision := admission.Admit(fleet.Plan(fleet.Members(), windows), fleet.Members(), noon)
				if got := decision.Stopped; got.Reason != tc.reason || !strings.Contains(got.Message, tc.message) {
					t.Errorf("stopped by %+v, want %s with %q", got, tc.reason, tc.message)
				}
				if admits := len(decision.Admit) > 0; admits != (tc.reason == "") {
					t.Errorf("admits %v", decision.Admit)
				}
			}
		})
	}
}

func TestTrimCluster_keeps_what_decides(t *testing.T) {
	t.Parallel()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
		Name: "a", UID: "u", ResourceVersion: "7", Labels: map[string]string{"local-cluster": "true"},
		Annotations:   map[string]string{upgradev1alpha1.HoldAnnotation: "disk", "note": "long"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}}, DeletionTimestamp: &metav1.Time{Time: noon},
	}}
	cluster.Spec.HubAcceptsClient = true
	cluster.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{
		{Name: "version.openshift.io", Value: "4.20.5"}, {Name: "region", Value: "eu"}, {Name: "controlplanetopology.openshift.io", Value: "External"},
	}
	cluster.Status.Capacity = clusterv1.ResourceList{}
	want := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
		Name: "a", UID: "u", ResourceVersion: "7", Labels: cluster.Labels, DeletionTimestamp: cluster.DeletionTimestamp,
		Annotations: map[string]string{upgradev1alpha1.HoldAnnotation: "disk"},
	}}
	want.Spec.HubAcceptsClient = true // a run waits for it
	want.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{cluster.Status.ClusterClaims[0], cluster.Status.ClusterClaims[2]}
	got, err := admission.TrimCluster(cluster)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("trimmed (-want +got):\n%s", diff)
	}
	fleet := fleetOf()
	before := admission.Outcome(&fleet.Upgrade.Spec, cluster, false)
	if diff := cmp.Diff(before, admission.Outcome(&fleet.Upgrade.Spec, got.(*clusterv1.ManagedCluster), false)); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
}

// A stop ends by an answer that applies, not by the release that identifies the answers in another way.
func TestPlan_stops_until_an_answer_applies(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		published, entries string
		goesOn             bool
	}{
		"no answer":                     {},
		"typing error":                  {entries: "b=its disk is broken"},
		"answer that applies":           {entries: "a=its disk is broken", goesOn: true},
		"fewer answers than before":     {published: "9-0123456789abcdef", entries: "a=its disk is broken"},
		"answer that no longer applies": {published: "1-0123456789abcdef"},
		"another answer":                {published: "1-0123456789abcdef", entries: "a=its disk is broken", goesOn: true},
		"answer to a former release":    {published: "0123456789abcdef", entries: "a=its disk is broken"},
		"answers that a person removed": {published: "0123456789abcdef"},
	} {
		fleet := fleetOf()
		run := &fleetv1alpha1.ClusterUpgradeRun{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}}
		run.Spec.Attempt, run.Spec.AdmissionTime = 1, metav1.Time{Time: noon}
		run.Status.Attempt, run.Status.State = 1, fleetv1alpha1.StateFailed
		fleet.Runs = map[string]*fleetv1alpha1.ClusterUpgradeRun{"a": run}
		fleet.Upgrade.Annotations = map[string]string{fleetv1beta1.ForgetFailureAnnotation: tc.entries}
		fleet.Upgrade.Status.Attempt = 1
		fleet.Upgrade.Status.Stop = &fleetv1beta1.StopStatus{Reason: fleetv1beta1.ReasonMaxFailuresExceeded, Annotations: tc.published}
		if got := fleet.Plan(fleet.Members(), &admission.Windows{}).Stop; got.IsZero() != tc.goesOn {
			t.Errorf("%s: stopped by %q", name, got.Reason)
		}
	}
}

// An entry of an annotation is about one attempt: the attempt of its number, or the first one.
func TestAnnotations_name_an_attempt(t *testing.T) {
	t.Parallel()
	const entries = "a=old disk; b@1=x\n c@2=new disk;d@02=x;e@=x;f@2=;=x;g@2"
	for attempt, want := range map[int32][]string{0: {"a", "b"}, 1: {"a", "b"}, 2: {"c"}, 3: nil} {
		upgrade := &fleetv1beta1.ManagedClustersUpgrade{Spec: fleetv1beta1.ManagedClustersUpgradeSpec{Attempt: attempt}}
		upgrade.Annotations = map[string]string{fleetv1beta1.ForgetFailureAnnotation: entries}
		var forgotten []string
		for _, cluster := range []string{"a", "b", "c", "d", "e", "f", "g", ""} {
			if admission.IsForgotten(upgrade, cluster) {
				forgotten = append(forgotten, cluster)
			}
		}
		if diff := cmp.Diff(want, forgotten); diff != "" {
			t.Errorf("forgotten in attempt %d (-want +got):\n%s", attempt, diff)
		}
	}
}
