// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	source := "package x\n\ntype a struct{ b, c int }\n\ntype d interface{ e() }\n\nfunc (a) f() {}\n\nfunc g() { manager.H(manager.H) }\n"
	for name, content := range map[string]string{"x.go": source, "x_test.go": "package x\n\nfunc h() {}\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := run(&out, folder); err != nil {
		t.Fatal(err)
	}
	want := folder + ": 8 names (2 types, 2 fields, 2 methods, 1 functions, 1 of manager) in 9 lines\n"
	if got := out.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
