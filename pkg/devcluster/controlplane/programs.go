// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// FindBinDir returns the bin folder next to the go.mod file of the working directory's module.
func FindBinDir() (string, error) {
	working, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the working directory: %w", err)
	}
	for dir := working; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "bin"), nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod in %s or above it: name the folder with etcd and kube-apiserver", working)
		}
	}
}

// RequirePrograms returns an error that names the programs missing from dir. "make tools" builds
// all of them.
func RequirePrograms(dir string, names ...string) error {
	return RequireBuilt(dir, "make tools", names...)
}

// RequireBuilt returns an error that names the programs missing from dir and the command that
// builds them.
func RequireBuilt(dir, command string, names ...string) error {
	var missing []string
	for _, name := range names {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("%s: no program there named %s; %q builds it", dir, strings.Join(missing, ", "), command)
}
