// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package childprocess

import "syscall"

// attributes returns attributes that put the child into its own process group, so that Ctrl-C in
// the terminal reaches only this process, and that make the kernel kill the child when this process
// ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
