// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hack_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestSite_pages checks what the documentation site derives from each page: its first heading
// becomes the title. A README becomes the page of its folder and must be listed in hugo.yaml.
func TestSite_pages(t *testing.T) {
	t.Parallel()
	var site struct {
		Module struct {
			Mounts []struct{ Source, Target string }
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "site/hugo.yaml")), &site); err != nil {
		t.Fatal(err)
	}
	mounted := map[string]bool{}
	for _, mount := range site.Module.Mounts {
		path := filepath.Join("site", mount.Source)
		if _, err := os.Stat(path); err != nil {
			t.Errorf("hugo.yaml mounts what does not exist: %v", err)
		}
		mounted[path] = true
	}
	title := regexp.MustCompile(`(?m)^##? .+$`)
	pages := 0
	err := filepath.WalkDir("../docs", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".md" || strings.HasPrefix(path, "../docs/examples/") {
			return err
		}
		pages++
		if !title.MatchString(read(t, path)) {
			t.Errorf("%s has no title", path)
		}
		if entry.Name() == "README.md" && !mounted[path] {
			t.Errorf("hugo.yaml does not mount %s", path)
		}
		return nil
	})
	if err != nil || pages < 100 {
		t.Errorf("%d pages, %v", pages, err)
	}
}

// TestSite_versions builds two versions with a program that only records how it is called.
func TestSite_versions(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	hugo := filepath.Join(t.TempDir(), "hugo")
	const program = "#!/bin/sh\nmkdir -p \"$4\" && echo \"$HUGO_PARAMS_VERSION\" > \"$4/index.html\"\n"
	if err := os.WriteFile(hugo, []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"v0.9.0", "v0.10.0"} {
		cmd := exec.CommandContext(t.Context(), "./site.sh", version, folder)
		cmd.Env = append(os.Environ(), "HUGO="+hugo)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if got := strings.TrimSpace(read(t, filepath.Join(folder, version, "index.html"))); got != version {
			t.Errorf("the pages of %s say %q", version, got)
		}
		if start := read(t, filepath.Join(folder, "index.html")); !strings.Contains(start, "url="+version+"/") {
			t.Errorf("the start page leads to %s", start)
		}
	}
	if got := strings.TrimSpace(read(t, filepath.Join(folder, "versions.json"))); got != `["v0.10.0","v0.9.0"]` {
		t.Errorf("the versions are %s", got)
	}
}
