// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// gnuDate matches commands that only GNU date supports: date -d does not calculate on macOS and
// BSD.
var gnuDate = regexp.MustCompile(`\bdate\b[^|;)\n]*\s(-d\b|--date\b)`)

// TestCommandsWorkOnEveryPlatform rejects commands in the documentation that only work on one
// platform.
func TestCommandsWorkOnEveryPlatform(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"../../docs", "../../deploy", "../../README.md", "../../CONTRIBUTING.md"} {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := os.ReadFile(filepath.Clean(path))
			if err != nil {
				return err
			}
			for _, command := range gnuDate.FindAllString(string(content), -1) {
				t.Errorf("%s has the command %q", path, command)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}
