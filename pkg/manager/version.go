// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import "runtime/debug"

// version is set by the linker; see boilerplate/build.mk.
var version string

// Version returns the version of the program, as set by the build or recorded by Go.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
