// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
)

// TestDeletion_between_commit_and_end deletes upgrades in each state, as a user and as controllers of Kubernetes.
func TestDeletion_between_commit_and_end(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.openshift(t)
	s.apply(t, kustomized(t))
	at := metav1.Now().Rfc3339Copy()
	pending := history.Record{Version: "4.20.7", Phase: history.PhasePending, Attempt: 2}
	commenced := history.Record{Version: "4.20.6", Phase: history.PhaseUpgrading, Attempt: 1, StartTime: &at, CommenceTime: &at, UpgradeAt: &at}
	started, ended := commenced, commenced
	started.CommenceTime = nil
	ended.Version, ended.Attempt, ended.Phase, ended.CompleteTime = "4.20.5", 3, history.PhaseFailed, &at
	failing, early := commenced, commenced
	failing.Phase = history.PhaseFailed
	early.Phase, early.UpgradeAt = history.PhaseFailed, nil // as early releases have recorded the end

	for name, tc := range map[string]struct {
		records []history.Record
		reason  string // of the annotation
		user    string
		denied  bool
	}{
		"not reconciled":                      {},
		"pending":                             {records: []history.Record{pending}},
		"before the commit":                   {records: []history.Record{started}},
		"after the commit":                    {records: []history.Record{commenced}, denied: true},
		"cleaning up after the commit":        {records: []history.Record{failing}, denied: true},
		"ended":                               {records: []history.Record{ended}},
		"ended, as early releases recorded":   {records: []history.Record{early}},
		"after the commit, an older ended":    {records: []history.Record{commenced, ended}, denied: true},
		"after the commit, a newer pending":   {records: []history.Record{pending, commenced}, denied: true},
		"after the commit, with a reason":     {records: []history.Record{commenced}, reason: "the cluster will be replaced"},
		"after the commit, with blank reason": {records: []history.Record{commenced}, reason: "  ", denied: true},
		"by the deletion of the namespace":    {records: []history.Record{commenced}, user: "system:serviceaccount:kube-system:namespace-controller"},
		"by the garbage collector":            {records: []history.Record{commenced}, user: "system:serviceaccount:kube-system:generic-garbage-collector"},
		"by another ServiceAccount":           {records: []history.Record{commenced}, user: "system:serviceaccount:hive:hive-controllers", denied: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if want := containsCommenced(tc.records) && tc.reason != "the cluster will be replaced" && (tc.user == "" || tc.denied); want != tc.denied {
				t.Fatalf("the records say %t: the policy and package history differ about what is commenced", want)
			}
			access := rest.CopyConfig(s.RESTConfig())
			if tc.user != "" {
				access.Impersonate = rest.ImpersonationConfig{UserName: tc.user, Groups: []string{"system:masters"}}
			}
			user, err := client.New(access, client.Options{Scheme: s.client.Scheme()})
			mustSucceed(t, err)
			for _, kind := range []string{"upgrade", "job"} {
				upgrade := s.upgradeWithHistory(t, kind, tc.records, tc.reason)
				denied := ""
				if tc.denied {
					denied = upgradev1alpha1.AllowDeletionAnnotation
				}
				checkAdmission(t, user.Delete(t.Context(), upgrade, client.DryRunAll), denied)
				checkAdmission(t, user.DeleteAllOf(t.Context(), upgrade, client.InNamespace(home), client.MatchingLabels{"case": upgrade.GetLabels()["case"]}, client.DryRunAll), denied)
			}
		})
	}
}

func containsCommenced(records []history.Record) bool {
	for _, r := range records {
		if r.InProgress() && r.CommenceTime != nil {
			return true
		}
	}
	return false
}

// upgradeWithHistory creates an UpgradeConfig or an UpgradeJob with records.
func (s *server) upgradeWithHistory(t *testing.T, kind string, records []history.Record, reason string) client.Object {
	t.Helper()
	upgrade := object(upgradeConfigKind, home, "", map[string]any{"spec": map[string]any{
		"type": "OSD", "upgradeAt": "2030-01-31T01:00:00Z", "PDBForceDrainTimeout": int64(60),
		"desired": map[string]any{"version": "4.20.6", "channel": "stable-4.20"},
	}})
	if kind == "job" {
		upgrade = object(maintenanceKind("UpgradeJob"), home, "", map[string]any{"spec": map[string]any{
			"startAfter": "2027-03-02T21:00:00Z", "startBefore": "2027-03-02T22:00:00Z", "desiredVersion": map[string]any{"version": "4.20.6", "image": offeredImage},
		}})
	}
	upgrade.SetGenerateName("upgrade-")
	if reason != "" {
		upgrade.SetAnnotations(map[string]string{upgradev1alpha1.AllowDeletionAnnotation: reason})
	}
	mustSucceed(t, s.client.Create(t.Context(), upgrade))
	if len(records) > 0 {
		encoded, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]string{"case": upgrade.GetName()}}, "status": map[string]any{"history": records}})
		mustSucceed(t, err)
		patch := client.RawPatch("application/merge-patch+json", encoded)
		mustSucceed(t, s.client.Patch(t.Context(), upgrade, patch))
		mustSucceed(t, s.client.Status().Patch(t.Context(), upgrade, patch))
	}
	return upgrade
}
