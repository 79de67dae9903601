// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestMigrateConfig converts the examples in testdata/migrate, and compares what is printed.
func TestMigrateConfig(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]ExitCode{"all-keys": ExitActionRequired, "managed": ExitDone, "empty": ExitDone, "config-map": ExitDone} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, "migrate-config", "-f", filepath.Join("testdata", "migrate", name+".yaml"))
			if got.code != code {
				t.Errorf("exit code %d, want %d", got.code, code)
			}
			golden(t, "migrate/"+name+".txt", got.out+"---\n"+got.errOut, true)
		})
	}
	if got := run(t, "migrate-config", "-f", "/nowhere"); got.code != ExitFailed || !strings.Contains(got.errOut, "/nowhere") {
		t.Errorf("a file that does not exist: exit code %d: %s", got.code, got.errOut)
	}
	if got := run(t, "migrate-config", "-f", "migrate_test.go"); got.code != ExitFailed || strings.Count(got.errOut, "\n") != 1 {
		t.Errorf("a file of another kind: exit code %d: %s", got.code, got.errOut)
	}
}

func TestGlobOf(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"shop": "*shop*", "^shop$": "shop", "example-.+": "*example-*", "^redhat-.*": "redhat-*", "(a|b)": "", "a.b": "", "[a-c]": "", "": "",
	} {
		if got, ok := globOf(expression); got != want || ok != (want != "") {
			t.Errorf("%q: got %q (%t), want %q", expression, got, ok, want)
		}
	}
}
