// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package childprocess

import "syscall"

// attributes puts the child into its own process group to keep Ctrl-C in the terminal from reaching
// it. Only Linux can kill the child when this process is killed with SIGKILL.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
