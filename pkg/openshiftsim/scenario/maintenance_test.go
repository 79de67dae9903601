// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWithMoments(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 31, 23, 58, 30, 900_000_000, time.UTC)
	for text, want := range map[string]string{
		"plain": "plain", "${now}": "2026-12-31T23:58:30Z", "${now+90s}": "2027-01-01T00:00:00Z", "${now +90s}": "2027-01-01T00:00:00Z", "${now-1h}": "2026-12-31T22:58:30Z",
		"${cron}": "59 23 31 12 *", "${cron+29s}": "59 23 31 12 *", "${cron+2m}": "1 0 1 1 *", "${cron+29100ms}": "59 23 31 12 *",
		"from ${now} to ${now+1s}": "from 2026-12-31T23:58:30Z to 2026-12-31T23:58:31Z", "${HOME}": "${HOME}", "$(NAME)": "$(NAME)",
	} {
		if got := withMoments(text, now); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	nested := map[string]any{"a": []any{"${now}", int64(3), map[string]any{"b": "${now+1s}", "c": true}}}
	want := map[string]any{"a": []any{"2026-12-31T23:58:30Z", int64(3), map[string]any{"b": "2026-12-31T23:58:31Z", "c": true}}}
	if diff := cmp.Diff(want, withMoments(nested, now)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if nested["a"].([]any)[0] != "${now}" {
		t.Error("the original was changed")
	}
}

const maintenance = "name: story\ndescription: Something happens.\n"

func TestDecode_maintenance(t *testing.T) {
	t.Parallel()
	story, err := Decode("story.yaml", []byte(maintenance+"maintenance: [{kind: UpgradeJob, metadata: {name: a}}]\nexpect: {upgradeJobs: [{name: a}]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{{
		"apiVersion": "managedupgrade.appuio.io/v1beta1", "kind": "UpgradeJob", "metadata": map[string]any{"name": "a", "namespace": "managed-upgrade-operator"},
	}}
	if diff := cmp.Diff(want, story.Maintenance); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if len(story.UpgradeConfigs) != 0 || len(story.Expect.UpgradeConfigs) != 0 {
		t.Errorf("another upgrade is requested: %+v", story.UpgradeConfigs)
	}
	if diff := cmp.Diff([]ExpectedUpgradeJob{{ExpectedUpgrade: ExpectedUpgrade{Name: "a", Phase: "Upgraded"}}}, story.Expect.UpgradeJobs); diff != "" {
		t.Errorf("expectations (-want +got):\n%s", diff)
	}
}

func TestDecode_rejects_invalid_maintenance(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"other kind": {
			"maintenance: [{kind: Job, metadata: {name: a}}]",
			`maintenance[0].kind: Unsupported value: "Job": supported values: "ClusterVersion", "UpgradeConfig", "UpgradeJob"`,
		},
		"other group": {
			"maintenance: [{apiVersion: upgrade.managed.openshift.io/v1alpha1, kind: UpgradeConfig, metadata: {name: a}}]",
			`maintenance[0].apiVersion: Unsupported value`,
		},
		"no name":         {"maintenance: [{kind: UpgradeJob}]", "maintenance[0].metadata.name: Required value"},
		"invalid moment":  {"maintenance: [{kind: UpgradeJob, metadata: {name: a}, spec: {startAfter: '${now+5}'}}]", `maintenance[0].spec.startAfter: Invalid value: "${now+5}": must be a time such as`},
		"moment in patch": {"rules: [{name: a, do: [{patch: {for: {kind: Node, name: a}, with: {a: '${cron+x}'}}}]}]", `with.a: Invalid value: "${cron+x}"`},
		"unknown phase":   {"expect: {upgradeJobs: [{name: a, phase: Done}]}", `expect.upgradeJobs[0].phase: Unsupported value: "Done"`},
		"name and config": {"expect: {upgradeJobs: [{name: a, config: b}]}", "expect.upgradeJobs[0]: Invalid value: must have exactly one of config, name"},
		"condition":       {"expect: {upgradeJobs: [{name: a, conditions: {Succeeded: Maybe}}]}", "expect.upgradeJobs[0].conditions"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Decode("story.yaml", []byte(maintenance+test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want %s", err, test.want)
			}
		})
	}
}
