// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// TestImage_has_each_program compares the programs in the image with those in cmd, the commands of the
// Deployments, and what is sent to the builder.
func TestImage_has_each_program(t *testing.T) {
	t.Parallel()
	dockerfile, ignore := readFile(t, "../../Dockerfile"), strings.Split(readFile(t, "../../.dockerignore"), "\n")
	var want []string
	entries, err := os.ReadDir("../../cmd")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() != "devcluster" { // for developers
			want = append(want, entry.Name())
		}
	}
	build := regexp.MustCompile(`(?m)^RUN .*go build .*$`).FindString(dockerfile)
	var built []string
	for _, match := range regexp.MustCompile(` \./cmd/([a-z-]+)`).FindAllStringSubmatch(build, -1) {
		built = append(built, match[1])
	}
	if diff := cmp.Diff(want, built); diff != "" {
		t.Errorf("programs (-cmd +Dockerfile):\n%s", diff)
	}
	for _, program := range built {
		folder := "cmd/" + program
		if !strings.Contains(dockerfile, "COPY "+folder+" "+folder+"\n") || !slices.Contains(ignore, "!"+folder) {
			t.Errorf("%s is not copied, or .dockerignore leaves it out", folder)
		}
	}
	for _, folder := range installFolders {
		container := pick[appsv1.Deployment](t, kustomizedFrom(t, folder), "Deployment")[0].Spec.Template.Spec.Containers[0]
		program := "operator" // the entry point
		if len(container.Command) > 0 {
			program = strings.TrimPrefix(container.Command[0], "/")
		}
		if !slices.Contains(built, program) {
			t.Errorf("%s runs %s, which is not in the image", folder, program)
		}
	}
}

// TestWorkflows_call_make checks that each target of make that a workflow calls exists.
func TestWorkflows_call_make(t *testing.T) {
	t.Parallel()
	targets := map[string]bool{}
	makefiles, err := os.ReadDir("../../boilerplate")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range makefiles {
		if strings.HasSuffix(file.Name(), ".mk") {
			for _, match := range regexp.MustCompile(`(?m)^([a-z0-9-]+):`).FindAllStringSubmatch(readFile(t, "../../boilerplate/"+file.Name()), -1) {
				targets[match[1]] = true
			}
		}
	}
	for _, file := range []string{"ci.yaml", "release.yaml"} {
		var workflow struct {
			Jobs map[string]struct {
				Steps []struct {
					Run string `json:"run"`
				} `json:"steps"`
			} `json:"jobs"`
		}
		if err := yaml.Unmarshal([]byte(readFile(t, "../../.github/workflows/"+file)), &workflow); err != nil {
			t.Fatal(err)
		}
		for _, job := range workflow.Jobs {
			for _, step := range job.Steps {
				if target, called := strings.CutPrefix(step.Run, "make "); called && !targets[strings.Fields(target)[0]] {
					t.Errorf("%s calls %q, and there is no such target", file, step.Run)
				}
			}
		}
	}
}
