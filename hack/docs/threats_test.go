// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestThreats checks that the tests named in docs/security.md exist.
func TestThreats(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	for _, name := range regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllSubmatch(content, -1) {
		missing[string(name[1])] = true
	}
	if len(missing) == 0 {
		t.Fatal("the page names no test")
	}
	root := os.DirFS("../..")
	for _, folder := range []string{"api", "pkg", "test", "hack"} {
		err := fs.WalkDir(root, folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := fs.ReadFile(root, path)
			for name := range missing {
				if strings.Contains(string(source), "func "+name+"(") {
					delete(missing, name)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range missing {
		t.Errorf("there is no test %s", name)
	}
}
