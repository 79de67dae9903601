// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package childprocess

import "syscall"

// attributes puts the child into its own process group to keep Ctrl-C in the terminal from reaching
// it. It also makes the kernel kill the child when this process ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
