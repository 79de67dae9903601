// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package v1beta1_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/devtest"
)

// With both groups installed, each word resolves to a definite kind. Texts of the operator must qualify the kinds of
// upgrade.managed.openshift.io.
func TestKubectlResolvesNames(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"upgradeconfig":  "upgradeconfigs.managedupgrade.appuio.io",
		"upgradeconfigs": "upgradeconfigs.managedupgrade.appuio.io",
		"upgrade":        "upgradeconfigs.upgrade.managed.openshift.io",
		"upgradeconfigs.upgrade.managed.openshift.io": "upgradeconfigs.upgrade.managed.openshift.io",
		"clusterversion":  "clusterversions.config.openshift.io",
		"clusterversions": "clusterversions.config.openshift.io",
		"mcv":             "clusterversions.managedupgrade.appuio.io",
		"uc":              "upgradeconfigs.managedupgrade.appuio.io",
		"uj":              "upgradejobs.managedupgrade.appuio.io",
		"upgradejob":      "upgradejobs.managedupgrade.appuio.io",
		"ujh":             "upgradejobhooks.managedupgrade.appuio.io",
		"usw":             "upgradesuspensionwindows.managedupgrade.appuio.io",
	} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			printed, err := server.Kubectl(t.Context(), "get", word, "no-such-object").CombinedOutput()
			if err == nil || !strings.Contains(string(printed), want+` "no-such-object" not found`) {
				t.Errorf("kubectl get %s: %v: %s, want %s", word, err, printed, want)
			}
		})
	}
}

func TestKubectlListsTheCategory(t *testing.T) {
	t.Parallel()
	got := strings.Fields(server.RunKubectl(t, "", "api-resources", "--categories=maintenance", "--output=name"))
	slices.Sort(got)
	want := []string{
		"clusterversions.managedupgrade.appuio.io", "upgradeconfigs.managedupgrade.appuio.io", "upgradejobhooks.managedupgrade.appuio.io",
		"upgradejobs.managedupgrade.appuio.io", "upgradesuspensionwindows.managedupgrade.appuio.io",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds of the category (-want +got):\n%s", diff)
	}
}

func TestKubectlPrintsJobs(t *testing.T) {
	t.Parallel()
	object := named(t, "UpgradeJob", "cluster-upgrade-1805230800-3f9c2ab")
	for _, e := range []edit{
		{"spec.startAfter", "2027-03-16T21:00:00Z"}, {"spec.startBefore", "2027-03-16T22:00:00Z"}, {"spec.desiredVersion.version", "4.20.7"},
	} {
		e.apply(t, object.Object)
	}
	server.MustCreate(t, object)
	got := devtest.ParseTable(server.RunKubectl(t, "", "get", "upgradejobs", object.GetName()))
	want := [][]string{{"NAME", "VERSION", "PHASE", "STEP", "START", "SINCE", "MESSAGE"}, {object.GetName(), "4.20.7", "2027-03-16T21:00:00Z"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("before it is observed (-want +got):\n%s", diff)
	}
	server.MustUpdateStatus(t, object, map[string]any{
		"history": []any{record(2, map[string]any{"phase": "Paused"}), record(1, map[string]any{"phase": "Failed"})},
		"conditions": []any{map[string]any{
			"type": "Progressing", "status": "True", "reason": "DelayedPoolsUpdated", "message": "pool night is released at 2027-03-16T22:00:00Z",
			"lastTransitionTime": time.Now().Add(-3 * time.Hour).UTC().Format(time.RFC3339),
		}},
	})
	want[1] = []string{object.GetName(), "4.20.7", "Paused", "DelayedPoolsUpdated", "2027-03-16T21:00:00Z", "3h", "pool night is released at 2027-03-16T22:00:00Z"}
	got = devtest.ParseTable(server.RunKubectl(t, "", "get", "upgradejobs", object.GetName()))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("while it is paused (-want +got):\n%s", diff)
	}
}

func TestKubectlPrintsConfigs(t *testing.T) {
	t.Parallel()
	object := named(t, "UpgradeConfig", "printed")
	server.MustCreate(t, object)
	args := []string{"get", "upgradeconfigs.managedupgrade.appuio.io", "printed"}
	want := [][]string{{"NAME", "CRON", "WEEK", "LOCATION", "SUSPENDED", "NEXT", "LAST"}, {"printed", "0 22 * * 2", "@odd", "Europe/Zurich", "false"}}
	if diff := cmp.Diff(want, devtest.ParseTable(server.RunKubectl(t, "", args...))); diff != "" {
		t.Errorf("before it is observed (-want +got):\n%s", diff)
	}
	server.MustUpdateStatus(t, object, map[string]any{
		"nextPossibleSchedules": []any{map[string]any{"time": "2027-03-30T20:00:00Z"}, map[string]any{"time": "2027-04-13T20:00:00Z"}},
		"lastSlot":              map[string]any{"time": "2027-03-16T21:00:00Z", "result": "JobCreated"},
	})
	want[1] = append(want[1], "2027-03-30T20:00:00Z", "JobCreated")
	if diff := cmp.Diff(want, devtest.ParseTable(server.RunKubectl(t, "", args...))); diff != "" {
		t.Errorf("afterwards (-want +got):\n%s", diff)
	}
}

func TestKubectlPrintsOtherKinds(t *testing.T) {
	t.Parallel()
	const home = "printing"
	server.RunKubectl(t, "", "create", "namespace", home)
	conditions := func(kind string) []any {
		return []any{map[string]any{"type": kind, "status": "True", "reason": "AsExpected", "message": "fine", "lastTransitionTime": at}}
	}
	for kind, tc := range map[string]struct {
		name, resource string
		status         map[string]any
		want           [][]string
	}{
		"ClusterVersion": {
			"version", "mcv",
			map[string]any{"current": map[string]any{"spec": map[string]any{"channel": "stable-4.12"}}, "overlayApplied": at, "conditions": conditions("Synced")},
			[][]string{{"NAME", "CHANNEL", "OVERLAY", "SYNCED", "MESSAGE"}, {"version", "stable-4.12", at, "True", "fine"}},
		},
		"UpgradeJobHook": {
			"notify", "ujh",
			map[string]any{"claimedBy": map[string]any{"name": "job"}, "conditions": conditions("Accepted")},
			[][]string{{"NAME", "EVENTS", "RUN", "ON FAILURE", "CLAIMED BY", "ACCEPTED"}, {"notify", `["Create","Start","Finish","Success","Failure"]`, "Next", "Ignore", "job", "True"}},
		},
		"UpgradeSuspensionWindow": {
			"holidays", "usw",
			map[string]any{"matchingConfigs": []any{"cluster-upgrade"}, "conditions": conditions("Accepted")},
			[][]string{{"NAME", "START", "END", "REASON", "ACCEPTED"}, {"holidays", "2027-12-20T00:00:00+01:00", "2028-01-03T00:00:00+01:00", "No maintenance over the holidays", "True"}},
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			object := named(t, kind, tc.name)
			object.SetNamespace(home)
			server.MustCreate(t, object)
			server.MustUpdateStatus(t, object, tc.status)
			if diff := cmp.Diff(tc.want, devtest.ParseTable(server.RunKubectl(t, "", "get", tc.resource, tc.name, "--namespace", home))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestKubectlAppliesEachSample(t *testing.T) {
	t.Parallel()
	const home = "samples"
	server.RunKubectl(t, "", "create", "namespace", home)
	files, err := filepath.Glob(filepath.Join(samplesFolder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < len(samples) {
		t.Fatalf("only %d samples", len(files))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, side := range []string{"--server-side=false", "--server-side"} {
				printed := server.RunKubectl(t, string(data), "apply", "--filename=-", "--validate=strict", "--namespace", home, "--force-conflicts="+map[bool]string{true: "true", false: "false"}[side == "--server-side"], side)
				if strings.Contains(printed, "Warning") {
					t.Errorf("kubectl apply %s prints %s", side, printed)
				}
			}
		})
	}
}

func TestKubectlExplainsEachSpec(t *testing.T) {
	t.Parallel()
	server.CheckExplain(t, map[string]string{
		"uc.spec.schedule.cron":                               "for 22:00 on Tuesdays",
		"uc.spec.schedule.isoWeek":                            "@odd",
		"uc.spec.pinVersionWindow":                            "its version pinned",
		"uj.spec.startBefore":                                 "is skipped",
		"uj.spec.config.machineConfigPools.delayUpgrade":      "paused before the upgrade commences",
		"uj.spec.config.preUpgradeHealthChecks.customQueries": "must return no sample",
		"uj.status.history":                                   "one entry per attempt",
		"ujh.spec.template.spec":                              "JobSpec of batch/v1",
		"usw.spec.configSelector":                             "If it is not set, no UpgradeConfig is selected",
		"mcv.spec.template.spec":                              "desiredUpdate is ignored",
	})
}
