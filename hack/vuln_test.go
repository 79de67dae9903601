// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hack

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// vuln runs vuln.sh without a reachable database. It returns the checked modules, the output, and
// the error. The stub of govulncheck fails for the module given by fails.
func vuln(t *testing.T, fails string, env ...string) (modules []string, printed string, err error) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "govulncheck")
	const standIn = "#!/bin/sh\necho \"$2 $4 $5 $6\" >>\"$CHECKED\"\n[ \"$4\" != \"$FAILS\" ]\n"
	if err := os.WriteFile(program, []byte(standIn), 0o700); err != nil {
		t.Fatal(err)
	}
	checked := filepath.Join(dir, "checked")
	command := exec.CommandContext(t.Context(), "./vuln.sh")
	command.Env = append(os.Environ(), append([]string{
		"GOVULNCHECK=" + program, "CHECKED=" + checked, "FAILS=" + fails, "VULNDB=", "VULNDB_SOURCE=file://" + dir + "/none.zip", "VULNDB_COPY=" + filepath.Join(dir, "none"),
	}, env...)...)
	output, err := command.CombinedOutput()
	content, readErr := os.ReadFile(checked)
	if readErr == nil {
		modules = strings.Split(strings.TrimSpace(string(content)), "\n")
	}
	return modules, string(output), err
}

// All modules are checked even if some fail, with the requested database or a copy. Without a
// database, there is an error.
func TestVuln(t *testing.T) {
	t.Parallel()
	var want []string
	for _, pattern := range []string{"../go.mod", "../docs/examples/*/go.mod", "../hack/tools/*/go.mod"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			module := strings.TrimPrefix(filepath.Dir(file), "../")
			how := "./... "
			switch {
			case module == "..":
				module = "."
			case strings.HasPrefix(module, "hack/tools/"):
				how = "-scan module"
			}
			want = append(want, strings.TrimSpace("file:///db "+module+" "+how))
		}
	}
	for name, fails := range map[string]string{"none": "none", "root": ".", "example": "docs/examples/custom-upgrader"} {
		got, printed, err := vuln(t, fails, "VULNDB=file:///db")
		for i := range got {
			got[i] = strings.TrimSpace(got[i])
		}
		if !slices.Equal(got, want) || (err == nil) != (fails == "none") || err != nil && !strings.Contains(printed, fails+": vulnerable") {
			t.Errorf("%s: checked %q, want %q; %v: %s", name, got, want, err, printed)
		}
	}
	if got, printed, err := vuln(t, ""); err == nil || len(got) > 0 || !strings.Contains(printed, "no database of vulnerabilities") {
		t.Errorf("without a database: %q, %v, %s", got, err, printed)
	}
	copied := t.TempDir()
	if err := os.MkdirAll(filepath.Join(copied, "index"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(copied, "index", "db.json"), []byte(`{"modified":"2026-11-01T00:00:00Z"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, printed, err := vuln(t, "none", "VULNDB_COPY="+copied); err != nil || len(got) != len(want) || !strings.Contains(printed, "2026-11-01") {
		t.Errorf("with a copy: %q, %v, %s", got, err, printed)
	}
}

// Workflows pin actions by digest and grant jobs only the permissions they need: only the
// publishing job may write, and it runs after the tests.
func TestWorkflows(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../.github/workflows/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d workflows, %v", len(files), err)
	}
	uses := regexp.MustCompile(`(?m)^\s*- uses: (.*)$`)
	pinned := regexp.MustCompile(`^[a-z-]+/[a-z-]+@[0-9a-f]{40} # v[0-9.]+$`)
	for _, file := range files {
		content := string(readFile(t, file))
		for _, match := range uses.FindAllStringSubmatch(content, -1) {
			if !pinned.MatchString(match[1]) {
				t.Errorf("%s uses %s, which is not a digest", file, match[1])
			}
		}
		if !strings.Contains(content, "\npermissions:\n  contents: read\n") {
			t.Errorf("%s has other permissions by default", file)
		}
		if filepath.Base(file) != "release.yaml" && strings.Contains(content, ": write") {
			t.Errorf("%s may write", file)
		}
	}
	release := string(readFile(t, "../.github/workflows/release.yaml"))
	if !strings.Contains(release, "    needs: test\n    permissions:\n      contents: write ") || strings.Count(release, ": write") != 3 {
		t.Error("the job that publishes does not wait for the one that tests, or may write more than the release, its identity, and the provenance")
	}
	for _, step := range []string{"cosign sign-blob --yes --bundle dist/checksums.txt.sigstore.json dist/checksums.txt", "subject-checksums: dist/checksums.txt"} {
		if at := strings.Index(release, step); at < strings.Index(release, "make release") || at > strings.Index(release, "gh release create") {
			t.Errorf("%q is not between the build of the release and its publication", step)
		}
	}
	var bot struct {
		Updates []struct {
			Directory   string
			Directories []string
		}
	}
	if err := yaml.Unmarshal(readFile(t, "../.github/dependabot.yml"), &bot); err != nil {
		t.Fatal(err)
	}
	var watched []string
	for _, update := range bot.Updates {
		watched = append(watched, update.Directories...)
	}
	listed, err := exec.CommandContext(t.Context(), "git", "ls-files", "--full-name", ":/*go.mod").Output()
	if err != nil {
		t.Fatal(err)
	}
	for module := range strings.FieldsSeq(string(listed)) {
		module = path.Dir(module)
		if !slices.ContainsFunc(watched, func(pattern string) bool {
			matches, err := path.Match(pattern, path.Join("/", module))
			return err == nil && matches
		}) {
			t.Errorf("no bot updates the module in %s", module)
		}
	}
	if checks := string(readFile(t, "../.github/workflows/vulnerabilities.yaml")); !strings.Contains(checks, "schedule:") || !strings.Contains(checks, "make vuln") {
		t.Error("no workflow looks for vulnerabilities on a schedule")
	}
}
