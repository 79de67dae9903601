// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import "syscall"

// attributes give the child a process group of its own, so that a terminal's Ctrl-C reaches only us and we can stop
// things in order, and have the kernel kill it when we die.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
