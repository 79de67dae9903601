// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package v1beta1_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/crdtest"
)

func diffObjects(want, got any) string { return cmp.Diff(want, got) }

const at = "2027-03-02T21:00:00Z"

func record(attempt int64, fields map[string]any) map[string]any {
	all := map[string]any{"attempt": attempt, "phase": "Upgrading", "startTime": at}
	maps.Copy(all, fields)
	return all
}

func history(records ...any) map[string]any { return map[string]any{"history": records} }

func TestJobStatus(t *testing.T) {
	t.Parallel()
	const phases = `supported values: "New", "Pending", "Upgrading", "Upgraded", "Failed", "Unknown", "Paused", "Skipped"`
	type statusCase struct {
		status any
		want   []string
	}
	table := map[string]statusCase{
		"none":                        {},
		"empty":                       {status: map[string]any{}},
		"record without version":      {status: history(record(1, nil))},
		"record with version":         {status: history(record(1, map[string]any{"version": "4.20.6"}))},
		"record without attempt":      {status: history(map[string]any{"version": "4.20.6"}), want: []string{"status.history[0].attempt: Required value"}},
		"attempt 0":                   {status: history(record(0, nil)), want: []string{"status.history[0].attempt: should be greater than or equal to 1"}},
		"two records, one version":    {status: history(record(2, map[string]any{"version": "4.20.6"}), record(1, map[string]any{"version": "4.20.6"}))},
		"attempt twice":               {status: history(record(1, nil), record(1, nil)), want: []string{`status.history[1]: Duplicate value: {"attempt":1}`}},
		"5 attempts":                  {status: history(many(5, func(i int) any { return record(int64(i+1), nil) })...)},
		"6 attempts":                  {status: history(many(6, func(i int) any { return record(int64(i+1), nil) })...), want: []string{"status.history: must have at most 5 items"}},
		"unknown phase":               {status: history(record(1, map[string]any{"phase": "Waiting"})), want: []string{"status.history[0].phase: " + phases}},
		"phase of an earlier attempt": {status: history(record(1, map[string]any{"previousAttempts": []any{map[string]any{"attempt": int64(1), "phase": "Skipped"}}}))},
		"unknown phase of an earlier attempt": {
			status: history(record(1, map[string]any{"previousAttempts": []any{map[string]any{"attempt": int64(1), "phase": "Waiting"}}})),
			want:   []string{"status.history[0].previousAttempts[0].phase: " + phases},
		},
		"items of a step": {status: history(record(1, map[string]any{"conditions": []any{map[string]any{
			"type": "StartHooksDone", "status": "True", "items": []any{map[string]any{"name": "Start/notify-ext", "status": "Succeeded"}},
		}}}))},
		"pools":         {status: map[string]any{"machineConfigPools": []any{map[string]any{"name": "night", "state": "Paused", "releaseAfter": at}}}},
		"pool twice":    {status: map[string]any{"machineConfigPools": []any{map[string]any{"name": "night"}, map[string]any{"name": "night"}}}, want: []string{`status.machineConfigPools[1]: Duplicate value: {"name":"night"}`}},
		"retry":         {status: map[string]any{"retry": map[string]any{"token": strings.Repeat("a", 64)}, "nextTime": at}},
		"long token":    {status: map[string]any{"retry": map[string]any{"token": strings.Repeat("a", 65)}}, want: []string{"status.retry.token: may not be more than 64 bytes"}},
		"unknown field": {status: map[string]any{"fase": "New"}, want: []string{`strict decoding error: unknown field "status.fase"`}},
	}
	for _, phase := range []string{"New", "Pending", "Upgrading", "Upgraded", "Failed", "Unknown", "Paused", "Skipped"} {
		table["phase "+phase] = statusCase{status: history(record(1, map[string]any{"phase": phase}))}
	}
	// Times that Go does not decode would stop the informers of all jobs.
	for _, invalid := range []string{"2027-03-02t21:00:00Z", "2027-03-02T21:00:00z"} {
		table["time "+invalid] = statusCase{status: map[string]any{"nextTime": invalid}, want: []string{"status.nextTime: should match"}}
		table["time in a record "+invalid] = statusCase{status: history(record(1, map[string]any{"commenceTime": invalid})), want: []string{"status.history[0].commenceTime: should match"}}
		table["time of a condition "+invalid] = statusCase{
			status: map[string]any{"conditions": []any{map[string]any{"type": "Accepted", "status": "True", "reason": "Valid", "message": "", "lastTransitionTime": invalid}}},
			want:   []string{"status.conditions[0].lastTransitionTime: should match"},
		}
	}
	// With the format date-time, the API server would accept lists.
	for name, value := range map[string]any{"list": []any{at}, "empty list": []any{}, "number": int64(1), "object": map[string]any{}} {
		table["time that is a "+name] = statusCase{status: map[string]any{"nextTime": value}, want: []string{"status.nextTime: must be of type string"}}
	}
	for _, invalid := range []string{"2027-02-29T21:00:00Z", "2027-04-31T21:00:00Z", "2100-02-29T21:00:00Z", "2027-02-30T21:00:00Z"} {
		table["time "+invalid] = statusCase{status: map[string]any{"nextTime": invalid}, want: []string{"status.nextTime: should match"}}
	}
	for _, valid := range []string{"2028-02-29T21:00:00Z", "2000-02-29T21:00:00Z", "2027-12-31T23:59:59.999999999+23:59", "0001-01-01T00:00:00Z"} {
		table["time "+valid] = statusCase{status: map[string]any{"nextTime": valid}}
	}
	object := named(t, "UpgradeJob", "status")
	server.MustCreate(t, object)
	for name, tc := range table {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := object.DeepCopy()
			if changed.Object["status"] = tc.status; tc.status == nil {
				delete(changed.Object, "status")
			}
			crdtest.CompareRejections(t, tc.want, server.Status().Update(t.Context(), changed, client.DryRunAll, client.FieldValidation("Strict")))
		})
	}
}

// Each field that scheduled-maintenance.md names is part of the status.
func TestStatusHasEachField(t *testing.T) {
	t.Parallel()
	conditions := []any{map[string]any{"type": "Accepted", "status": "True", "reason": "Valid", "message": "", "lastTransitionTime": at}}
	spec := map[string]any{"spec": map[string]any{"channel": "stable-4.12", "new": int64(1)}}
	for kind, status := range map[string]map[string]any{
		"ClusterVersion": {"current": spec, "overlayApplied": at, "overlays": []any{map[string]any{"from": at, "preview": spec}}},
		"UpgradeConfig": {
			"lastScheduledUpgrade": at, "lastSlot": map[string]any{"time": at, "result": "JobCreated", "job": "cluster-upgrade-1804021200-3f9c2ab"},
			"nextPossibleSchedules": []any{map[string]any{"time": at, "suspendedBy": "UpgradeSuspensionWindow holidays"}},
			"pendingUpdate":         map[string]any{"version": "4.20.6", "since": at}, "runNow": map[string]any{"token": "1", "job": "cluster-upgrade-1"},
		},
		"UpgradeJob": {
			"history": []any{record(1, nil)}, "nextTime": at, "retry": map[string]any{"token": "1"},
			"machineConfigPools": []any{map[string]any{"name": "night", "state": "Paused", "releaseAfter": at}},
		},
		"UpgradeJobHook":          {"claimedBy": map[string]any{"name": "cluster-upgrade-1", "uid": "0b5d5ad4"}},
		"UpgradeSuspensionWindow": {"matchingConfigs": []any{"cluster-upgrade"}, "matchingJobs": []any{"cluster-upgrade-1"}},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			name := "whole-status"
			if kind == "ClusterVersion" {
				name = "version"
			}
			object := named(t, kind, name)
			server.MustCreate(t, object)
			status["conditions"], status["observedGeneration"] = conditions, int64(1)
			server.MustUpdateStatus(t, object, status)
			if diff := diffObjects(any(status), object.Object["status"]); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			server.MustUpdateStatus(t, object, map[string]any{}) // no field is required
		})
	}
}

func TestStatusIsDroppedAtCreation(t *testing.T) {
	t.Parallel()
	for kind := range samples {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			object := sample(t, samples[kind])
			object.SetNamespace("kube-node-lease") // other tests create no sample there
			object.Object["status"] = map[string]any{"observedGeneration": int64(7)}
			if err := server.Create(t.Context(), object, client.DryRunAll); err != nil {
				t.Fatal(err)
			}
			if status, found := object.Object["status"]; found {
				t.Errorf("the status is %s", fmt.Sprint(status))
			}
		})
	}
}
