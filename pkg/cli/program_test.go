// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
)

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
		code session.ExitCode
		want []string
	}{
		"unknown command":                    {[]string{"foo"}, session.ExitUsage, []string{"\"foo\"", "--help"}},
		"command with a typo":                {[]string{"histroy"}, session.ExitUsage, []string{"\"histroy\"", "did you mean \"oc update history\"?"}},
		"flag with a typo":                   {[]string{"status", "--detailss"}, session.ExitUsage, []string{"unknown flag: --detailss; did you mean --details?"}},
		"flag like no other":                 {[]string{"status", "--temperature"}, session.ExitUsage, []string{"unknown flag: --temperature; \"oc update status --help\" lists the flags"}},
		"command of fleets with a typo":      {[]string{"fleet", "stauts"}, session.ExitUsage, []string{"did you mean", "\"oc update fleet status\""}},
		"unknown flag":                       {[]string{"informers", "--foo"}, session.ExitUsage, []string{"--foo", "--help"}},
		"unknown format":                     {[]string{"informers", "-o", "foo"}, session.ExitUsage, []string{"json", "wide"}},
		"kubeconfig is missing":              {[]string{"informers", "--kubeconfig", "/nowhere"}, session.ExitFailed, []string{"/nowhere", "--kubeconfig", "oc login"}},
		"kubeconfig is broken":               {[]string{"informers", "--kubeconfig", broken}, session.ExitFailed, []string{broken, "--kubeconfig"}},
		"context is unknown":                 {[]string{"informers", "--kubeconfig", kubeconfig, "--context", "foo"}, session.ExitFailed, []string{"foo", "--kubeconfig"}},
		"kubeconfig of a start is missing":   {[]string{"start", "-y", "--to", "4.20.8", "--kubeconfig", "/nowhere"}, session.ExitFailed, []string{"/nowhere", "--kubeconfig", "oc login"}},
		"kubeconfig of pre-checks is broken": {[]string{"pre-checks", "--version", "4.20.8", "--kubeconfig", broken}, session.ExitFailed, []string{broken, "--kubeconfig"}},
		"context of a start is unknown":      {[]string{"start", "-y", "--to", "4.20.8", "--pre-checks=false", "--kubeconfig", kubeconfig, "--context", "foo"}, session.ExitFailed, []string{"foo", "--kubeconfig"}},
		"API server of a start is down":      {[]string{"start", "-y", "--to", "4.20.8", "--pre-checks=false", "--kubeconfig", kubeconfig, "--cache-dir", t.TempDir()}, session.ExitFailed, []string{"127.0.0.1:1", "--context"}},
		"kubeconfig has no cluster":          {[]string{"start", "-y", "--to", "4.20.8", "--kubeconfig", empty}, session.ExitFailed, []string{"--kubeconfig", "oc login"}},
		"API server is down":                 {[]string{"informers", "--kubeconfig", kubeconfig, "--cache-dir", t.TempDir()}, session.ExitFailed, []string{"127.0.0.1:1", "--context"}},
		"start without an answer":            {[]string{"start", "--to", "4.20.8", "--kubeconfig", kubeconfig}, session.ExitUsage, []string{"-y", "--dry-run=server"}},
		"acceptance without an answer":       {[]string{"pre-checks", "--version", "4.20.8", "--accept", "--kubeconfig", kubeconfig}, session.ExitUsage, []string{"-y", "--dry-run=server"}},
		"unpausing without an answer":        {[]string{"worker-nodes", "start", "--kubeconfig", kubeconfig}, session.ExitUsage, []string{"-y", "--dry-run=server"}},
		"watch of a dump":                    {[]string{"watch", "--replay", "testdata/dumps/objects", "--now", "2026-11-22T14:00:00Z"}, session.ExitUsage, []string{"history"}},
		"release of status pre-checks":       {[]string{"status", "pre-checks", "--version", "4.20"}, session.ExitUsage, []string{"--version"}},
		"time without a dump":                {[]string{"informers", "--now", "2026-11-22T14:00:00Z"}, session.ExitUsage, []string{"--replay"}},
		"time is not a time":                 {[]string{"informers", "--replay", ".", "--now", "foo"}, session.ExitUsage, []string{"2026-11-22T14:00:00Z"}},
		"dump is missing":                    {[]string{"informers", "--replay", "/nowhere"}, session.ExitFailed, []string{"--replay", "/nowhere"}},
		"dump has no objects":                {[]string{"informers", "--replay", t.TempDir()}, session.ExitFailed, []string{"must-gather"}},
		"dump has no UpdateStatus":           {[]string{"informers", "--replay", "testdata/dumps/objects", "--now", "2026-11-22T14:00:00Z"}, session.ExitFailed, []string{"UpdateInformer"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, test.args...)
			if got.Code != test.code {
				t.Errorf("exit code %d, want %d", got.Code, test.code)
			}
			if strings.Count(got.ErrOut, "\n") != 1 || !strings.HasPrefix(got.ErrOut, "oc update: ") {
				t.Errorf("error %q, want one line of oc update", got.ErrOut)
			}
			for _, want := range test.want {
				if !strings.Contains(got.ErrOut, want) {
					t.Errorf("error %q does not contain %q", got.ErrOut, want)
				}
			}
		})
	}
}

func TestCompletion_lists_commands_and_formats(t *testing.T) {
	t.Parallel()
	if got := run(t, "__complete", "inf"); !strings.Contains(got.Out, "informers\t") {
		t.Errorf("completions of a command:\n%s", got.Out)
	}
	if got := run(t, "__complete", "informers", "-o", ""); !strings.Contains(got.Out, "yaml\n") {
		t.Errorf("completions of a format:\n%s", got.Out)
	}
	if got := run(t, "completion", "bash"); got.Code != session.ExitDone || !strings.Contains(got.Out, "bash completion") {
		t.Errorf("exit code %d, script:\n%.200s", got.Code, got.Out)
	}
}

// A missing file is not reported as a problem with the API server.
func TestErrors_name_a_file_that_does_not_exist(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"status --replay /does/not/exist", "pre-checks --version 4.20.8 --replay /does/not/exist", "fleet start -y -f /does/not/exist", "migrate-maintenance -f /does/not/exist"} {
		got := run(t, strings.Fields(args)...)
		if got.Code != session.ExitFailed && got.Code != session.ExitUsage || !strings.Contains(got.ErrOut, "/does/not/exist") || strings.Contains(got.ErrOut, "API server") || strings.Count(got.ErrOut, "\n") != 1 {
			t.Errorf("%s: %+v", args, got)
		}
	}
}
