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
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/scenario"
	"github.com/managed-upgrade/managed-upgrade-operator/test/e2e/scenarios"
)

func TestEveryEmbeddedScenarioIsValid(t *testing.T) {
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

func TestWhatAScenarioLeavesOut(t *testing.T) {
	t.Parallel()
	story, err := scenario.Decode("story.yaml", []byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	config := scenario.UpgradeConfig{Name: "example-upgrade-config", Type: "OSD", Version: "4.20.6", Channel: "stable-4.20"}
	if diff := cmp.Diff([]scenario.UpgradeConfig{config}, story.UpgradeConfigs); diff != "" {
		t.Errorf("UpgradeConfigs (-want +got):\n%s", diff)
	}
	expected := []scenario.ExpectedUpgradeConfig{{Name: "example-upgrade-config", Phase: "Upgraded"}}
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

func TestTheDesiredVersionIsTheHighestRelease(t *testing.T) {
	t.Parallel()
	story, err := scenario.Decode("story.yaml", []byte(minimal+"cluster: {releases: [{version: 4.20.9}, {version: 4.20.10}]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := story.UpgradeConfigs[0].Version; got != "4.20.10" {
		t.Errorf("got %s", got)
	}
}

func TestWhatIsWrongWithAScenarioIsSaidWithItsPlaceAndWhatWouldBeRight(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want []string
	}{
		"an unknown field": {
			"cluster: {worker: 3}", []string{"story.yaml: cluster.worker: there is no such field; there are channel, cvo, machineSets, masters, monitoring, nodes,"},
		},
		"an unknown field of a list's element": {
			"rules: [{name: a, do: [{apiserver: stop}]}]", []string{"rules[0].do[0].apiserver: there is no such field", "apiServer"},
		},
		"MachineSets that cannot be": {
			"cluster: {machineSets: [{name: a, installTakes: soon}]}", []string{`cluster.machineSets[0].installTakes: "soon" is not a duration`},
		},
		"MachineSets of no name, or of the same one": {
			"cluster: {machineSets: [{name: Worker A}, {name: a}, {name: a}]}", []string{"cluster.machineSets[0].name: Invalid value", "such as worker-a", "cluster.machineSets[2].name: Duplicate value"},
		},
		"a text for a number": {
			"cluster: {workers: three}", []string{`cluster.workers: is "three", must be a whole number`},
		},
		"a number for a text": {
			"cluster: {version: 4.20}", []string{`cluster.version: is 4.2, must be a text (numbers and true or false in quotes)`},
		},
		"a mapping for a list": {
			"rules: {name: a}", []string{`rules: is {"name":"a"}, must be a list`},
		},
		"a text for a mapping": {
			"cluster: small", []string{`cluster: is "small", must be a mapping with channel,`},
		},
		"a duration without a unit": {
			"rules: [{name: a, after: 5, do: [{apiServer: stop}]}]", []string{`rules[0].after: 5 is not a duration: write it like "90s", "1h30m" or "never"`},
		},
		"an offset without a sign": {
			"upgradeConfigs: [{upgradeAt: 5s}]", []string{`upgradeConfigs[0].upgradeAt: "5s" is not an offset: write it like "+5s" or "-1h"`},
		},
		"a key that is there twice": {
			"cluster: {workers: 1, workers: 2}", []string{"workers", "already"},
		},
		"several things at once": {
			"cluster: {worker: 3}\nexpect: {phase: Failed}", []string{"cluster.worker: there", "expect.phase: there"},
		},
		"a version that is none": {
			"cluster: {version: \"4.20\"}", []string{`cluster.version: Invalid value: "4.20": must be a semantic version of three numbers, such as 4.20.6`},
		},
		"a release that is there twice": {
			"cluster: {releases: [{version: 4.20.6}, {version: 4.20.6}]}", []string{`cluster.releases[1].version: Duplicate value: "4.20.6"`},
		},
		"a node that the cluster does not have": {
			"cluster: {masters: 1, workers: 1, nodes: [{name: worker-1}]}", []string{`cluster.nodes[0].name: Unsupported value: "worker-1": supported values: "master-0", "worker-0"`},
		},
		"an answer that is none": {
			"cluster: {releases: [{version: 4.20.6, risks: [{name: A, applies: perhaps}]}]}",
			[]string{`cluster.releases[0].risks[0].applies: Unsupported value: "perhaps": supported values: "yes", "no", "unknown"`},
		},
		"a cluster version operator that does not exist": {
			"cluster: {cvo: actual}", []string{`cluster.cvo: Unsupported value: "actual": supported values: "simulated", "real"`},
		},
		"a configuration that the operator would refuse": {
			"operator: {config: {upgradeWindow: soon}}", []string{"operator.config: ", "upgradeWindow"},
		},
		"an expression that does not compile": {
			"rules: [{name: a, for: {kind: Node}, when: object.status =, do: [{apiServer: stop}]}]", []string{"rules[0].when: ", "must be a CEL expression", "Syntax error"},
		},
		"an expression that is a number": {
			"expect: {never: [{for: {kind: Node}, that: size(object.a)}]}", []string{"expect.never[0].that: ", "it is of type int"},
		},
		"a rule about nothing": {
			"rules: [{name: a, when: object.a, do: [{apiServer: stop}]}]", []string{"rules[0].for: Required value: name the objects"},
		},
		"a rule that does nothing": {
			"rules: [{name: a}]", []string{"rules[0].do: Required value: say what to do"},
		},
		"an action that is two": {
			"rules: [{name: a, do: [{apiServer: stop, wait: 5s}]}]", []string{"rules[0].do[0]: Invalid value: must have exactly one of alertmanager, apiServer, apply, check, configure, delete,"},
		},
		"an action that is unknown": {
			"rules: [{name: a, do: [{operator: pause}]}]", []string{`rules[0].do[0].operator: Unsupported value: "pause": supported values: "kill", "killLeader", "restart", "start", "stop"`},
		},
		"a patch of nothing": {
			"rules: [{name: a, do: [{patch: {with: {spec: {}}}}]}]", []string{"rules[0].do[0].patch.for: Required value: name the object"},
		},
		"a kind whose API nobody knows": {
			"rules: [{name: a, for: {kind: Gadget}, do: [{apiServer: stop}]}]", []string{"rules[0].for.apiVersion: Required value: of kind Gadget nobody knows it by heart"},
		},
		"an expectation of an object that is not applied": {
			"expect: {upgradeConfigs: [{name: other}]}", []string{`expect.upgradeConfigs[0].name: Not found: "other"`},
		},
		"a status that is none": {
			"expect: {upgradeConfigs: [{conditions: {Succeeded: WindowMissed}}]}", []string{`expect.upgradeConfigs[0].conditions[Succeeded]: Invalid value: "WindowMissed": must be True, False or Unknown`},
		},
		"an alert without a name": {
			"cluster: {monitoring: {alerts: [{labels: {severity: critical}}]}}", []string{"cluster.monitoring.alerts[0].alert: Required value: name the alert"},
		},
		"an alert that has one in another field": {
			"cluster: {monitoring: {}}\nrules: [{name: a, do: [{fire: {name: Smoke}}]}]", []string{"rules[0].do[0].fire.name: there is no such field; there are alert, labels"},
		},
		"an alert that is a text": {
			"cluster: {monitoring: {}}\nrules: [{name: a, do: [{fire: Smoke}]}]", []string{`rules[0].do[0].fire: is "Smoke", must be a mapping with alert, labels`},
		},
		"labels that no alert can have": {
			"cluster: {monitoring: {}}\nrules: [{name: a, do: [{fire: {alert: Smoke, labels: {a-b: c, alertstate: pending, severity: \"\"}}}]}]",
			[]string{
				`rules[0].do[0].fire.labels[a-b]: Invalid value: "a-b": must be the name of a label`,
				"rules[0].do[0].fire.labels[alertstate]: Forbidden: Prometheus sets it itself",
				"rules[0].do[0].fire.labels[severity]: Required value: an empty label is as none",
			},
		},
		"something that cannot be done to Prometheus": {
			"cluster: {monitoring: {}}\nrules: [{name: a, do: [{prometheus: kill}]}]", []string{`rules[0].do[0].prometheus: Unsupported value: "kill": supported values: "start", "stop"`},
		},
		"something that cannot be done to Alertmanager": {
			"cluster: {monitoring: {}}\nrules: [{name: a, do: [{alertmanager: silence}]}]", []string{`rules[0].do[0].alertmanager: Unsupported value: "silence": supported values: "start", "stop"`},
		},
		"something that cannot be done to the receiver": {
			"rules: [{name: a, do: [{receiver: kill}]}]", []string{`rules[0].do[0].receiver: Unsupported value: "kill": supported values: "start", "stop"`},
		},
		"a check of nothing": {
			"rules: [{name: a, do: [{check: {for: {kind: Node}}}]}]", []string{"rules[0].do[0].check.that: Required value: give a CEL expression"},
		},
		"a notification of a type that does not exist": {
			"expect: {notifications: [done]}", []string{`expect.notifications[0]: Unsupported value: "done": supported values: "started", "delayed",`},
		},
		"parts that virtual time does not have": {
			"cluster: {monitoring: {}}\noperator: {replicas: 2}\nrules: [{name: a, do: [{etcd: kill}]}]\nexpect: {notifications: [started]}",
			[]string{
				"binary: Required value: cluster.monitoring does not exist in virtual time: write binary: true",
				"binary: Required value: operator.replicas", "binary: Required value: rules[0].do[0]", "binary: Required value: expect.notifications",
			},
		},
		"something that cannot be done to etcd": {
			"binary: true\nrules: [{name: a, do: [{etcd: pause}]}]", []string{`rules[0].do[0].etcd: Unsupported value: "pause": supported values: "kill", "start", "stop"`},
		},
		"an until of nothing": {
			"rules: [{name: a, do: [{until: {for: {kind: Node}}}]}]", []string{"rules[0].do[0].until.that: Required value: give a CEL expression"},
		},
		"a change of what can only be looked at": {
			"rules: [{name: a, for: {kind: CloudEvent}, do: [{delete: {kind: CloudEvent, name: a}}]}]", []string{"rules[0].do[0].delete: Forbidden: CloudEvents can be looked at, and not changed"},
		},
		"alerts and silences without monitoring": {
			"rules: [{name: a, for: {kind: Alert}, do: [{check: {for: {kind: Silence}, that: object.a}}]}]\nexpect: {never: [{for: {kind: Silence}, that: object.a}]}",
			[]string{"rules[0].for wants one", "rules[0].do[0] wants one", "expect.never[0].for wants one"},
		},
		"alerts without monitoring": {
			"rules: [{name: a, do: [{fire: {alert: Smoke}}, {resolve: Smoke}, {prometheus: stop}, {alertmanager: stop}]}]",
			[]string{
				"cluster.monitoring: Required value: rules[0].do[0] wants one: write monitoring: {}",
				"rules[0].do[1] wants one", "rules[0].do[2] wants one", "rules[0].do[3] wants one",
			},
		},
		"addresses without monitoring": {
			"operator: {config: {a: [\"${PROMETHEUS_URL}\"]}}", []string{"cluster.monitoring: Required value: operator.config wants one"},
		},
		"a phase that is none": {
			"expect: {upgradeConfigs: [{phase: Done}]}", []string{`expect.upgradeConfigs[0].phase: Unsupported value: "Done": supported values: "New", "Pending",`},
		},
		"a state that is none": {
			"expect: {clusterVersion: {state: Done}}", []string{`expect.clusterVersion.state: Unsupported value: "Done": supported values: "Completed", "Partial"`},
		},
		"an object's name that is none": {
			"upgradeConfigs: [{name: My Upgrade}]", []string{`upgradeConfigs[0].name: Invalid value: "My Upgrade": must be lower case letters`},
		},
		"a desired version that is none": {
			"upgradeConfigs: [{version: latest}]", []string{`upgradeConfigs[0].version: Invalid value: "latest": must be a semantic version`},
		},
		"more operators than a laptop runs": {
			"operator: {replicas: 500}", []string{"operator.replicas: Invalid value: 500: must be 1 to 5"},
		},
		"pools that are there twice, or whose nodes are": {
			"cluster: {workers: 2, pools: [{name: infra, nodes: 1}, {name: infra, nodes: 2}, {name: worker, nodes: 7}]}",
			[]string{`cluster.pools[3].name: Duplicate value: "infra"`, "cluster.pools[1].nodes: Invalid value: 7: must be left out: the number of workers says it"},
		},
		"a text that has no end": {
			"cluster: " + strings.Repeat("x", 1000), []string{`cluster: is "` + strings.Repeat("x", 99) + "…, must be a mapping with channel,"},
		},
		"two objects of one name": {
			"upgradeConfigs: [{}, {}]", []string{`upgradeConfigs[1].name: Duplicate value: "example-upgrade-config"`},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := scenario.Decode("story.yaml", []byte(minimal+test.text+"\n"))
			if err == nil {
				t.Fatal("it was accepted")
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

func TestAScenarioHasTheNameOfItsFileAndADescription(t *testing.T) {
	t.Parallel()
	_, err := scenario.Decode("folder/other.yaml", []byte("name: story\n"))
	if err == nil || !strings.Contains(err.Error(), "must be the name of the file: other") || !strings.Contains(err.Error(), "description: Required") {
		t.Errorf("got %v", err)
	}
}

func TestAScenarioThatIsNotThereIsToldTogetherWithThoseThatAre(t *testing.T) {
	t.Parallel()
	_, err := scenario.Load(scenarios.Files, "healty-z")
	if err == nil || !strings.Contains(err.Error(), "healty-z: there is neither") || !strings.Contains(err.Error(), "healthy-z") {
		t.Errorf("got %v", err)
	}
}

func TestTheScenarioInTheDocumentationIsValid(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/devcluster.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```yaml\n")
	text, _, ended := strings.Cut(rest, "```")
	if !found || !ended {
		t.Fatal("there is no scenario in the documentation")
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

// maxBinary is the number of scenarios that may need the operator's program: the others run in virtual
// time, within seconds.
const maxBinary = 25

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
		t.Errorf("%d of %d scenarios need the operator's program, want at most %d: %v", len(binary), len(names), maxBinary, binary)
	}
}
