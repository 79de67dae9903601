// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRelease_is_refused checks that release.sh reports errors before it removes or writes any
// file.
func TestRelease_is_refused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ version, image, want string }{
		"a version that is none":         {"latest", "example", "latest must be a version such as v0.1.0"},
		"no image":                       {"v0.1.0", "", "IMG is missing"},
		"no section of the changelog":    {"v99.0.0", "example", `CHANGELOG.md has no section "## v99.0.0"`},
		"a part of a version of another": {"v0.1.0-rc.1", "example", `CHANGELOG.md has no section "## v0.1.0-rc.1"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			release := exec.CommandContext(t.Context(), "./release.sh", tc.version)
			release.Env = append(os.Environ(), "IMG="+tc.image)
			output, err := release.CombinedOutput()
			if err == nil || !strings.Contains(string(output), tc.want) {
				t.Errorf("got %v and %s, want %q", err, output, tc.want)
			}
		})
	}
}

// TestRender_pins_the_pages_of_alerts checks that the alerts of a release link to the pages of its
// tag, and the alerts of a checkout to the pages of the main branch.
func TestRender_pins_the_pages_of_alerts(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	kubectl := filepath.Join(state, "kubectl")
	const page = "runbook_url: https://github.com/example/operator/blob/main/docs/alerts/Failed.md\n"
	for file, content := range map[string]string{kubectl: client, filepath.Join(state, "manifests"): page} {
		if err := os.WriteFile(file, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for tag, want := range map[string]string{"": page, "v0.2.0": strings.Replace(page, "main", "v0.2.0", 1)} {
		render := exec.CommandContext(t.Context(), "./render.sh", "deploy", "example", tag)
		render.Env = append(os.Environ(), "KUBECTL="+kubectl, "STATE="+state)
		if output, err := render.CombinedOutput(); err != nil || string(output) != want {
			t.Errorf("with the tag %q: %v and %s, want %s", tag, err, output, want)
		}
	}
}
