// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hack

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestCI_runs_each_stage checks that the workflow has a job for each stage of .ci/run, and one for each
// part of the stage e2e.
func TestCI_runs_each_stage(t *testing.T) {
	t.Parallel()
	var workflow struct {
		Jobs struct {
			CI struct {
				Strategy struct {
					Matrix struct {
						Include []struct{ Stage, Part string }
					}
				}
			}
		}
	}
	if err := yaml.Unmarshal(readFile(t, "../.github/workflows/ci.yaml"), &workflow); err != nil {
		t.Fatal(err)
	}
	var jobs, parts []string
	for _, job := range workflow.Jobs.CI.Strategy.Matrix.Include {
		if !slices.Contains(jobs, job.Stage) {
			jobs = append(jobs, job.Stage)
		}
		if job.Stage == "e2e" {
			parts = append(parts, job.Part)
		}
	}
	script := string(readFile(t, "../.ci/run"))
	if want := strings.Fields(assigned(t, script, `stages="([^"]+)"`)); !slices.Equal(jobs, want) {
		t.Errorf("the jobs are of the stages %q, want %q", jobs, want)
	}
	if want := strings.Fields(assigned(t, string(readFile(t, "../boilerplate/test.mk")), `(?m)^E2E_PART \?= (.+)$`)); !slices.Equal(parts, want) {
		t.Errorf("the jobs of e2e are of the parts %q, want %q", parts, want)
	}
	var run []string
	for _, match := range regexp.MustCompile(`(?m)^ *(?:stage|beside) ([a-z0-9-]+) make`).FindAllStringSubmatch(script, -1) {
		run = append(run, match[1])
	}
	slices.Sort(run)
	if slices.Sort(jobs); !slices.Equal(run, jobs) {
		t.Errorf(".ci/run has the stages %q and runs %q", jobs, run)
	}
}

// assigned returns what the first group of the pattern matches.
func assigned(t *testing.T, text, pattern string) string {
	t.Helper()
	match := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if match == nil {
		t.Fatalf("nothing matches %s", pattern)
	}
	return match[1]
}

func TestCI_rejects_an_unknown_stage(t *testing.T) {
	t.Parallel()
	output, err := exec.CommandContext(t.Context(), "../.ci/run", "lint", "typo").CombinedOutput()
	if err == nil || !strings.Contains(string(output), "no stage typo") {
		t.Errorf("got %v: %s", err, output)
	}
}
