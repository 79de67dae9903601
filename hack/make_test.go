// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hack

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMake_has_no_target_that_a_file_hides checks that every target listed by make is phony.
// Otherwise, a file or folder with its name, such as deploy, hides the target: make does nothing
// and succeeds.
func TestMake_has_no_target_that_a_file_hides(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../boilerplate/*.mk")
	if err != nil {
		t.Fatal(err)
	}
	targets, phony := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		content := string(readFile(t, file))
		for _, match := range regexp.MustCompile(`(?m)^([a-z0-9-]+):[^=\n]*## `).FindAllStringSubmatch(content, -1) {
			targets[match[1]] = true
		}
		for _, match := range regexp.MustCompile(`(?m)^\.PHONY:(.*)$`).FindAllStringSubmatch(content, -1) {
			for name := range strings.FieldsSeq(match[1]) {
				phony[name] = true
			}
		}
	}
	for wanted := range strings.FieldsSeq("install uninstall deploy undeploy run docker-build docker-push bundle bundle-build manifests generate fmt vet release") {
		if !targets[wanted] {
			t.Errorf("make lists no target %s", wanted)
		}
	}
	for target := range targets {
		if !phony[target] {
			t.Errorf("%s is not phony", target)
		}
	}
}
