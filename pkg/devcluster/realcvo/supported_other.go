// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package realcvo

import (
	"fmt"
	"runtime"
)

// supported returns an error because only Linux is supported.
func supported() error { return fmt.Errorf("this is %s", runtime.GOOS) }
