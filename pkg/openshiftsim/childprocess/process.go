// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package childprocess runs child processes that end with their parent.
package childprocess

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Command describes the program of a Process.
type Command struct {
	Path   string
	Args   []string
	Env    []string    // defaults to the environment of this process
	Log    string      // stdout and stderr are appended to this file
	Dir    string      // working folder; defaults to that of this process
	Root   string      // if set, the root folder of the process; Path is relative to it. Requires root.
	OnExit func(error) // if set, called once if the process ends without Stop or Kill
}

// Process is a child process that ends with this process, on Linux even if this process is killed
// with SIGKILL. Its own children are in its process group and end with it.
//
// A nil Process is not running, and its methods do nothing.
type Process struct {
	name     string
	log      string
	command  *exec.Cmd
	stopping atomic.Bool
	exited   chan struct{} // closed once err is set
	err      error
}

// Start starts the command and returns immediately.
func Start(command Command) (*Process, error) {
	log, err := os.OpenFile(command.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log file of %s: %w", filepath.Base(command.Path), err)
	}
	cmd := exec.Command(command.Path, command.Args...) //nolint:gosec,noctx // Stop ends it, in an order that a context cannot express
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env, cmd.Dir = command.Env, command.Dir
	cmd.SysProcAttr = attributes()
	if command.Root != "" {
		cmd.SysProcAttr.Chroot, cmd.Dir = command.Root, "/"
	}

	p := &Process{name: filepath.Base(command.Path), log: command.Log, command: cmd, exited: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel sends the parent-death signal when the *thread* that started the child ends, so the
		// thread must live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer log.Close()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		p.err = cmd.Wait()
		if err := killGroup(cmd.Process.Pid); err != nil { // kills its children as well
			p.err = errors.Join(p.err, fmt.Errorf("killing the rest of its process group: %w", err))
		}
		close(p.exited)
		if !p.stopping.Load() && command.OnExit != nil {
			command.OnExit(p.Err())
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.name, err)
	}
	return p, nil
}

// PID returns the ID of the process and its process group.
func (p *Process) PID() int { return p.command.Process.Pid }

// Exited returns a channel that is closed when the process has exited.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Name returns the name of the program.
func (p *Process) Name() string { return p.name }

// Running reports whether the process has been started and has not exited.
func (p *Process) Running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// ExitCode returns the exit code of a process that has exited. For a signal, it is 128 plus the
// number of the signal. Call it only after Exited is closed.
func (p *Process) ExitCode() int {
	state := p.command.ProcessState
	if state == nil {
		return -1
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// Err returns an error that describes how the process ended, including the last lines of its log.
// Call it only after Exited is closed.
func (p *Process) Err() error {
	exitStatus := "exit status 0"
	if p.err != nil {
		exitStatus = p.err.Error()
	}
	return fmt.Errorf("%s ended unexpectedly: %s; the end of %s:\n%s", p.name, exitStatus, p.log, tail(p.log, 10))
}

// Stop terminates the process, and kills its process group if it has not exited within grace.
func (p *Process) Stop(grace time.Duration) error {
	if !p.Running() {
		return nil
	}
	p.stopping.Store(true)
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping %s: %w", p.name, err)
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
	}
	return p.Kill()
}

// Kill kills the process group and waits for the process to exit.
func (p *Process) Kill() error {
	if !p.Running() {
		return nil
	}
	p.stopping.Store(true)
	if err := killGroup(p.command.Process.Pid); err != nil {
		return fmt.Errorf("killing %s: %w", p.name, err)
	}
	<-p.exited
	return nil
}

// tail returns the last lines of a file, or an empty string if it cannot be read.
func tail(path string, lines int) string {
	const most = 16 << 10
	file, err := os.Open(path) //nolint:gosec // our own log file
	if err != nil {
		return ""
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > most {
		if _, err := file.Seek(-most, io.SeekEnd); err != nil {
			return ""
		}
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return ""
	}
	all := strings.Split(string(bytes.TrimSpace(content)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
