// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package controlplane_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
)

// stateOfChild makes this test binary act as the parent process that is killed. Its value is the
// state folder.
const stateOfChild = "CONTROLPLANE_TEST_STATE"

func TestParent_that_is_killed_leaves_no_process(t *testing.T) {
	if dir := os.Getenv(stateOfChild); dir != "" {
		runUntilKilled(t, dir)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.CommandContext(t.Context(), program, "-test.run=^TestParent_that_is_killed_leaves_no_process$")
	parent.Env = append(os.Environ(), stateOfChild+"="+t.TempDir())
	output, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var children []int
	for lines := bufio.NewScanner(output); len(children) < 3 && lines.Scan(); {
		if pid, err := strconv.Atoi(lines.Text()); err == nil {
			children = append(children, pid)
		}
	}
	if len(children) != 3 {
		t.Fatalf("the parent printed processes %v, want 3", children)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed
	deadline := time.Now().Add(time.Minute)
	for _, pid := range children {
		for !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			if time.Now().After(deadline) {
				t.Fatalf("process %d has outlived its parent", pid)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// runUntilKilled prints the process IDs of its children and blocks.
func runUntilKilled(t *testing.T, dir string) {
	t.Helper()
	running, err := controlplane.Start(t.Context(), controlplane.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range running.PIDs() {
		fmt.Println(pid)
	}
	select {}
}
