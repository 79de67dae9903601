// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package childprocess

import "syscall"

// attributes returns attributes that put the child into its own process group, so that Ctrl-C in
// the terminal reaches only this process. Only Linux can kill the child when this process is killed
// with SIGKILL.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
