// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/scenario"
	"github.com/managed-upgrade/managed-upgrade-operator/test/e2e/scenarios"
)

func TestScenarios_are_valid(t *testing.T) {
	t.Parallel()
	names, err := scenario.Names(scenarios.Files)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(names, "healthy-z") {
		t.Fatalf("healthy-z is not among %v", names)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := scenario.Load(scenarios.Files, name); err != nil {
				t.Error(err)
			}
		})
	}
}

const minimal = "name: story\ndescription: Something happens.\n"

func TestDecode_applies_defaults(t *testing.T) {
	t.Parallel()
	story, err := scenario.Decode("story.yaml", []byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	config := scenario.UpgradeConfig{Name: "example-upgrade-config", Type: "OSD", Version: "4.20.6", Channel: "stable-4.20"}
	if diff := cmp.Diff([]scenario.UpgradeConfig{config}, story.UpgradeConfigs); diff != "" {
		t.Errorf("UpgradeConfigs (-want +got):\n%s", diff)
	}
	expected := []scenario.ExpectedUpgrade{{Name: "example-upgrade-config", Phase: "Upgraded"}}
	if diff := cmp.Diff(expected, story.Expect.UpgradeConfigs); diff != "" {
		t.Errorf("expectations (-want +got):\n%s", diff)
	}
	if within := time.Duration(story.Expect.Within); within != 3*time.Minute {
		t.Errorf("within %s, want 3m", within)
	}
	if story.Cluster.Masters != 3 || story.Cluster.Workers != 3 || story.Cluster.Speed != 60 {
		t.Errorf("cluster: %+v", story.Cluster)
	}
}

func TestDecode_needs_no_UpgradeConfig(t *testing.T) {
	t.Parallel()
	story, err := scenario.Decode("story.yaml", []byte(minimal+"upgradeConfigs: []\n"))
	if err != nil || len(story.UpgradeConfigs) > 0 || len(story.Expect.UpgradeConfigs) > 0 {
		t.Errorf("got %+v, %v", story, err)
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		"":                               nil,
		" oc  update status ":            {"oc", "update", "status"},
		`oc patch x -p '{"a": "b"}'`:     {"oc", "patch", "x", "-p", `{"a": "b"}`},
		`oc --reason="it's reviewed" ''`: {"oc", "--reason=it's reviewed", ""},
	} {
		if got, err := scenario.Words(line); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v, want %q", line, got, err, want)
		}
	}
	if got, err := scenario.Words(`oc 'a`); err == nil {
		t.Errorf("accepted as %q", got)
	}
}

func TestDecode_defaults_to_highest_release(t *testing.T) {
	t.Parallel()
	story, err := scenario.Decode("story.yaml", []byte(minimal+"cluster: {releases: [{version: 4.20.9}, {version: 4.20.10}]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := story.UpgradeConfigs[0].Version; got != "4.20.10" {
		t.Errorf("got %s", got)
	}
}

func TestDecode_reports_errors_with_paths(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want []string
	}{
		"unknown field": {
			"cluster: {worker: 3}", []string{"story.yaml: cluster.worker: Invalid value: unknown field"},
		},
		"unknown field of a list item": {
			"rules: [{name: a, do: [{apiserver: stop}]}]", []string{"rules[0].do[0].apiserver: Invalid value: unknown field", "apiServer"},
		},
		"unknown fields and invalid values": {
			"cluster: {worker: 3, masters: -1, operators: [{name: a, takes: soon}]}\nexpect: {phase: Failed, within: 5, stableFor: -5s}\nupgradeConfigs: [{upgradeAt: 5s}]\nrules: [{name: a}]",
			[]string{
				"cluster.worker: Invalid value: unknown field", "cluster.masters: Invalid value: -1", "cluster.operators[0].takes: Invalid value",
				"expect.phase: Invalid value: unknown field", "expect.within: Invalid value", "expect.stableFor: Invalid value",
				"upgradeConfigs[0].upgradeAt: Invalid value", "rules[0].do: Required value",
			},
		},
		"MachineSet without a duration": {
			"cluster: {machineSets: [{name: a, installTakes: soon}]}", []string{`cluster.machineSets[0].installTakes: Invalid value: must be a duration such as "90s" or "1h30m", or "never"`},
		},
		"MachineSet names invalid and repeated": {
			"cluster: {machineSets: [{name: Worker A}, {name: a}, {name: a}]}", []string{"cluster.machineSets[0].name: Invalid value", "such as worker-a", "cluster.machineSets[2].name: Duplicate value"},
		},
		"string instead of a number": {
			"cluster: {workers: three}", []string{`cluster.workers: Invalid value: "string": must be a whole number`},
		},
		"number instead of a string": {
			"cluster: {version: 4.20}", []string{`cluster.version: Invalid value: "number": must be a string, in quotes if it could be something else`},
		},
		"mapping instead of a list": {
			"rules: {name: a}", []string{`rules: Invalid value: "mapping": must be a list`},
		},
		"string instead of a mapping": {
			"cluster: small", []string{`cluster: Invalid value: "string": must be a mapping`},
		},
		"string of any length": {
			"cluster: {channel: [" + strings.Repeat("x", 1000) + "]}", []string{`cluster.channel: Invalid value: "list": must be a string`},
		},
		"durations without a unit": {
			"rules: [{name: a, after: 5, do: [{wait: '5'}, {node: {name: a, rebootTakes: 5}}]}]\ncluster: {nodes: [{name: worker-0, rebootTakes: 5}]}",
			[]string{
				`rules[0].after: Invalid value: must be a duration such as "90s" or "1h30m", or "never"`, "rules[0].do[0].wait: Invalid value",
				"rules[0].do[1].node.rebootTakes: Invalid value", "cluster.nodes[0].rebootTakes: Invalid value",
			},
		},
		"offset without a sign": {
			"upgradeConfigs: [{upgradeAt: 5s}]", []string{`upgradeConfigs[0].upgradeAt: Invalid value: must be an offset such as "+5s" or "-1h"`},
		},
		"repeated key": {
			"cluster: {workers: 1, workers: 2}", []string{"workers", "already"},
		},
		"version invalid": {
			"cluster: {version: \"4.20\"}", []string{`cluster.version: Invalid value: "4.20": must be a semantic version, such as 4.20.6`},
		},
		"release repeated": {
			"cluster: {releases: [{version: 4.20.6}, {version: 4.20.6}]}", []string{`cluster.releases[1].version: Duplicate value: "4.20.6"`},
		},
		"node not in the cluster": {
			"cluster: {masters: 1, workers: 1, nodes: [{name: worker-1}]}", []string{`cluster.nodes[0].name: Unsupported value: "worker-1": supported values: "master-0", "worker-0"`},
		},
		"risk with an unknown answer": {
			"cluster: {releases: [{version: 4.20.6, risks: [{name: A, applies: perhaps}]}]}",
			[]string{`cluster.releases[0].risks[0].applies: Unsupported value: "perhaps": supported values: "yes", "no", "unknown"`},
		},
		"cluster version operator unknown": {
			"cluster: {cvo: actual}", []string{`cluster.cvo: Unsupported value: "actual": supported values: "simulated", "real"`},
		},
		"pools repeated and with nodes set twice": {
			"cluster: {workers: 2, pools: [{name: infra, nodes: 1}, {name: infra, nodes: 2}, {name: worker, nodes: 7}]}",
			[]string{`cluster.pools[1].name: Duplicate value: "infra"`, "cluster.pools[2].nodes: Invalid value: 7: must be left out: the field workers sets it"},
		},
		"operator configuration invalid": {
			"operator: {config: {upgradeWindow: soon}}", []string{"operator.config: ", "upgradeWindow"},
		},
		"operator replicas too many": {
			"operator: {replicas: 500}", []string{"operator.replicas: Invalid value: 500: must be 1 to 5"},
		},
		"expression with a syntax error": {
			"rules: [{name: a, for: {kind: Node}, when: object.status =, do: [{apiServer: stop}]}]", []string{"rules[0].when: ", "must be a CEL expression", "Syntax error"},
		},
		"expression of type int": {
			"expect: {never: [{for: {kind: Node}, that: size(object.a)}]}", []string{"expect.never[0].that: ", "it is of type int"},
		},
		"rule with a condition without objects": {
			"rules: [{name: a, when: object.a, do: [{apiServer: stop}]}]", []string{"rules[0].for: Required value: must select the objects"},
		},
		"rule without actions": {
			"rules: [{name: a}]", []string{"rules[0].do: Required value: must have at least one action"},
		},
		"action with two fields": {
			"rules: [{name: a, do: [{apiServer: stop, wait: 5s}]}]", []string{"rules[0].do[0]: Invalid value: must have exactly one of alertmanager, apiServer,"},
		},
		"action on the operator unknown": {
			"rules: [{name: a, do: [{operator: pause}]}]", []string{`rules[0].do[0].operator: Unsupported value: "pause": supported values: "kill", "killLeader", "restart", "start", "stop"`},
		},
		"action on Prometheus unknown": {
			"cluster: {monitoring: {}}\nrules: [{name: a, do: [{prometheus: kill}]}]", []string{`rules[0].do[0].prometheus: Unsupported value: "kill": supported values: "start", "stop"`},
		},
		"action on Alertmanager unknown": {
			"cluster: {monitoring: {}}\nrules: [{name: a, do: [{alertmanager: silence}]}]", []string{`rules[0].do[0].alertmanager: Unsupported value: "silence": supported values: "start", "stop"`},
		},
		"action on the receiver unknown": {
			"rules: [{name: a, do: [{receiver: kill}]}]", []string{`rules[0].do[0].receiver: Unsupported value: "kill": supported values: "start", "stop"`},
		},
		"action on etcd unknown": {
			"binary: true\nrules: [{name: a, do: [{etcd: pause}]}]", []string{`rules[0].do[0].etcd: Unsupported value: "pause": supported values: "kill", "start", "stop"`},
		},
		"action on an informer unknown": {
			"binary: true\nrules: [{name: a, do: [{informer: {name: A.b, break: it, response: OK}}]}]",
			[]string{
				`rules[0].do[0].informer.name: Invalid value: "A.b"`, `rules[0].do[0].informer.break: Unsupported value: "it": supported values: "connection", "certificate",`,
				`rules[0].do[0].informer.response: Unsupported value: "OK": supported values: "Success", "Failure", "Wait"`,
			},
		},
		"informer in virtual time": {
			"rules: [{name: a, do: [{informer: {name: mine, hang: true}}]}]", []string{"binary: Required value: rules[0].do[0]"},
		},
		"patch without an object": {
			"rules: [{name: a, do: [{patch: {with: {spec: {}}}}]}]", []string{"rules[0].do[0].patch.for: Required value: must select the object"},
		},
		"deletion of a CloudEvent": {
			"rules: [{name: a, for: {kind: CloudEvent}, do: [{delete: {kind: CloudEvent, name: a}}]}]", []string{"rules[0].do[0].delete: Forbidden: CloudEvents are read-only"},
		},
		"kind of an unknown API": {
			"rules: [{name: a, for: {kind: Gadget}, do: [{apiServer: stop}]}]", []string{"rules[0].for.apiVersion: Required value: must be set for kind Gadget"},
		},
		"check without an expression": {
			"rules: [{name: a, do: [{check: {for: {kind: Node}}}]}]", []string{"rules[0].do[0].check.that: Required value: must be a CEL expression"},
		},
		"command that is no command": {
			"rules: [{name: a, do: [{command: {run: reboot, prints: ['(']}}, {command: {run: oc 'x, lacks: ['['], within: 5}}]}]",
			[]string{
				`rules[0].do[0].command.run: Invalid value: "reboot": must be a command of oc`, `rules[0].do[0].command.prints[0]: Invalid value: "(": must be a regular expression`,
				`rules[0].do[1].command.run: Invalid value: "oc 'x": the quote ' is not closed`, `rules[0].do[1].command.lacks[0]: Invalid value`, "rules[0].do[1].command.within: Invalid value",
			},
		},
		"until without an expression": {
			"rules: [{name: a, do: [{until: {for: {kind: Node}}}]}]", []string{"rules[0].do[0].until.that: Required value: must be a CEL expression"},
		},
		"alert without a name": {
			"cluster: {monitoring: {alerts: [{labels: {severity: critical}}]}}", []string{"cluster.monitoring.alerts[0].alert: Required value: must be the name of an alert"},
		},
		"alert with its name in another field": {
			"cluster: {monitoring: {}}\nrules: [{name: a, do: [{fire: {name: Smoke}}]}]", []string{"rules[0].do[0].fire.name: Invalid value: unknown field"},
		},
		"alert as a string": {
			"cluster: {monitoring: {}}\nrules: [{name: a, do: [{fire: Smoke}]}]", []string{`rules.do.fire: Invalid value: "string": must be a mapping`},
		},
		"alert with invalid labels": {
			"cluster: {monitoring: {}}\nrules: [{name: a, do: [{fire: {alert: Smoke, labels: {a-b: c, alertstate: pending, severity: \"\"}}}]}]",
			[]string{
				`rules[0].do[0].fire.labels[a-b]: Invalid value: "a-b": must be the name of a label`,
				"rules[0].do[0].fire.labels[alertstate]: Forbidden: Prometheus sets it",
				"rules[0].do[0].fire.labels[severity]: Required value: must not be empty",
			},
		},
		"alerts and silences without monitoring": {
			"rules: [{name: a, for: {kind: Alert}, do: [{check: {for: {kind: Silence}, that: object.a}}]}]\nexpect: {never: [{for: {kind: Silence}, that: object.a}]}",
			[]string{"rules[0].for requires it", "rules[0].do[0] requires it", "expect.never[0].for requires it"},
		},
		"actions on monitoring without monitoring": {
			"rules: [{name: a, do: [{fire: {alert: Smoke}}, {resolve: Smoke}, {prometheus: stop}, {alertmanager: stop}]}]",
			[]string{
				"cluster.monitoring: Required value: rules[0].do[0] requires it; write monitoring: {}",
				"rules[0].do[1] requires it", "rules[0].do[2] requires it", "rules[0].do[3] requires it",
			},
		},
		"addresses without monitoring": {
			"operator: {config: {a: [\"${PROMETHEUS_URL}\"]}}", []string{"cluster.monitoring: Required value: operator.config requires it"},
		},
		"parts that do not exist in virtual time": {
			"cluster: {monitoring: {}}\noperator: {replicas: 2}\nrules: [{name: a, do: [{etcd: kill}]}]\nexpect: {notifications: [started]}",
			[]string{
				"binary: Required value: operator.replicas does not exist in virtual time: write binary: true",
				"binary: Required value: rules[0].do[0]",
			},
		},
		"notification type unknown": {
			"expect: {notifications: [done]}", []string{`expect.notifications[0]: Unsupported value: "done": supported values: "started", "delayed",`},
		},
		"expectation of an unknown UpgradeConfig": {
			"expect: {upgradeConfigs: [{name: other}]}", []string{`expect.upgradeConfigs[0].name: Not found: "other"`},
		},
		"condition status unknown": {
			"expect: {upgradeConfigs: [{conditions: {Succeeded: WindowMissed}}]}", []string{`expect.upgradeConfigs[0].conditions[Succeeded]: Invalid value: "WindowMissed": must be True, False or Unknown`},
		},
		"phase unknown": {
			"expect: {upgradeConfigs: [{phase: Done}]}", []string{`expect.upgradeConfigs[0].phase: Unsupported value: "Done": supported values: "New", "Pending",`},
		},
		"state unknown": {
			"expect: {clusterVersion: {state: Done}}", []string{`expect.clusterVersion.state: Unsupported value: "Done": supported values: "Completed", "Partial"`},
		},
		"UpgradeConfig name invalid": {
			"upgradeConfigs: [{name: My Upgrade}]", []string{`upgradeConfigs[0].name: Invalid value: "My Upgrade": must be lower case letters`},
		},
		"UpgradeConfig name repeated": {
			"upgradeConfigs: [{}, {}]", []string{`upgradeConfigs[1].name: Duplicate value: "example-upgrade-config"`},
		},
		"desired version invalid": {
			"upgradeConfigs: [{version: latest}]", []string{`upgradeConfigs[0].version: Invalid value: "latest": must be a semantic version`},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := scenario.Decode("story.yaml", []byte(minimal+test.text+"\n"))
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got  %v\nwant %s", err, want)
				}
			}
			for line := range strings.Lines(err.Error()) {
				if !strings.HasPrefix(line, "story.yaml: ") {
					t.Errorf("a line does not name the file: %s", line)
				}
			}
		})
	}
}

func TestDecode_requires_file_name_and_description(t *testing.T) {
	t.Parallel()
	_, err := scenario.Decode("folder/other.yaml", []byte("name: story\n"))
	if err == nil || !strings.Contains(err.Error(), "must be the name of the file: other") || !strings.Contains(err.Error(), "description: Required") {
		t.Errorf("got %v", err)
	}
}

func TestLoad_lists_scenarios_for_unknown_name(t *testing.T) {
	t.Parallel()
	_, err := scenario.Load(scenarios.Files, "healty-z")
	if err == nil || !strings.Contains(err.Error(), "healty-z: neither a scenario nor a file") || !strings.Contains(err.Error(), "healthy-z") {
		t.Errorf("got %v", err)
	}
}

func TestDocumentation_scenario_is_valid(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/devcluster.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```yaml\n")
	text, _, ended := strings.Cut(rest, "```")
	if !found || !ended {
		t.Fatal("the documentation has no scenario")
	}
	if _, err := scenario.Decode("superseded.yaml", []byte(text)); err != nil {
		t.Error(err)
	}
}

func TestConfigFile_contains_addresses(t *testing.T) {
	t.Parallel()
	got, err := scenario.ConfigFile(
		map[string]any{
			"alerts":  map[string]any{"url": scenario.PrometheusURL},
			"others":  []any{"at " + scenario.AlertmanagerURL + "/api", "at ${ELSEWHERE}"},
			"webhook": scenario.ReceiverURL,
		},
		map[string]string{scenario.PrometheusURL: "http://127.0.0.1:1", scenario.AlertmanagerURL: "http://127.0.0.1:2", scenario.ReceiverURL: "http://127.0.0.1:3"},
	)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"alerts":{"url":"http://127.0.0.1:1"},"apiVersion":"` + config.APIVersion + `","kind":"` + config.Kind + `",` +
		`"others":["at http://127.0.0.1:2/api","at ${ELSEWHERE}"],"webhook":"http://127.0.0.1:3"}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration file (-want +got):\n%s", diff)
	}
}

// maxBinary limits the number of scenarios that need the operator's binary. All others run in
// virtual time and take seconds.
const maxBinary = 17

func TestScenarios_most_run_in_virtual_time(t *testing.T) {
	t.Parallel()
	names, err := scenario.Names(scenarios.Files)
	if err != nil {
		t.Fatal(err)
	}
	var binary []string
	for _, name := range names {
		story, err := scenario.Load(scenarios.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		if story.Binary {
			binary = append(binary, name)
		}
	}
	if len(binary) > maxBinary {
		t.Errorf("%d of %d scenarios need the operator's binary, want at most %d: %v", len(binary), len(names), maxBinary, binary)
	}
}
