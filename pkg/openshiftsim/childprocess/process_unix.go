// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package childprocess

import (
	"errors"
	"syscall"
)

// killGroup kills a process group that may already have ended.
func killGroup(pid int) error {
	if err := syscall.Kill(-pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		// On some systems, killing a group of zombies is "not permitted"; they are reaped by the
		// following wait.
		if errors.Is(err, syscall.EPERM) {
			return nil
		}
		return err
	}
	return nil
}
