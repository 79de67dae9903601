// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"os"
	"strings"
	"testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/statuscontroller"
)

// The pages show the output of the program.
func TestPages_have_the_screens(t *testing.T) {
	t.Parallel()
	pages := map[string][]string{"../../../docs/concepts/command-line.md": nil}
	for name := range designScreens() {
		pages["../../../docs/concepts/command-line.md"] = append(pages["../../../docs/concepts/command-line.md"], name)
	}
	for page, screens := range pages {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, screen := range screens {
			printed, err := os.ReadFile("testdata/screens/" + screen + "-80.txt")
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(content), string(printed)+"```") {
				t.Errorf("%s lacks the screen %s", page, screen)
			}
		}
	}
}

func TestLease_is_that_of_the_controller(t *testing.T) {
	t.Parallel()
	if session.ControllerLease != statuscontroller.LeaderLease {
		t.Errorf("Lease %s, want %s", session.ControllerLease, statuscontroller.LeaderLease)
	}
}
