// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hack

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestWorlds_are_small checks that what the tests of a package set up is one file of at most 150 lines: a longer one has what
// belongs into pkg/simulation.
func TestWorlds_are_small(t *testing.T) {
	t.Parallel()
	found := 0
	err := filepath.WalkDir("../pkg", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Base(file) != "world_test.go" {
			return err
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(file), "world.go")); err == nil {
			return nil // it tests that file
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		found++
		_, code, _ := bytes.Cut(text, []byte("\n)\n")) // behind the imports
		if lines := bytes.Count(code, []byte("\n")); lines > 150 {
			t.Errorf("%s has %d lines, want at most 150", file, lines)
		}
		return nil
	})
	if err != nil || found < 10 {
		t.Errorf("%d files: %v", found, err)
	}
}
