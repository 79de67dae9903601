// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The hub passes its own image to the Jobs that approve operators. Neither the manifests of a
// release nor a cluster after make deploy may contain an image from the source.
func TestRender_replaces_each_image(t *testing.T) {
	t.Parallel()
	kubectl := filepath.Join(t.TempDir(), "kubectl")
	if err := os.WriteFile(kubectl, []byte("#!/bin/sh\ncat \"$2/deployment.yaml\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for folder, count := range map[string]int{"operator": 1, "update-status": 1, "hub": 2} {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			const image = "registry.example.com/upgrades/operator@sha256:0a"
			cmd := exec.CommandContext(t.Context(), "../../hack/render.sh", "../../deploy/"+folder, image)
			cmd.Env = append(os.Environ(), "KUBECTL="+kubectl)
			rendered, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(rendered), "managed-upgrade-operator:latest") || strings.Count(string(rendered), ": "+image+"\n") != count {
				t.Errorf("want %d times %s:\n%s", count, image, rendered)
			}
		})
	}
}
