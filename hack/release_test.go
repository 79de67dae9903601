// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hack

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestRelease_is_refused checks that release.sh names what is wrong before it removes or writes a file.
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
