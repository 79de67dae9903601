// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/childprocess"
)

func containsAll(text string, parts ...string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

func TestPrograms_that_are_missing_are_named_with_the_remedy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "etcd"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := controlplane.Start(t.Context(), controlplane.Options{BinDir: dir, Dir: t.TempDir()})
	if err == nil {
		t.Fatal("a control plane started without programs")
	}
	if !containsAll(err.Error(), dir, "kube-apiserver, kube-controller-manager", "make tools") {
		t.Errorf("the error does not say what is missing and what to do: %v", err)
	}
	if strings.Contains(err.Error(), "etcd") {
		t.Errorf("the error names a program that is there: %v", err)
	}
}

func TestFindBinDir(t *testing.T) {
	t.Parallel()
	dir, err := controlplane.FindBinDir()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(dir), "go.mod")); err != nil {
		t.Errorf("%s is not beside a go.mod: %v", dir, err)
	}
}

func TestFreePorts_are_unique_and_not_ephemeral(t *testing.T) {
	t.Parallel()
	allocated := map[int]bool{}
	for range 500 { // out of ten thousand: without bookkeeping, some would repeat by chance
		port, err := controlplane.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		if port < 1024 || port >= 32768 {
			t.Fatalf("port %d", port)
		}
		if allocated[port] {
			t.Fatalf("port %d is given twice", port)
		}
		allocated[port] = true
	}
}

// reserved reserves a fifth of all ports, once: without locks, two processes almost certainly get some of the same.
var reserved = sync.OnceValues(func() (ports []int, err error) {
	for range 2000 {
		port, err := controlplane.FreePort()
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
})

// Ports that are reserved and not in use yet are free for no other process. The child runs this test, too.
func TestFreePorts_are_reserved_for_the_process(t *testing.T) {
	t.Parallel()
	const printed = "PRINT_FREE_PORTS"
	ports, err := reserved()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv(printed) != "" {
		t.Log(ports) // the child runs with -test.v
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^TestFreePorts_are_reserved_for_the_process$")
	child.Env = append(os.Environ(), printed+"=true")
	output, err := child.CombinedOutput()
	if err != nil || len(strings.Fields(string(output))) < len(ports) {
		t.Fatalf("%v: %s", err, output)
	}
	for _, port := range ports {
		if strings.Contains(string(output), strconv.Itoa(port)) {
			t.Errorf("port %d is given to two processes", port)
		}
	}
}

// Other tests start processes meanwhile, each of which has the sockets of this one until it executes its program.
func TestFreePorts_can_be_used_at_once_while_processes_start(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	starts, ended := make(chan struct{}), sync.WaitGroup{}
	for range 8 {
		ended.Go(func() {
			for ctx.Err() == nil {
				_ = exec.CommandContext(ctx, "/bin/true").Run()
				select {
				case starts <- struct{}{}:
				default:
				}
			}
		})
	}
	defer ended.Wait()
	defer cancel()
	for range 100 {
		<-starts
		port, err := controlplane.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		_ = listener.Close()
	}
}

//nolint:paralleltest // no other test takes a port meanwhile
func TestFreePorts_are_not_in_use(t *testing.T) {
	before, err := controlplane.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", before+1))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if next, err := controlplane.FreePort(); err != nil || next == before+1 {
		t.Errorf("port %d follows %d (%v), and a process listens on it", next, before, err)
	}
}

func shell(t *testing.T, script string, onExit func(error)) *childprocess.Process {
	t.Helper()
	process, err := childprocess.Start(childprocess.Command{
		Path: "/bin/sh", Args: []string{"-c", script}, Log: filepath.Join(t.TempDir(), "log"), OnExit: onExit,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Kill(); err != nil {
			t.Error(err)
		}
	})
	return process
}

func TestProcess_that_ignores_SIGTERM_is_killed_with_its_children(t *testing.T) {
	t.Parallel()
	process := shell(t, `trap "" TERM; sleep 600 & wait; sleep 600`, nil)
	group := process.PID()
	if err := process.Stop(100 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if process.Running() {
		t.Error("the process runs although it was stopped")
	}
	deadline := time.Now().Add(5 * time.Second)
	for !errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) {
		if time.Now().After(deadline) {
			t.Fatal("its process group is still there")
		}
		time.Sleep(10 * time.Millisecond) // until init has reaped the orphans
	}
}

func TestProcess_that_exits_is_reported_with_the_end_of_its_log(t *testing.T) {
	t.Parallel()
	exits := make(chan error, 1)
	shell(t, `echo no such luck; exit 7`, func(err error) { exits <- err })
	select {
	case err := <-exits:
		if !containsAll(err.Error(), "exit status 7", "no such luck") {
			t.Errorf("got %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the exit was not reported")
	}
}

func TestProcess_that_is_stopped_is_not_reported(t *testing.T) {
	t.Parallel()
	exits := make(chan error, 1)
	process := shell(t, `exec sleep 600`, func(err error) { exits <- err })
	if err := process.Stop(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-exits:
		t.Errorf("got %v", err)
	case <-time.After(100 * time.Millisecond):
	}
}
