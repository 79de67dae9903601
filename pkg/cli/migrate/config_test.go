// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
)

// TestMigrateConfig converts the examples in testdata/migrate and compares the output.
func TestMigrateConfig(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]session.ExitCode{"all-keys": session.ExitActionRequired, "managed": session.ExitDone, "empty": session.ExitDone, "config-map": session.ExitDone} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, "migrate-config", "-f", filepath.Join("testdata", "migrate", name+".yaml"))
			if got.Code != code {
				t.Errorf("exit code %d, want %d", got.Code, code)
			}
			clitest.Golden(t, "migrate/"+name+".txt", got.Out+"---\n"+got.ErrOut, true)
		})
	}
	if got := run(t, "migrate-config", "-f", "/nowhere"); got.Code != session.ExitFailed || !strings.Contains(got.ErrOut, "/nowhere") {
		t.Errorf("a file that does not exist: exit code %d: %s", got.Code, got.ErrOut)
	}
	if got := run(t, "migrate-config", "-f", "migrate_test.go"); got.Code != session.ExitFailed || strings.Count(got.ErrOut, "\n") != 1 {
		t.Errorf("a file of another kind: exit code %d: %s", got.Code, got.ErrOut)
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
