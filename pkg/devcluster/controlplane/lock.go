// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// lockName is the name of the file that a process locks while it uses a state folder. It contains
// the process ID. The kernel releases the lock when the process ends.
const lockName = "lock"

// ErrInUse is returned if another process is using the state folder.
var ErrInUse = errors.New("in use")

// lock locks a state folder. Closing the returned file releases the lock.
func lock(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockName)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // in our state folder
	if err != nil {
		return nil, fmt.Errorf("locking the state folder: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		pid, _ := os.ReadFile(path) //nolint:gosec // in our state folder
		return nil, errors.Join(
			fmt.Errorf("%s: %w by process %s: end that with \"devcluster down\", or name another folder", dir, ErrInUse, strings.TrimSpace(string(pid))),
			file.Close())
	}
	err = errors.Join(file.Truncate(0), write(file, strconv.Itoa(os.Getpid())+"\n"))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking the state folder: %w", err), file.Close())
	}
	return file, nil
}

func write(file *os.File, text string) error {
	_, err := file.WriteAt([]byte(text), 0)
	return err
}

// Owner returns the ID of the process that uses a state folder, or 0 if it is not in use.
func Owner(dir string) (int, error) {
	file, err := os.Open(filepath.Join(dir, lockName)) //nolint:gosec // in our state folder
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("determining the owner of the state folder: %w", err)
	}
	defer file.Close()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err == nil {
		return 0, nil // it was not locked
	}
	content, err := os.ReadFile(file.Name())
	if err != nil {
		return 0, fmt.Errorf("determining the owner of the state folder: %w", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return 0, fmt.Errorf("determining the owner of the state folder: %w", err)
	}
	return pid, nil
}
