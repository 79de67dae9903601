// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/alerting"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/machineconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
)

func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := New()
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func TestCommand_errors(t *testing.T) {
	empty := t.TempDir()
	broken := filepath.Join(empty, "broken.yaml")
	if err := os.WriteFile(broken, []byte("name: broken\ndescription: It is.\nexpekt: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args []string
		want []string
	}{
		"an unknown command":               {[]string{"upp"}, []string{`unknown command "upp"`}},
		"missing scenario":                 {[]string{"scenario", "healty-z"}, []string{"healty-z: neither a scenario nor a file", "healthy-z"}},
		"invalid scenario":                 {[]string{"scenario", broken}, []string{broken + ": expekt: Invalid value: unknown field"}},
		"a scenario that needs the binary": {[]string{"simulate", "leader-dies"}, []string{"leader-dies: not possible in virtual time: the scenario needs binary: true"}},
		"no scenario":                      {[]string{"scenario"}, []string{"there are 0 arguments, must be one: the name of a scenario", `"devcluster scenarios"`, "or a file"}},
		"surplus argument":                 {[]string{"up", "now"}, []string{`unexpected argument "now"; "devcluster up --help" lists the flags`}},
		"two logs":                         {[]string{"logs", "etcd", "simulators"}, []string{`unexpected argument "simulators"`}},
		"unknown flag":                     {[]string{"up", "--nodes=3"}, []string{`unknown flag: --nodes; "devcluster up --help" lists the flags`}},
		"invalid number":                   {[]string{"up", "--workers=many"}, []string{`--workers: is "many", must be a whole number`}},
		"invalid speed":                    {[]string{"demo", "--speed=fast"}, []string{`--speed: is "fast", must be a number`}},
		"invalid boolean":                  {[]string{"up", "--monitoring=maybe"}, []string{`--monitoring: is "maybe", must be true or false`}},
		"invalid checkout":                 {[]string{"up", "--repository", empty}, []string{"--repository: must be a checkout of the operator, with a folder deploy: ", empty}},
		"a pool without a number":          {[]string{"up", "--pool", "infra"}, []string{"--pool infra: must be NAME=NODES, such as infra=2"}},
		"invalid version":                  {[]string{"up", "--version", "4.20", "--dir", filepath.Join(empty, "state")}, []string{"version: Invalid value", "such as 4.20.6"}},
		"missing programs":                 {[]string{"up", "--bin-dir", empty, "--dir", filepath.Join(empty, "state")}, []string{"no program there named etcd", "make tools"}},
		"status without a cluster":         {[]string{"status", "--dir", empty}, []string{"no cluster runs in " + empty, "devcluster up"}},
		"logs without a cluster":           {[]string{"logs", "--dir", empty}, []string{"no logs in " + empty, "devcluster up"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := run(t, test.args...)
			if err == nil {
				t.Fatal("it was accepted")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got  %v\nwant %s", err, want)
				}
			}
		})
	}
}

func TestDown_removes_the_state_folder_only(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"audit.log", "kubeconfig", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := run(t, "down", "--dir", dir); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{filepath.Join(dir, "notes.txt")}, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

func TestScenario_list(t *testing.T) {
	out, err := run(t, "scenarios")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "healthy-z ") || !strings.Contains(out, "A healthy cluster is upgraded to the next patch release.") {
		t.Errorf("got\n%s", out)
	}
}

func TestCompletion_of_names(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "logs", "etcd.log"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"healthy-z\n":  {"__complete", "scenario", "hea"},
		"superseded\n": {"__complete", "demo", "--scenario", ""},
		"etcd\n":       {"__complete", "--dir", dir, "logs", ""},
	} {
		if out, err := run(t, args...); err != nil || !strings.Contains(out, want) {
			t.Errorf("%q: %v, %s; want %s", args, err, out, want)
		}
	}
}

func TestFlags_override_the_scenario(t *testing.T) {
	t.Parallel()
	cluster := parseFlags(t, "--version=4.19.3", "--workers=5", "--monitoring", "--pool=infra=2", "--release=4.19.4", "--release=4.20.0=fast-4.20")
	got, err := cluster.applyTo(openshiftsim.ClusterSpec{Masters: 1, Workers: 2, Channel: "candidate-4.19"})
	if err != nil {
		t.Fatal(err)
	}
	want := openshiftsim.ClusterSpec{
		Version: "4.19.3", Channel: "candidate-4.19", Masters: 1, Workers: 5,
		Monitoring: &alerting.Spec{},
		Pools:      []machineconfig.Pool{{Name: "infra", Nodes: 2}},
		Releases: []updategraph.Release{
			{Version: "4.19.4", Channels: []string{"candidate-4.19"}},
			{Version: "4.20.0", Channels: []string{"fast-4.20"}},
			{Version: "4.19.3", Channels: []string{"candidate-4.19", "fast-4.20"}}, // without it, fast-4.20 offers no update
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFlags_reject_invalid_numbers_of_nodes(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{
		"--workers=0":       "--workers: is 0, must be greater than 0",
		"--masters=-1":      "--masters: is -1, must be greater than 0",
		"--speed=0":         "--speed: is 0, must be greater than 0",
		"--speed=NaN":       "--speed: is NaN, must be greater than 0",
		"--speed=Inf":       "--speed: is +Inf, must be greater than 0",
		"--pool=worker=2":   "pools[0].nodes: Invalid value: 2: must be left out: the field workers sets it",
		"--workers=2000000": "all pools together must have at most 2000 nodes",
	} {
		spec, err := parseFlags(t, flag).applyTo(openshiftsim.ClusterSpec{})
		if err == nil {
			err = spec.Validate(nil).ToAggregate()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", flag, err, want)
		}
	}
}

// parseFlags parses the flags of a cluster.
func parseFlags(t *testing.T, args ...string) *clusterFlags {
	t.Helper()
	cluster, flags := &clusterFlags{}, pflag.NewFlagSet("up", pflag.ContinueOnError)
	cluster.bind(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return cluster
}

func TestPrinter_prints_each_change_of_a_step_once(t *testing.T) {
	t.Parallel()
	upgrade := func(phase string, conditions ...map[string]any) *unstructured.Unstructured {
		list := make([]any, 0, len(conditions))
		for _, condition := range conditions {
			list = append(list, condition)
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "example"},
			"status": map[string]any{"history": []any{map[string]any{
				"version": "4.20.6", "phase": phase, "conditions": list,
			}}},
		}}
	}
	step := func(status, reason, message, completed string) map[string]any {
		condition := map[string]any{
			"type": "PreHealthCheck", "status": status, "reason": reason, "message": message, "startTime": "2026-01-01T12:00:00Z",
		}
		if completed != "" {
			condition["completeTime"] = completed
		}
		return condition
	}
	var out bytes.Buffer
	p := &printer{out: &out, now: time.Now}
	for _, state := range []*unstructured.Unstructured{
		upgrade("Upgrading", step("False", "Started", "looks", "")),
		upgrade("Upgrading", step("False", "ClusterUnhealthy", "etcd is degraded", "")),
		upgrade("Upgrading", step("False", "ClusterUnhealthy", "etcd is degraded", "")),
		upgrade("Upgrading", step("True", "Done", "the cluster is healthy", "2026-01-01T12:01:30Z")),
		upgrade("Upgraded", step("True", "Done", "the cluster is healthy", "2026-01-01T12:01:30Z")),
	} {
		p.upgrade(state)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		fields := strings.Fields(line)[1:] // without the time
		if fields[1] == "waiting" {
			fields[2] = "-" // a step in progress
		}
		got = append(got, strings.Join(fields, " "))
	}
	want := []string{
		"example Upgrading 4.20.6",
		"PreHealthCheck waiting - ClusterUnhealthy: etcd is degraded",
		"PreHealthCheck done 1m30s the cluster is healthy",
		"example Upgraded 4.20.6",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSuggestedUpdate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		flags []string
		want  update
	}{
		"default":                       {nil, update{"4.20.6", "stable-4.20"}},
		"highest of the channel":        {[]string{"--release=4.20.8", "--release=4.20.7"}, update{"4.20.8", "stable-4.20"}},
		"channel of another release":    {[]string{"--release=4.20.6", "--release=4.21.0=stable-4.21"}, update{"4.21.0", "stable-4.21"}},
		"two minor versions are a step": {[]string{"--release=4.22.0=stable-4.22", "--release=4.20.6"}, update{"4.20.6", "stable-4.20"}},
		"no higher release":             {[]string{"--release=4.20.4"}, update{}},
		"own channel is preferred":      {[]string{"--channel=fast-4.20", "--release=4.20.6=fast-4.20", "--release=4.20.5=fast-4.20"}, update{"4.20.6", "fast-4.20"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, err := parseFlags(t, tc.flags...).applyTo(openshiftsim.ClusterSpec{})
			if err != nil {
				t.Fatal(err)
			}
			if got := suggestedUpdate(spec.WithDefaults()); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
	risky := openshiftsim.ClusterSpec{Releases: []updategraph.Release{
		{Version: "4.20.6", Channels: []string{"stable-4.20"}},
		{Version: "4.20.7", Channels: []string{"stable-4.20"}, Risks: []updategraph.Risk{{Name: "SlowDisks"}}},
		{Version: "4.20.8", Channels: []string{"stable-4.20"}, Refused: "the payload is broken"},
	}}
	if got := suggestedUpdate(risky.WithDefaults()); got.version != "4.20.6" {
		t.Errorf("a release that fails or has a risk is suggested: %+v", got)
	}
}

func TestPrinter_progress(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	p := &printer{out: &out, now: func() time.Time { return now }}
	step := &history.StepCondition{
		Type: "ControlPlaneUpgraded", Status: metav1.ConditionFalse, Reason: "Progressing", Message: "12 of 31 operators",
		StartTime: new(metav1.NewTime(now)),
	}
	p.step("example", step)
	out.Reset()
	now = now.Add(progressAfter - time.Second)
	p.progress()
	if out.Len() > 0 {
		t.Errorf("printed too early: %s", out.String())
	}
	now = now.Add(time.Second)
	p.progress()
	if want := "12:00:10  ControlPlaneUpgraded           waiting     10s  still: 12 of 31 operators\n"; out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
	step.CompleteTime = new(metav1.NewTime(now.Add(time.Second)))
	p.step("example", step)
	out.Reset()
	now = now.Add(time.Hour)
	p.progress()
	if out.Len() > 0 {
		t.Errorf("printed although no step waits: %s", out.String())
	}
}

func TestSimulate_prints_virtual_times(t *testing.T) {
	t.Parallel()
	out, err := run(t, "simulate", "healthy-z", "--speed=1", "--workers=1", "--describe")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"AllWorkerNodesUpgraded         done", "It ended as expected, after 3", "That was virtual time",
		"$ oc update history\n", "upgraded from 4.20.5 to 4.20.6", "$ oc describe upgrade example-upgrade-config", "Phase:  Upgraded", "What to try next:",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output does not contain %q:\n%s", want, out)
		}
	}
}
