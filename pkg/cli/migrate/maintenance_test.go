// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/stored"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// manifest returns an object in the API group.
func manifest(kind, rest string) string {
	return "apiVersion: managedupgrade.appuio.io/v1beta1\nkind: " + kind + "\nmetadata:\n  name: version\n  namespace: other\n" + strings.TrimPrefix(rest, "\n")
}

// configManifest returns an UpgradeConfig with an upgrade configuration.
func configManifest(rest string) string {
	return manifest("UpgradeConfig", "spec:\n  schedule: {cron: '0 22 * * 2', location: Europe/Zurich}\n  jobTemplate:\n    spec:\n      config:\n        "+
		strings.ReplaceAll(strings.TrimSpace(rest), "\n", "\n        ")+"\n")
}

// admit checks that the API server accepts a converted object and keeps all of its fields.
func admit(t *testing.T, document string) {
	t.Helper()
	if err := tryAdmission(t, document); err != nil {
		t.Errorf("%v\n%s", err, document)
	}
}

// tryAdmission returns an error unless the API server accepts an object and keeps all of its fields.
func tryAdmission(t *testing.T, document string) error {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(content); err != nil {
		t.Fatal(err)
	}
	typed := map[string]interface {
		client.Object
		LeftOut() []stored.Problem
	}{
		"UpgradeConfig": &maintenancev1beta1.UpgradeConfig{}, "UpgradeJob": &maintenancev1beta1.UpgradeJob{}, "UpgradeJobHook": &maintenancev1beta1.UpgradeJobHook{},
		"UpgradeSuspensionWindow": &maintenancev1beta1.UpgradeSuspensionWindow{}, "ClusterVersion": &maintenancev1beta1.ClusterVersion{},
	}[object.GetKind()]
	if typed == nil {
		return fmt.Errorf("kind %s does not exist", object.GetKind())
	}
	definitions, err := simulation.Definitions(os.DirFS("../../../deploy/crds"))
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range definitions {
		if definition.Kind() == object.GroupVersionKind() {
			if err := definition.Admit(nil, object); err != nil {
				return err
			}
		}
	}
	return stored.DecodeStrict(content, typed)
}

// Each spelling of the other controller is converted or noted as having no equivalent.
func TestMigrateMaintenance(t *testing.T) {
	t.Parallel()
	const window = "spec: {start: '2027-12-20T00:00:00Z', end: '2028-01-03T00:00:00Z', reason: '', configSelector: {}}\nstatus:\n  matchingConfigs: [{name: c}]\n"
	const hook = "spec:\n  events: [Create]\n  run: Next\n  selector: {}\n  template:\n    metadata: {creationTimestamp: null}\n    spec:\n      template:\n        metadata: {creationTimestamp: null}\n        spec:\n          serviceAccountName: notifier\n          containers: [{name: a, image: b}]\n"
	for name, tc := range map[string]struct {
		in            string
		want, without []string // in the output
		notes         []string
		code          session.ExitCode
	}{
		"maxSchedulingDelay": {
			in:      manifest("UpgradeConfig", "spec:\n  schedule: {cron: '0 22 * * 2', location: Local, isoWeek: ''}\n  maxSchedulingDelay: 2h\n  pinVersionWindow: 4h0m0s\n  successfulJobsHistoryLimit: 0\n  jobTemplate: {metadata: {creationTimestamp: null}, spec: {config: {}}}\n"),
			want:    []string{"pinVersionWindow: 4h\n", "location: UTC", "namespace: managed-upgrade-operator", "successfulJobsHistoryLimit: 100", "timeout: 1h"},
			without: []string{"maxSchedulingDelay", "creationTimestamp"}, notes: []string{"maxSchedulingDelay: not needed", "schedule.location: is UTC", "whenNoUpdate: RunHooks"},
		},
		"skipDegradedOperatorsCheck": {
			in:   configManifest("preUpgradeHealthChecks: {timeout: 1h, skipDegradedOperatorsCheck: true}\npostUpgradeHealthChecks: {timeout: 30m, skipDegradedOperatorsCheck: false}"),
			want: []string{"checkDegradedOperators: false", "timeout: 30m"}, without: []string{"skipDegraded"}, notes: []string{"critical alerts are checked"},
		},
		"nested matchLabels and delayMin alone": {
			in:   configManifest("upgradeTimeout: 10h\nmachineConfigPools:\n- matchLabels: {matchLabels: {name: night}, matchExpressions: [{key: k, operator: Exists}]}\n  delayUpgrade: {delayMin: 1h}\n- matchLabels: {matchLabels: {name: late}}\n  delayUpgrade: {delayMin: 2h, delayMax: 3h}\n- matchLabels: {matchLabels: {name: never}}"),
			want: []string{"delayMin: 1h\n", "delayMax: 10h", "delayMax: 4h", "name: night", "operator: Exists"}, without: []string{"never"},
			notes: []string{"counts from startAfter now: 4h", "is required: 10h", "machineConfigPools[2]: was left out"},
		},
		"all pools": {
			in:      configManifest("machineConfigPools:\n- matchLabels: {}\n  delayUpgrade: {delayMin: 1h}"),
			without: []string{"machineConfigPools"}, notes: []string{"machineConfigPools[0]: was left out"}, code: session.ExitActionRequired,
		},
		"pauseMachineConfigPoolsOnFailure": {
			in: configManifest("pauseMachineConfigPoolsOnFailure: {enabled: true, selector: {matchLabels: {name: night}}}"), want: []string{"name: night"}, without: []string{"enabled"},
		},
		"pauseMachineConfigPoolsOnFailure of all": {
			in: configManifest("pauseMachineConfigPoolsOnFailure: {enabled: true}"), want: []string{"operator: DoesNotExist"}, notes: []string{"selects all pools that the upgrade does not require"},
		},
		"pauseMachineConfigPoolsOnFailure disabled": {
			in: configManifest("pauseMachineConfigPoolsOnFailure: {enabled: false}"), without: []string{"pauseMachineConfigPoolsOnFailure"},
		},
		"drains": {
			in:   configManifest("upgradeTimeout: 2h") + "---\n" + manifest("NodeForceDrain", "spec: {nodeSelector: {}, nodeDrainGracePeriod: 90m, podForceDeleteGracePeriod: 0s}\n"),
			want: []string{"forceDrainAfter: 1h30m"}, without: []string{"NodeForceDrain"}, notes: []string{"is forceDrainAfter: 1h30m"},
		},
		"drains of some nodes": {
			in:    manifest("NodeForceDrain", "spec: {nodeSelector: {matchLabels: {a: b}}, nodeDrainGracePeriod: 90m, podForceDeleteGracePeriod: 5m}\n"),
			notes: []string{"some nodes or namespaces only", "podForceDeleteGracePeriod: has no equivalent"}, code: session.ExitActionRequired,
		},
		"unknown field": {
			in: configManifest("overrides: 5"), notes: []string{"overrides: has no equivalent"}, without: []string{"overrides"}, code: session.ExitActionRequired,
		},
		"job": {
			in:      manifest("UpgradeJob", "spec:\n  startAfter: '2027-03-02T21:00:00Z'\n  startBefore: '2027-03-02T22:00:00Z'\n  desiredVersion: {version: 4.20.6, image: '', force: false}\n  config: {upgradeTimeout: 2h}\n"),
			want:    []string{"version: 4.20.6"},
			without: []string{"force"},
		},
		"job that has ended": {
			in:    manifest("UpgradeJob", "spec: {startAfter: '2021-03-02T21:00:00Z', startBefore: '2021-03-02T22:00:00Z'}\nstatus:\n  conditions: [{type: Succeeded, status: 'True'}]\n"),
			notes: []string{"it has ended"}, without: []string{"UpgradeJob"},
		},
		"hook":              {in: manifest("UpgradeJobHook", hook), want: []string{"run: Next", "serviceAccountName: notifier"}, without: []string{"creationTimestamp"}, notes: []string{"hooks.serviceAccounts"}},
		"hook that has run": {in: manifest("UpgradeJobHook", hook+"status:\n  claimedBy: {name: job, uid: u}\n"), notes: []string{"it has run for UpgradeJob job"}, without: []string{"events"}},
		"window":            {in: manifest("UpgradeSuspensionWindow", window), want: []string{"configSelector: {}"}, without: []string{"matchingConfigs", "reason"}},
		"cluster version":   {in: manifest("ClusterVersion", "spec: {template: {spec: {channel: stable-4.20}}, overlays: [{from: '2027-03-02T21:00:00Z', overlay: {spec: {channel: stable-4.21}}}]}\n"), want: []string{"channel: stable-4.21"}},
		"unknown fields of a cluster version": {
			in:   manifest("ClusterVersion", "spec:\n  template: {metadata: {labels: {a: b}}, spec: {channel: stable-4.20, future: 1, desiredUpdate: {version: 4.20.6}}}\n  overlays: [{from: '2027-03-02T21:00:00Z', until: '2027-04-02T21:00:00Z', overlay: {channel: fast-4.21, spec: {channel: stable-4.21, desiredUpdate: {version: 4.21.1}}}}]\n"),
			want: []string{"channel: stable-4.20", "channel: stable-4.21", "future: 1"}, without: []string{"metadata: {labels", "a: b", "until", "fast-4.21", "desiredUpdate"},
			notes: []string{
				"spec.template.metadata: has no equivalent", "spec.overlays[0].until: has no equivalent", "spec.overlays[0].overlay.channel: has no equivalent",
				"spec.template.spec.desiredUpdate: was left out", "spec.overlays[0].overlay.spec.desiredUpdate: was left out", "spec.template.spec.future: is applied as it is",
			}, code: session.ExitActionRequired,
		},
		"unknown fields of a schedule, an entry, a list, and a window": {
			in: configManifest("preUpgradeHealthChecks: {excludeAlerts: [{alertname: A, severity: b}]}\nmachineConfigPools:\n- {matchLabels: {matchLabels: {name: never}}}\n- {matchLabels: {name: night}, nodes: 3, delayUpgrade: {startAfter: 1h, startBefore: 2h, jitter: 5m}}\npauseMachineConfigPoolsOnFailure: {enabled: false, after: 1h, selector: {}}") + "---\n" +
				strings.Replace(manifest("UpgradeSuspensionWindow", window), "spec: {", "spec: {repeat: yearly, ", 1),
			want: []string{"alertname: A", "startAfter: 1h"}, without: []string{"severity", "nodes", "jitter", "repeat"},
			notes: []string{
				"preUpgradeHealthChecks.excludeAlerts[0].severity: has no equivalent", "machineConfigPools[1].nodes: has no equivalent",
				"machineConfigPools[1].delayUpgrade.jitter: has no equivalent", "pauseMachineConfigPoolsOnFailure.after: has no equivalent", "spec.repeat: has no equivalent",
			}, code: session.ExitActionRequired,
		},
		"list":                    {in: "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: managedupgrade.appuio.io/v1beta1, kind: ClusterVersion, metadata: {name: version}, spec: {template: {spec: {}}}}\n", want: []string{"kind: ClusterVersion"}},
		"object of another group": {in: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", without: []string{"ConfigMap"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, "objects.yaml"), []byte(tc.in), 0o600); err != nil {
				t.Fatal(err)
			}
			got := run(t, "migrate-maintenance", "-f", folder)
			if got.Code != tc.code {
				t.Errorf("exit code %d, want %d", got.Code, tc.code)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.Out, want) {
					t.Errorf("%q is missing in:\n%s", want, got.Out)
				}
			}
			for _, not := range tc.without {
				if strings.Contains(got.Out, not) {
					t.Errorf("%q is in:\n%s", not, got.Out)
				}
			}
			for _, note := range tc.notes {
				if !strings.Contains(got.ErrOut, note) {
					t.Errorf("note %q is missing in:\n%s", note, got.ErrOut)
				}
			}
			for document := range strings.SplitSeq(got.Out, "---\n") {
				if strings.TrimSpace(document) != "" {
					admit(t, document)
				}
			}
		})
	}
	if got := run(t, "migrate-maintenance"); got.Code != session.ExitUsage {
		t.Errorf("without a source: exit code %d", got.Code)
	}
}
