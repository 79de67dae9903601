// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package v1beta1_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/crdtest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/devtest"
)

func TestAPIServerValidatesSpecs(t *testing.T) {
	t.Parallel()
	for kind, table := range cases() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for name, tc := range table {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					object := edited(t, kind, tc.edits...)
					object.SetNamespace("kube-public") // other tests create no sample there
					crdtest.CompareRejections(t, tc.want, server.Create(t.Context(), object, client.DryRunAll, client.FieldValidation("Strict")))
				})
			}
		})
	}
}

func TestAPIServerValidatesTransitions(t *testing.T) {
	t.Parallel()
	for name, tc := range transitions() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := edited(t, tc.kind, tc.before...)
			object.SetName(fmt.Sprintf("changing-%x", name))
			server.MustCreate(t, object)
			if tc.status != nil {
				server.MustUpdateStatus(t, object, tc.status)
			}
			for _, e := range tc.edits {
				e.apply(t, object.Object)
			}
			crdtest.CompareRejections(t, tc.want, server.Update(t.Context(), object, client.DryRunAll, client.FieldValidation("Strict")))
		})
	}
}

// A user applies the sample, whose status the API server ignores.
func TestSampleApplies(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join(samplesFolder, samples["ManagedClustersUpgrade"]))
	if err != nil {
		t.Fatal(err)
	}
	printed := server.RunKubectl(t, string(data), "apply", "--namespace=default", "--validate=strict", "--filename=-")
	if want := "managedclustersupgrade.cluster.open-cluster-management.io/mcu-upgrades created\n"; printed != want {
		t.Errorf("kubectl prints %q, want %q", printed, want)
	}
	if status := server.RunKubectl(t, "", "get", "--namespace=default", "mcu", "mcu-upgrades", "--output=jsonpath={.status}"); status != "" {
		t.Errorf("the status is %s, want none", status)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	object := sample(t, "ManagedClustersUpgrade")
	object.SetName("minimal")
	window := map[string]any{"cron": "0 22 * * 2", "duration": "4h"}
	object.Object["spec"] = map[string]any{
		"clusterSelector": map[string]any{}, "clusterVersion": map[string]any{"version": "4.20.6", "channel": "stable-4.20"},
		"upgradeConfig": map[string]any{"type": "OSD", "PDBForceDrainTimeout": int64(60)},
	}
	server.MustCreate(t, object)
	strategy := map[string]any{
		"rolloutType": "Progressive", "clusterUpgradeTimeout": "2h", "operatorsUpgradeTimeout": "10m", "applyTimeout": "30m", "actionTimeout": "30m",
		"failingTimeout": "10m", "stallTimeout": "45m",
	}
	want := map[string]any{
		"clusterSelector": map[string]any{}, "clusterVersion": map[string]any{"version": "4.20.6", "channel": "stable-4.20"}, "attempt": int64(1),
		"upgradeConfig":   map[string]any{"type": "OSD", "PDBForceDrainTimeout": int64(60), "namespace": "managed-upgrade-operator"},
		"upgradeStrategy": strategy,
	}
	if diff := cmp.Diff(want, object.Object["spec"]); diff != "" {
		t.Errorf("spec without a strategy (-want +got):\n%s", diff)
	}
	edit{"spec.upgradeStrategy", map[string]any{"windows": []any{window}, "stallTimeout": "1h"}}.apply(t, object.Object)
	if err := server.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	maps.Copy(strategy, map[string]any{"stallTimeout": "1h", "windows": []any{map[string]any{"cron": "0 22 * * 2", "duration": "4h", "location": "UTC"}}})
	if diff := cmp.Diff(want, object.Object["spec"]); diff != "" {
		t.Errorf("spec with a part of a strategy (-want +got):\n%s", diff)
	}
}

func condition(kind, status, reason, message string) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": time.Now().Add(-3 * time.Hour).UTC().Format(time.RFC3339)}
}

func clusters(total, initialized, partial, complete, failed, pending int64) map[string]any {
	return map[string]any{"total": total, "initialized": initialized, "partialUpgrade": partial, "complete": complete, "failed": failed, "pending": pending}
}

func cause(names ...any) map[string]any {
	return map[string]any{"type": "Failed", "reason": "ClusterVersionFailing", "message": "etcd is degraded", "count": int64(1), "clusters": names}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	const upgrade, run = "ManagedClustersUpgrade", "ClusterUpgradeRun"
	groups := func(n int) []any {
		return many(n, func(i int) any {
			group := clusters(1, 0, 0, 0, 0, 1)
			group["index"], group["name"] = int64(i+1), fmt.Sprint("group-", i)
			return group
		})
	}
	history := func(records ...any) map[string]any { return map[string]any{"history": records} }
	record := func(attempt int64) map[string]any { return map[string]any{"attempt": attempt, "phase": "Upgrading"} }
	actions := map[string]any{"total": int64(3), "applied": int64(3), "available": int64(2), "progressing": int64(1), "degraded": int64(0)}
	for name, tc := range map[string]struct {
		kind   string
		status map[string]any
		want   []string
	}{
		"empty": {kind: upgrade, status: map[string]any{}},
		"all fields": {kind: upgrade, status: map[string]any{
			"conditions": []any{condition("Admitting", "True", "Open", "")}, "observedGeneration": int64(1), "attempt": int64(1),
			"startTime": startTime, "completionTime": startTime, "nextTime": startTime, "preUpgradeActionSummary": actions, "postUpgradeActionSummary": actions,
			"canaryClustersSummery": clusters(1, 0, 0, 1, 0, 0), "clustersSummery": clusters(4, 1, 1, 1, 0, 1), "groups": groups(32), "causes": many(10, func(int) any { return cause("a", "b", "c") }),
		}},
		"33 groups":        {kind: upgrade, status: map[string]any{"groups": groups(33)}, want: []string{"status.groups: must have at most 32 items"}},
		"11 causes":        {kind: upgrade, status: map[string]any{"causes": many(11, func(int) any { return cause() })}, want: []string{"status.causes: must have at most 10 items"}},
		"4 names":          {kind: upgrade, status: map[string]any{"causes": []any{cause("a", "b", "c", "d")}}, want: []string{"status.causes[0].clusters: must have at most 3 items"}},
		"correct spelling": {kind: upgrade, status: map[string]any{"clustersSummary": clusters(0, 0, 0, 0, 0, 0)}, want: []string{`strict decoding error: unknown field "status.clustersSummary"`}},
		"no total":         {kind: upgrade, status: map[string]any{"clustersSummery": map[string]any{"initialized": int64(0), "partialUpgrade": int64(0), "complete": int64(0), "failed": int64(0), "pending": int64(0)}}, want: []string{"status.clustersSummery.total: Required value"}},
		"negative":         {kind: upgrade, status: map[string]any{"clustersSummery": clusters(-1, 0, 0, 0, 0, 0)}, want: []string{"status.clustersSummery.total: should be greater than or equal to 0"}},
		"lower-case time":  {kind: upgrade, status: map[string]any{"nextTime": "2027-03-02t21:00:00Z"}, want: []string{"status.nextTime: should match"}},

		"run, empty": {kind: run, status: map[string]any{}},
		"run, all fields": {kind: run, status: map[string]any{
			"conditions": []any{condition("Progressing", "True", "ClusterUpgraded", "")}, "observedGeneration": int64(1), "attempt": int64(1), "state": "PartialUpgrade", "reason": "Stalled",
			"message": "no progress", "startTime": startTime, "completionTime": startTime, "soakedUntil": startTime, "nextTime": startTime, "applied": true,
			"preUpgradeAction": map[string]any{"applied": true, "state": "Available"}, "postUpgradeAction": map[string]any{"state": "Progressing"}, "history": []any{record(2), record(1)},
		}},
		"run, unknown state":  {kind: run, status: map[string]any{"state": "Unknown"}, want: []string{`status.state: supported values: "NotStarted", "Initialized", "PartialUpgrade", "Complete", "Failed"`}},
		"run, attempt twice":  {kind: run, status: history(record(1), record(1)), want: []string{`status.history[1]: Duplicate value: {"attempt":1}`}},
		"run, 6 attempts":     {kind: run, status: history(many(6, func(i int) any { return record(int64(i + 1)) })...), want: []string{"status.history: must have at most 5 items"}},
		"run, two of release": {kind: run, status: history(map[string]any{"attempt": int64(2), "version": "4.12.0"}, map[string]any{"attempt": int64(1), "version": "4.12.0"})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := sample(t, tc.kind)
			object.SetName(fmt.Sprintf("status-%x", name))
			server.MustCreate(t, object)
			object.Object["status"] = tc.status
			crdtest.CompareRejections(t, tc.want, server.Status().Update(t.Context(), object, client.FieldValidation("Strict")))
			if tc.want == nil {
				if diff := cmp.Diff(any(tc.status), object.Object["status"]); diff != "" && len(tc.status) > 0 {
					t.Errorf("status (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestKubectlPrintsUpgrades(t *testing.T) {
	t.Parallel()
	object := sample(t, "ManagedClustersUpgrade")
	object.SetName("printed")
	server.MustCreate(t, object)
	header := []string{"NAME", "VERSION", "TOTAL", "COMPLETE", "IN PROGRESS", "FAILED", "PENDING", "ADMITTING", "AGE"}
	get := func(args ...string) [][]string {
		rows := devtest.ParseTable(server.RunKubectl(t, "", append([]string{"get", "mcu", "printed"}, args...)...))
		if len(rows) == 2 { // the age
			rows[1] = append(rows[1][:len(rows[1])-1-len(args)], rows[1][len(rows[1])-len(args):]...)
		}
		return rows
	}
	if diff := cmp.Diff([][]string{header, {"printed", "4.12.0"}}, get()); diff != "" {
		t.Errorf("before it is observed (-want +got):\n%s", diff)
	}
	server.MustUpdateStatus(t, object, map[string]any{
		"clustersSummery": clusters(1323, 10, 30, 184, 1, 1098),
		"conditions":      []any{condition("Admitting", "False", "CanaryFailed", "store-0002 failed: PreActionDegraded"), condition("Failed", "True", "CanaryFailed", "")},
	})
	want := [][]string{header, {"printed", "4.12.0", "1323", "184", "30", "1", "1098", "CanaryFailed"}}
	if diff := cmp.Diff(want, get()); diff != "" {
		t.Errorf("while it runs (-want +got):\n%s", diff)
	}
	want[0], want[1] = append(want[0], "MESSAGE"), append(want[1], "store-0002 failed: PreActionDegraded")
	if diff := cmp.Diff(want, get("--output=wide")); diff != "" {
		t.Errorf("all of it (-want +got):\n%s", diff)
	}
}

func TestKubectlPrintsAndSelectsRuns(t *testing.T) {
	t.Parallel()
	const home = "selecting"
	server.RunKubectl(t, "", "create", "namespace", home)
	for _, name := range []string{"complete", "failed"} {
		object := sample(t, "ClusterUpgradeRun")
		object.SetName(name)
		object.SetNamespace(home)
		server.MustCreate(t, object)
		server.MustUpdateStatus(t, object, map[string]any{
			"state": strings.ToUpper(name[:1]) + name[1:], "reason": "ClusterVersionFailing", "message": "etcd is degraded",
			"conditions": []any{condition("Progressing", "False", "ClusterUpgraded", "")},
		})
	}
	got := devtest.ParseTable(server.RunKubectl(t, "", "get", "cur", "--namespace="+home, "--field-selector=status.state=Failed", "--output=wide"))
	want := [][]string{
		{"NAME", "UPGRADE", "VERSION", "STATE", "STEP", "SINCE", "MESSAGE", "REASON", "CANARY", "GROUP"},
		{"failed", "mcu-upgrades", "4.12.0", "Failed", "ClusterUpgraded", "3h", "etcd is degraded", "ClusterVersionFailing", "true", "1"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("failed runs (-want +got):\n%s", diff)
	}
}

func TestExplainDescribesEachField(t *testing.T) {
	t.Parallel()
	server.CheckExplain(t, map[string]string{
		"mcu.spec.placement":                       "in addition to the clusters selected by",
		"mcu.spec.clusterVersion.version":          "for example 4.20.6",
		"mcu.spec.upgradeStrategy.maxConcurrency":  "at the same time",
		"mcu.spec.attempt":                         "retries failed clusters",
		"mcu.spec.preUpgradeAction.manifestWork":   "spec of a ManifestWork",
		"mcu.status.clustersSummery":               "counts all clusters by state",
		"cur.spec.outcome":                         "decided it at admission",
		"cur.status.soakedUntil":                   "the upgraded cluster becomes complete",
		"mcu.spec.clusterSelector.clusterSets":     "bound to the namespace",
		"mcu.spec.upgradeStrategy.stallTimeout":    "no progress",
		"mcu.spec.upgradeStrategy.canaryClusters":  "must be complete before any other cluster starts",
		"mcu.spec.upgradeStrategy.windows.isoWeek": "ISO 8601",
	})
}

// TestSamples_work_when_pasted has the API server check what users paste, without a change of other tests' objects.
func TestSamples_work_when_pasted(t *testing.T) {
	printed := server.RunKubectl(t, "", "apply", "--server-side=false", "--dry-run=server", "--validate=strict", "-f", "../../../deploy/samples/fleet", "--namespace=default")
	if strings.Contains(printed, "Warning") || !strings.Contains(printed, "(server dry run)") {
		t.Errorf("kubectl prints %s", printed)
	}
}
