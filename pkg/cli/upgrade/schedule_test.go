// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
)

// requested returns the spec of an UpgradeConfig, or nil if it does not exist.
func requested(t *testing.T, cluster *clitest.FakeCluster, namespace, name string) *upgradev1alpha1.UpgradeConfigSpec {
	t.Helper()
	upgrade := &upgradev1alpha1.UpgradeConfig{}
	err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, upgrade)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return &upgrade.Spec
}

func TestSchedule(t *testing.T) {
	t.Parallel()
	spec := func(version, at string, risks ...string) *upgradev1alpha1.UpgradeConfigSpec {
		return &upgradev1alpha1.UpgradeConfigSpec{
			Type: "OSD", UpgradeAt: at, PDBForceDrainTimeout: new(int32(60)), Desired: upgradev1alpha1.Update{Version: version, Channel: "stable-4.20", AcceptedRisks: risks},
		}
	}
	scheduled := func(records ...history.Record) *upgradev1alpha1.UpgradeConfig {
		upgrade := clitest.AnUpgrade(records...)
		upgrade.Name, upgrade.Spec.Desired.AcceptedRisks = "managed-upgrade-config", []string{"Old"}
		return upgrade
	}
	running, paused := scheduled(clitest.CommencedRecord()), scheduled()
	paused.Spec.Paused = new(true)
	for name, tc := range map[string]struct {
		args   string
		stored *upgradev1alpha1.UpgradeConfig
		code   session.ExitCode
		says   string
		want   *upgradev1alpha1.UpgradeConfigSpec
	}{
		"soon":               {"--to 4.20.8", nil, session.ExitDone, "starts the upgrade to 4.20.8 at 2026-11-23 01:10 UTC", spec("4.20.8", "2026-11-23T01:10:00Z")},
		"tonight":            {"--to 4.20.8 --at 22:00", nil, session.ExitDone, "2026-11-23 22:00 UTC", spec("4.20.8", "2026-11-23T22:00:00Z")},
		"the newest":         {"--to latest --at +2h", nil, session.ExitDone, "to 4.20.8", spec("4.20.8", "2026-11-23T03:00:00Z")},
		"not offered":        {"--to 4.20.10", nil, session.ExitActionRequired, `channel "stable-4.20" does not offer 4.20.10`, nil},
		"with a risk":        {"--to 4.20.9", nil, session.ExitActionRequired, "SlowBoots (Nodes boot slowly. https://example.com)", nil},
		"with accepted risk": {"--to 4.20.9 --accept-risk SlowBoots", nil, session.ExitDone, "to 4.20.9", spec("4.20.9", "2026-11-23T01:10:00Z", "SlowBoots")},
		"another channel": {"--to 4.20.10 --channel fast-4.20", nil, session.ExitDone, "to 4.20.10", func() *upgradev1alpha1.UpgradeConfigSpec {
			s := spec("4.20.10", "2026-11-23T01:10:00Z")
			s.Desired.Channel = "fast-4.20"
			return s
		}()},
		"again":       {"--to 4.20.8", scheduled(clitest.FailedRecord()), session.ExitDone, "to 4.20.8", spec("4.20.8", "2026-11-23T01:10:00Z")},
		"in progress": {"--to 4.20.8", running, session.ExitActionRequired, "oc update watch upgrade/managed-upgrade-config", &running.Spec},
		"paused":      {"--to 4.20.8", paused, session.ExitActionRequired, "oc update resume", &paused.Spec},
		"no version":  {"", nil, session.ExitUsage, "--to", nil},
		"past":        {"--to 4.20.8 --at 2026-11-22T22:00:00Z", nil, session.ExitUsage, "past", nil},
		"no time":     {"--to 4.20.8 --at tonight", nil, session.ExitUsage, "--at", nil},
		"seconds":     {"--to 4.20.8 --force-drain-after 90s", nil, session.ExitUsage, "--force-drain-after", nil},
		"dry run":     {"--to 4.20.8 --dry-run=server", nil, session.ExitDone, session.DryRunNote, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var objects []client.Object
			if tc.stored != nil {
				objects = append(objects, tc.stored)
			}
			cluster := clitest.Offering(t, objects...)
			got := runOn(t, cluster, "", append([]string{"schedule", "-y"}, strings.Fields(tc.args)...)...)
			if got.Code != tc.code || !strings.Contains(got.Out+got.ErrOut, tc.says) {
				t.Errorf("%+v, want %d and %q", got, tc.code, tc.says)
			}
			if diff := cmp.Diff(tc.want, requested(t, cluster, session.ControllerNamespace, "managed-upgrade-config")); diff != "" {
				t.Errorf("requested (-want +got):\n%s", diff)
			}
		})
	}
}

// An UpgradeConfig is printed without confirmation and without making changes. It is created only after
// confirmation.
func TestSchedule_prints_or_asks(t *testing.T) {
	t.Parallel()
	cluster := clitest.Offering(t)
	for args, tc := range map[string]struct {
		answer string
		code   session.ExitCode
		says   string
	}{
		"schedule --to 4.20.8":                        {"", session.ExitUsage, "nothing was changed"},
		"schedule --to 4.20.8 --name a":               {"n\n", session.ExitFailed, "you did not agree"},
		"schedule --to 4.20.8 -n ops --at 23:30 -o x": {"", session.ExitUsage, "--output"},
	} {
		if got := runOn(t, cluster, tc.answer, strings.Fields(args)...); got.Code != tc.code || !strings.Contains(got.ErrOut, tc.says) {
			t.Errorf("%s: %+v", args, got)
		}
	}
	got := runOn(t, cluster, "", strings.Fields("schedule --to 4.20.8 -n ops --name night --at 23:30 --force-drain-after 2h -o yaml")...)
	var printed upgradev1alpha1.UpgradeConfig
	if err := yaml.UnmarshalStrict([]byte(got.Out), &printed); got.Code != session.ExitDone || err != nil || printed.Kind != "UpgradeConfig" || printed.Namespace != "ops" ||
		printed.Spec.UpgradeAt != "2026-11-23T23:30:00Z" || *printed.Spec.PDBForceDrainTimeout != 120 {
		t.Errorf("%v: %+v", err, got)
	}
	for _, name := range []string{"managed-upgrade-config", "a", "night"} {
		if made := requested(t, cluster, session.ControllerNamespace, name); made != nil {
			t.Errorf("%s was created: %+v", name, made)
		}
	}
	if got := runOn(t, cluster, "y\n", "schedule", "--to", "4.20.8"); got.Code != session.ExitDone || !strings.Contains(got.ErrOut, "from 4.20.6 to 4.20.8 at 2026-11-23 01:10 UTC") {
		t.Errorf("%+v", got)
	}
}

// A time of day refers to its next occurrence in the user's time zone, including across the change to
// daylight saving time.
func TestStartTime(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Europe/Zurich")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ now, at, want string }{
		{"2026-11-23T21:59:00+01:00", "22:00", "2026-11-23T21:00:00Z"},
		{"2026-11-23T22:00:00+01:00", "22:00", "2026-11-24T21:00:00Z"},
		{"2026-03-28T23:00:00+01:00", "22:00", "2026-03-29T20:00:00Z"},
		{"2026-11-30T23:00:00+01:00", "1:30", "2026-12-01T00:30:00Z"},
		{"2026-11-23T21:59:00+01:00", "+90m", "2026-11-23T22:29:00Z"},
		{"2026-11-23T21:59:00+01:00", "2026-11-28T22:00:00+01:00", "2026-11-28T21:00:00Z"},
		{"2026-11-23T21:59:00+01:00", "+-1h", ""},
		{"2026-11-23T21:59:00+01:00", "24:00", ""},
	} {
		now, err := time.Parse(time.RFC3339, tc.now)
		if err != nil {
			t.Fatal(err)
		}
		got, err := startTime(tc.at, now.In(zone))
		if printed := got.UTC().Format(time.RFC3339); (err != nil) != (tc.want == "") || err == nil && printed != tc.want {
			t.Errorf("%s after %s is %s, %v, want %s", tc.at, tc.now, printed, err, tc.want)
		}
	}
}
