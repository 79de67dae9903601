// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDemo_keeps_the_cluster runs what `make demo KEEP=1` runs, then the commands that it suggests in one
// shell, and ends it as Ctrl-C does.
func TestDemo_keeps_the_cluster(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	demo := exec.CommandContext(ctx, "../../bin/devcluster", "demo", "--keep", "--dir="+t.TempDir())
	demo.Cancel = func() error { return demo.Process.Signal(syscall.SIGTERM) }
	output, err := demo.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	var printed, suggested []string
	suggests := false
	for lines := bufio.NewScanner(output); lines.Scan(); {
		line := lines.Text()
		printed = append(printed, line)
		command, indented := strings.CutPrefix(line, "  ")
		switch {
		case strings.HasSuffix(line, "What to try next:"):
			suggests = true
		case suggests && indented:
			suggested = append(suggested, command)
		case suggests: // the last line
			checkSuggestions(ctx, t, suggested)
			if err := demo.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
		}
	}
	err = demo.Wait()
	all := strings.Join(printed, "\n")
	if err != nil || !strings.Contains(all, "Succeeded") || len(suggested) < 6 {
		t.Errorf("the demo ends with %v, suggests %q, and prints\n%s", err, suggested, all)
	}
}

// checkSuggestions runs commands in one shell until one fails.
func checkSuggestions(ctx context.Context, t *testing.T, commands []string) {
	t.Helper()
	shell := exec.CommandContext(ctx, "bash", "-e", "-c", strings.Join(commands, "\n"))
	printed, err := shell.CombinedOutput()
	for _, want := range []string{"4.20.6", "worker-0", "UpgradeCompleted", "deleted"} {
		if err != nil || !strings.Contains(string(printed), want) {
			t.Errorf("%q ends with %v, and prints\n%s\nwant %q", commands, err, printed, want)
		}
	}
}
