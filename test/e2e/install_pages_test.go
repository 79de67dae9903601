// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
)

// placeholderImage is the image of the manifests in deploy. No registry has it: make deploy and releases replace it.
const placeholderImage = "managed-upgrade-operator:latest"

var (
	// kustomizationFlag is the folder of "oc apply -k FOLDER", "oc create --kustomize=FOLDER", and "kubectl kustomize FOLDER".
	kustomizationFlag = regexp.MustCompile(`\b(?:apply|create|replace|kustomize)\b[^\n` + "`" + `|]*?(?:-k[ =]?|--kustomize[ =]|\bkustomize )([\w./:?=-]*\w)`)
	releasedFile      = regexp.MustCompile(`/managed-upgrade-operator/releases/(?:latest/download|download/v[\w.]+)/([\w.-]*\w)`)
	writtenInstall    = regexp.MustCompile(`(?m)^(?:render \S+ |.* > dist/)(\S+)$`)
)

// TestPages_install_images_that_exist checks every command that applies a kustomization, on pages, in comments of manifests,
// and in messages of the programs: what it applies has no placeholder in place of an image. If a
// command names a file of a release, a release has that file.
func TestPages_install_images_that_exist(t *testing.T) {
	t.Parallel()
	released := map[string]bool{}
	for _, written := range writtenInstall.FindAllStringSubmatch(readFile(t, filepath.Join(repository, "hack/release.sh")), -1) {
		released[written[1]] = true
	}
	applied, downloaded := 0, 0
	for file, content := range instructions(t) {
		for _, match := range kustomizationFlag.FindAllStringSubmatch(content, -1) {
			applied++
			if image := placeholderIn(t, match[1]); image != "" {
				t.Errorf("%s: %q installs %s", file, match[0], image)
			}
		}
		for _, match := range releasedFile.FindAllStringSubmatch(content, -1) {
			downloaded++
			if name := match[1]; !released[name] && !strings.HasPrefix(name, "kubectl-update_") && name != "openshift-update.yaml" {
				t.Errorf("%s: no release has %s; releases have %v", file, match[0], released)
			}
		}
	}
	if applied < 5 || downloaded < 5 {
		t.Errorf("found %d commands that apply a kustomization, and %d files of a release", applied, downloaded)
	}
}

// release returns two files of a release: the manifest that installs the operator, and an archive of the plugin.
func release(t *testing.T) (string, string) {
	t.Helper()
	bin, err := controlplane.FindBinDir()
	mustSucceed(t, err)
	folder := t.TempDir()
	for _, name := range []string{"kubectl-update", "kubectl_complete-update"} {
		mustSucceed(t, os.WriteFile(filepath.Join(folder, name), nil, 0o600))
	}
	files := map[string][]string{
		"install.yaml": {"render.sh", deployFolder, "registry.example.com/managed-upgrade-operator:v0.2.0"}, "plugin.tar.gz": {"archive.sh", folder},
	}
	out := t.TempDir()
	for name, command := range files {
		cmd := exec.CommandContext(t.Context(), filepath.Join(repository, "hack", command[0]), command[1:]...)
		cmd.Env = append(os.Environ(), "KUBECTL="+filepath.Join(bin, "kubectl"))
		written, err := cmd.Output()
		mustSucceed(t, err)
		mustSucceed(t, os.WriteFile(filepath.Join(out, name), written, 0o600))
	}
	return filepath.Join(out, "install.yaml"), filepath.Join(out, "plugin.tar.gz")
}

// instructions returns the content of each file that tells a user what to run.
func instructions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, folder := range []string{"README.md", "CONTRIBUTING.md", "docs", "deploy", "pkg", "cmd", "hack", "boilerplate"} {
		mustSucceed(t, filepath.WalkDir(filepath.Join(repository, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() && entry.Name() == "decisions" {
				return errOr(err, fs.SkipDir)
			}
			name := entry.Name()
			if !entry.IsDir() && slices.Contains([]string{".md", ".yaml", ".sh", ".go", ".mk"}, filepath.Ext(name)) && !strings.HasSuffix(name, "_test.go") {
				found[path] = readFile(t, path)
			}
			return nil
		}))
	}
	return found
}

func errOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// placeholderIn returns the placeholder that a folder of this repository renders instead of an image, or "" if there is none.
func placeholderIn(t *testing.T, folder string) string {
	t.Helper()
	folder = strings.TrimPrefix(folder, "https://github.com/managed-upgrade/managed-upgrade-operator/")
	bin, err := controlplane.FindBinDir()
	mustSucceed(t, err)
	path := filepath.Join(repository, folder)
	if !strings.HasPrefix(folder, "deploy") {
		return ""
	}
	rendered, err := exec.CommandContext(t.Context(), filepath.Join(bin, "kubectl"), "kustomize", path).Output()
	if err != nil {
		t.Errorf("kubectl kustomize %s: %v", folder, err)
	}
	if strings.Contains(string(rendered), placeholderImage) {
		return placeholderImage
	}
	return ""
}
