// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package childprocess

import (
	"errors"
	"syscall"
)

// killGroup kills a process group, which may have ended already.
func killGroup(pid int) error {
	if err := syscall.Kill(-pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		// A group of zombies answers "not permitted" on some systems; the wait that follows reaps them.
		if errors.Is(err, syscall.EPERM) {
			return nil
		}
		return err
	}
	return nil
}
