// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package controlplane

import "syscall"

// attributes give the child a process group of its own, so that a terminal's Ctrl-C reaches only us and we can stop
// things in order. Only Linux can have the child killed when we are killed with SIGKILL.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
