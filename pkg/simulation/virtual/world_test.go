// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package virtual_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/scenario"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/virtual"
	"github.com/managed-upgrade/managed-upgrade-operator/test/e2e/scenarios"
)

// cleanupTime is how long upgrades that have ended may take to leave nothing behind.
const cleanupTime = 2 * time.Minute

// runScenario runs a scenario. It returns the log of its rules and the unmet expectations, or what
// upgrades have left behind.
func runScenario(t *testing.T, story *scenario.Scenario) (log string, problems []string) {
	t.Helper()
	world, err := virtual.New(story, cli.RunSimulated)
	if err != nil {
		t.Fatal(err)
	}
	defer world.Stop()
	var out bytes.Buffer
	run, err := scenario.Start(t.Context(), story, world, scenario.RunOptions{Log: &out})
	if err != nil {
		t.Fatal(err)
	}
	if problems = run.Wait(t.Context()); len(problems) == 0 {
		problems = leftBehind(t, world)
	}
	return out.String(), problems
}

// leftBehind returns what upgrades have left behind.
func leftBehind(t *testing.T, world *virtual.World) []string {
	t.Helper()
	for end := world.Now().Add(cleanupTime); ; {
		err := world.Aftermath(t.Context())
		if err == nil {
			return nil
		}
		if !world.Now().Before(end) {
			return strings.Split(err.Error(), "\n")
		}
		if err := world.Step(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
}

func load(t *testing.T, name string) *scenario.Scenario {
	t.Helper()
	story, err := scenario.Load(scenarios.Files, name)
	if err != nil {
		t.Fatal(err)
	}
	return story
}

// TestWorld_runs_scenarios runs a few scenarios; make e2e runs all that do not need the binary.
func TestWorld_runs_scenarios(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"healthy-z", "operator-degraded-then-healed", "capacity-never-comes"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story := load(t, name)
			if _, problems := runScenario(t, story); len(problems) > 0 {
				t.Errorf("%s\nNot as expected:\n- %s", story.Description, strings.Join(problems, "\n- "))
			}
		})
	}
}

func TestWorld_reports_unmet_expectations(t *testing.T) {
	t.Parallel()
	story := load(t, "already-at-version")
	story.Expect.ClusterVersion.Version = "4.20.6"
	_, problems := runScenario(t, story)
	if len(problems) == 0 || !strings.Contains(problems[0], "ClusterVersion: is 4.20.5 Completed, want 4.20.6 Completed") {
		t.Errorf("got %q", problems)
	}
}

// TestWorld_ends_although_an_action_waits_in_vain stops a world in which a script still waits.
func TestWorld_ends_although_an_action_waits_in_vain(t *testing.T) {
	t.Parallel()
	story := load(t, "already-at-version")
	never := scenario.Statement{For: scenario.Object{Kind: "Node"}, That: "object.metadata.name == 'none'"}
	story.Rules = []scenario.Rule{{Name: "wait in vain", Times: 1, Do: []scenario.Action{{Until: &never}, {Delete: &scenario.Object{Kind: "Node", Name: "worker-0"}}}}}
	story.Expect.ClusterVersion.Version = "4.20.6"
	ended := make(chan []string, 1)
	go func() {
		_, problems := runScenario(t, story)
		ended <- problems
	}()
	select {
	case problems := <-ended:
		const want = "a rule waits until Node: object.metadata.name == 'none': does not hold"
		if !slices.Contains(problems, want) {
			t.Errorf("got %q, want also %q", problems, want)
		}
	case <-t.Context().Done():
	case <-time.After(time.Minute):
		t.Fatal("the run does not end")
	}
}

// maintenanceStory has two jobs of a config, whose status a rule sets: no operator runs.
const maintenanceStory = `
name: story
description: Another client sets the status of UpgradeJobs.
operator: {stopped: true}
maintenance:
  - {kind: UpgradeJob, metadata: {name: night-2}, spec: {startAfter: "${now+2h}", startBefore: "${now+3h}", config: {}}}
  - {kind: UpgradeJob, metadata: {name: night-1}, spec: {startAfter: "${now+1h}", startBefore: "${now+2h}", config: {}}}
rules:
  - name: the first one pauses
    for: {kind: UpgradeJob, name: night-1}
    when: timestamp(object.spec.startAfter) < now + duration("1h")
    do:
      - patch:
          status: true
          with:
            status:
              conditions: [{type: Paused, status: "True", reason: DelaySet, message: "", lastTransitionTime: "${now}"}]
              history: [{attempt: 1, phase: Paused, conditions: [{type: PoolsPaused, status: "True", reason: Done, message: ""}]}]
expect:
  within: 10s
  upgradeJobs:
    - config: night
      phase: Paused
      conditions: {Paused: True/DelaySet}
      steps: {PoolsPaused: "True"}
    - {name: none, gone: true}
`

func TestWorld_compares_UpgradeJobs(t *testing.T) {
	t.Parallel()
	decode := func(old, updated string) *scenario.Scenario {
		story, err := scenario.Decode("story.yaml", []byte(strings.Replace(maintenanceStory, old, updated, 1)))
		if err != nil {
			t.Fatal(err)
		}
		return story
	}
	if _, problems := runScenario(t, decode("", "")); len(problems) > 0 {
		t.Errorf("not as expected:\n- %s", strings.Join(problems, "\n- "))
	}
	for name, test := range map[string]struct{ old, updated, want string }{
		"phase":     {"phase: Paused\n      cond", "phase: Skipped\n      cond", `first UpgradeJob of night: phase is "Paused", want "Skipped"`},
		"condition": {"True/DelaySet}", "True/PausedByUser}", `first UpgradeJob of night: condition Paused is "True/DelaySet", want "True/PausedByUser"`},
		"step":      {`{PoolsPaused: "True"}`, `{PoolsPaused: "False"}`, `first UpgradeJob of night: step PoolsPaused is "True", want "False"`},
		"gone":      {"name: none", "name: night-2", "UpgradeJob night-2: is still there"},
		"absent":    {"name: none, gone: true", "name: none", "UpgradeJob none: does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, problems := runScenario(t, decode(test.old, test.updated)); !slices.Contains(problems, test.want) {
				t.Errorf("got %q, want %q", problems, test.want)
			}
		})
	}
}

// commandStory runs commands on a cluster that nothing changes.
const commandStory = `
name: story
description: An administrator runs a command.
updateStatus: true
operator: {stopped: true}
upgradeConfigs: []
rules:
  - name: look
    do: [{command: {run: oc update status, prints: ['^UP TO DATE  4\.20\.5 since'], lacks: ['^STUCK'], within: 10s}}]
expect: {within: 20s}
`

func TestWorld_runs_commands(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ old, updated, want string }{
		"as expected":            {"", "", ""},
		"another exit code":      {"lacks:", "exitCode: 10, lacks:", "exit code 0, want 10"},
		"lacks what it must":     {"UP TO DATE  4", "DONE  4", "does not match"},
		"prints what it may not": {"'^STUCK'", "'^UP TO DATE'", "matches"},
		"nothing to follow":      {"lacks:", "follow: true, lacks:", "prints no command to follow"},
		"another program":        {"oc update status", "oc reboot", `exit code 1`},
		"never run":              {"do: [", "after: 1h\n    do: [", `rule "look": its commands have not been run`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story, err := scenario.Decode("story.yaml", []byte(strings.Replace(commandStory, test.old, test.updated, 1)))
			if err != nil {
				t.Fatal(err)
			}
			_, problems := runScenario(t, story)
			if got := strings.Join(problems, "\n"); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestWorld_is_deterministic(t *testing.T) {
	t.Parallel()
	first, _ := runScenario(t, load(t, "operator-restarts"))
	second, _ := runScenario(t, load(t, "operator-restarts"))
	if diff := cmp.Diff(first, second); diff != "" || first == "" {
		t.Errorf("two runs differ (-first +second):\n%s", diff)
	}
}

func TestNew_rejects_scenarios_that_need_the_binary(t *testing.T) {
	t.Parallel()
	if _, err := virtual.New(load(t, "leader-dies"), nil); !errors.Is(err, virtual.ErrBinary) {
		t.Errorf("got %v, want %v", err, virtual.ErrBinary)
	}
}
