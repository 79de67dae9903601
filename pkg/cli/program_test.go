// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
)

// result is what a run of the program printed.
type result struct {
	code        ExitCode
	out, errOut string
}

// run runs the program with arguments, as a plugin of oc.
func run(t *testing.T, args ...string) result {
	t.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	code := Run(t.Context(), Environment{
		Program: "/usr/bin/oc-update", Args: args, Clock: clocktesting.NewFakeClock(now), Streams: streams,
		Terminal: &Terminal{}, Version: "v1",
	})
	return result{code, out.String(), errOut.String()}
}

func TestCommandName(t *testing.T) {
	t.Parallel()
	tests := []struct{ program, invoker, want string }{
		{"/usr/local/bin/kubectl-update", "/usr/bin/oc", "oc update"},
		{"/usr/local/bin/kubectl-update", "/usr/bin/kubectl", "kubectl update"},
		{"/usr/local/bin/kubectl-update", "", "kubectl update"},
		{"/usr/local/bin/kubectl-update", "/usr/bin/make", "kubectl update"},
		{"/usr/local/bin/oc-update", "", "oc update"},
		{"/usr/local/bin/kubectl-update", "/usr/local/bin/kubectl-update", "kubectl-update"},
		{"kubectl-update", "", "kubectl-update"},
		{"bin/kubectl-update", "bin/kubectl-update", "kubectl-update"},
		{"/home/ann/.krew/bin/kubectl-openshift_update", "/usr/bin/oc", "oc openshift-update"},
		{"/home/ann/.krew/bin/kubectl-openshift_update", "", "kubectl openshift-update"},
		{"/usr/local/bin/kubectl-other", "/usr/bin/oc", "kubectl-update"},
		{"/tmp/renamed", "/usr/bin/oc", "kubectl-update"},
	}
	for _, test := range tests {
		t.Run(test.program+" started by "+test.invoker, func(t *testing.T) {
			t.Parallel()
			if got := commandName(test.program, test.invoker); got != test.want {
				t.Errorf("name %q, want %q", got, test.want)
			}
		})
	}
}

func TestLocalCommand(t *testing.T) {
	t.Parallel()
	tests := []struct{ command, name, want string }{
		{"oc update status", "kubectl update", "kubectl update status"},
		{"oc update status", "kubectl-update", "kubectl-update status"},
		{"oc -n shop scale deployment/api --replicas=3", "oc update", "oc -n shop scale deployment/api --replicas=3"},
		{"oc -n shop scale deployment/api --replicas=3", "kubectl update", "kubectl -n shop scale deployment/api --replicas=3"},
		{"oc adm upgrade", "kubectl update", "oc adm upgrade"},
		{"oc -n adm debug node/a", "kubectl update", "oc -n adm debug node/a"},
		{"oc", "kubectl update", "oc"},
	}
	for _, test := range tests {
		t.Run(test.command+" of "+test.name, func(t *testing.T) {
			t.Parallel()
			if got := localCommand(test.command, test.name); got != test.want {
				t.Errorf("command %q, want %q", got, test.want)
			}
		})
	}
}

func TestErrors_are_one_line_with_the_next_step(t *testing.T) {
	t.Parallel()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	content := "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster: {server: 'https://127.0.0.1:1'}\n" +
		"contexts:\n- name: c\n  context: {cluster: c, user: u}\nusers:\n- name: u\n  user: {token: t}\ncurrent-context: c\n"
	if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("a: b: c"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args []string
		code ExitCode
		want []string
	}{
		"unknown command":                    {[]string{"foo"}, ExitUsage, []string{"\"foo\"", "--help"}},
		"unknown flag":                       {[]string{"informers", "--foo"}, ExitUsage, []string{"--foo", "--help"}},
		"unknown format":                     {[]string{"informers", "-o", "foo"}, ExitUsage, []string{"json", "wide"}},
		"kubeconfig is missing":              {[]string{"informers", "--kubeconfig", "/nowhere"}, ExitFailed, []string{"/nowhere", "--kubeconfig", "oc login"}},
		"kubeconfig is broken":               {[]string{"informers", "--kubeconfig", broken}, ExitFailed, []string{broken, "--kubeconfig"}},
		"context is unknown":                 {[]string{"informers", "--kubeconfig", kubeconfig, "--context", "foo"}, ExitFailed, []string{"foo", "--kubeconfig"}},
		"kubeconfig of a start is missing":   {[]string{"start", "--to", "4.20.8", "--kubeconfig", "/nowhere"}, ExitFailed, []string{"/nowhere", "--kubeconfig", "oc login"}},
		"kubeconfig of pre-checks is broken": {[]string{"pre-checks", "--version", "4.20.8", "--kubeconfig", broken}, ExitFailed, []string{broken, "--kubeconfig"}},
		"context of a start is unknown":      {[]string{"start", "--to", "4.20.8", "--pre-checks=false", "--kubeconfig", kubeconfig, "--context", "foo"}, ExitFailed, []string{"foo", "--kubeconfig"}},
		"API server of a start is down":      {[]string{"start", "--to", "4.20.8", "--pre-checks=false", "--kubeconfig", kubeconfig, "--cache-dir", t.TempDir()}, ExitFailed, []string{"127.0.0.1:1", "--context"}},
		"kubeconfig has no cluster":          {[]string{"start", "--to", "4.20.8", "--kubeconfig", empty}, ExitFailed, []string{"--kubeconfig", "oc login"}},
		"API server is down":                 {[]string{"informers", "--kubeconfig", kubeconfig, "--cache-dir", t.TempDir()}, ExitFailed, []string{"127.0.0.1:1", "--context"}},
		"time without a dump":                {[]string{"informers", "--now", "2026-11-22T14:00:00Z"}, ExitUsage, []string{"--replay"}},
		"time is not a time":                 {[]string{"informers", "--replay", ".", "--now", "foo"}, ExitUsage, []string{"2026-11-22T14:00:00Z"}},
		"dump is missing":                    {[]string{"informers", "--replay", "/nowhere"}, ExitFailed, []string{"--replay", "/nowhere"}},
		"dump has no objects":                {[]string{"informers", "--replay", t.TempDir()}, ExitFailed, []string{"must-gather"}},
		"dump has no UpdateStatus":           {[]string{"informers", "--replay", "testdata/dumps/objects", "--now", "2026-11-22T14:00:00Z"}, ExitFailed, []string{"UpdateInformer"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, test.args...)
			if got.code != test.code {
				t.Errorf("exit code %d, want %d", got.code, test.code)
			}
			if strings.Count(got.errOut, "\n") != 1 || !strings.HasPrefix(got.errOut, "oc update: ") {
				t.Errorf("error %q, want one line of oc update", got.errOut)
			}
			for _, want := range test.want {
				if !strings.Contains(got.errOut, want) {
					t.Errorf("error %q does not contain %q", got.errOut, want)
				}
			}
		})
	}
}

func TestCompletion_lists_commands_and_formats(t *testing.T) {
	t.Parallel()
	if got := run(t, "__complete", "inf"); !strings.Contains(got.out, "informers\t") {
		t.Errorf("completions of a command:\n%s", got.out)
	}
	if got := run(t, "__complete", "informers", "-o", ""); !strings.Contains(got.out, "yaml\n") {
		t.Errorf("completions of a format:\n%s", got.out)
	}
	if got := run(t, "completion", "bash"); got.code != ExitDone || !strings.Contains(got.out, "bash completion") {
		t.Errorf("exit code %d, script:\n%.200s", got.code, got.out)
	}
}
