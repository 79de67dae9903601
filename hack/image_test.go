// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hack

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

const (
	repository = ".."
	version    = "v9.8.7-image" // of the programs in the image
)

// TestImage builds the root file system of the image without a container engine.
func TestImage(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("links four programs")
	}
	build, image := buildImage(t, "../Dockerfile")
	for _, program := range []string{"hub", "kubectl-update", "operator", "update-status-controller"} {
		file := filepath.Join(image, program)
		if content := readFile(t, file); !bytes.Contains(content, []byte(version)) || bytes.Contains(content, []byte(build)) {
			t.Errorf("%s does not have its version, or has the path of the folder in which it was built", program)
		}
		executable, err := elf.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, header := range executable.Progs {
			if header.Type == elf.PT_INTERP {
				t.Errorf("%s is not linked statically", program)
			}
		}
		if err := executable.Close(); err != nil {
			t.Fatal(err)
		}
		info, err := buildinfo.ReadFile(file)
		if err != nil || len(info.Deps) == 0 {
			t.Fatalf("%s: %v, and the modules %v", program, err, info)
		}
		for _, module := range info.Deps {
			if texts, err := os.ReadDir(filepath.Join(image, "licenses", module.Path)); err != nil || len(texts) == 0 {
				t.Errorf("%s has no license of %s: %v", program, module.Path, err)
			}
		}
	}
	for _, license := range []string{"LICENSE", "go/LICENSE"} {
		if len(readFile(t, filepath.Join(image, "licenses", license))) == 0 {
			t.Errorf("%s is empty", license)
		}
	}
}

// buildImage runs the instructions of a Dockerfile in a folder that contains only the copied files
// that .dockerignore includes. It returns the build folder and the root file system of the image.
func buildImage(t *testing.T, dockerfile string) (build, image string) {
	t.Helper()
	build, image = t.TempDir(), t.TempDir()
	const certificates = "/etc/ssl/certs/ca-certificates.crt"
	source := filepath.Join(build, "src")
	hasCertificates, stage := false, ""
	for line := range strings.SplitSeq(strings.ReplaceAll(string(readFile(t, dockerfile)), "\\\n", ""), "\n") {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		arguments := words[1:]
		switch last := arguments[len(arguments)-1]; {
		case words[0] == "FROM":
			stage = last
		case words[0] == "COPY" && stage == "build":
			for _, from := range arguments[:len(arguments)-1] {
				copyContext(t, from, filepath.Join(source, last), strings.HasSuffix(last, "/"))
			}
		case words[0] == "COPY" && arguments[1] == certificates:
			hasCertificates = true // in the base image
		case words[0] == "COPY":
			copyFiles(t, filepath.Join(build, arguments[1]), filepath.Join(image, last))
		case words[0] == "RUN" && strings.Join(arguments, " ") != "go mod download":
			command := strings.NewReplacer(" /out", " "+build+"/out", " /licenses", " "+build+"/licenses").Replace(strings.Join(arguments, " "))
			run(t, source, command, "GOFLAGS=-buildvcs=false", "GOFIPS140=off", "TARGETOS=linux", "TARGETARCH="+runtime.GOARCH, "VERSION="+version)
		}
	}

	if !hasCertificates {
		t.Error("the image has no certificates")
	}
	return build, image
}

// TestImage_of_the_example builds the image of the example upgrader and prints its runbook.
func TestImage_of_the_example(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("links a program")
	}
	_, image := buildImage(t, "../docs/examples/custom-upgrader/Dockerfile")
	printed, err := exec.CommandContext(t.Context(), filepath.Join(image, "custom-upgrader"), "docs", "SHOP").CombinedOutput()
	if err != nil || !bytes.Contains(printed, []byte("| NoChangeFreeze | ")) {
		t.Errorf("%v\n%s", err, printed)
	}
}

// TestRelease_has_the_Go_version_of_the_image compares the Go versions that build the programs in
// the image and the plugin.
func TestRelease_has_the_Go_version_of_the_image(t *testing.T) {
	t.Parallel()
	builder := regexp.MustCompile(`(?m)^ARG GO_IMAGE=golang:(\d+\.\d+\.\d+)$`).FindSubmatch(readFile(t, "../Dockerfile"))
	if builder == nil {
		t.Fatal("the Dockerfile has no builder with a patch version of Go")
	}
	workflow := regexp.MustCompile(`(?m)^ +go-version: (\S+)`).FindSubmatch(readFile(t, "../.github/workflows/release.yaml"))
	if workflow == nil || !bytes.Equal(workflow[1], builder[1]) {
		t.Errorf("the Dockerfile has Go %s, and the workflow %s", builder[1], workflow)
	}
	if !bytes.Contains(readFile(t, "../docs/examples/custom-upgrader/Dockerfile"), builder[0]) {
		t.Errorf("the Dockerfile of the example does not have Go %s", builder[1])
	}
}

// TestKrew_builds_the_same_archive checks that builds of the plugin are reproducible: in different
// folders, at different times, and with a different umask.
func TestKrew_builds_the_same_archive(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("links two programs")
	}
	platform := "linux_" + runtime.GOARCH
	var archives [][]byte
	for folder, umask := range map[string]string{"one": "022", "another": "077"} {
		source := filepath.Join(t.TempDir(), folder)
		for _, from := range []string{"go.mod", "go.sum", "LICENSE", "api", "cmd/kubectl-update", "pkg"} {
			copyContext(t, from, filepath.Join(source, from), false)
		}
		for _, script := range []string{"archive.sh", "krew.sh", "licenses.sh"} {
			copyFiles(t, script, filepath.Join(source, "hack", script))
		}
		for _, file := range []string{"deploy/krew/kubectl_complete-update", "hack/commands/main.go"} {
			copyFiles(t, filepath.Join(repository, file), filepath.Join(source, file))
		}
		manifest := filepath.Join(source, "deploy/krew/openshift-update.yaml")
		if err := os.MkdirAll(filepath.Dir(manifest), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(manifest, []byte("version: VERSION\nsha256: SHA256_"+platform+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, source, "umask "+umask+" && hack/krew.sh v9.8.7", "GOFLAGS=-buildvcs=false", "SOURCE_DATE_EPOCH=1772485200")
		archives = append(archives, readFile(t, filepath.Join(source, "dist", "kubectl-update_"+platform+".tar.gz")))
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("the archives differ")
	}
}

// copyContext copies a file or folder of the repository, except for files excluded by
// .dockerignore.
func copyContext(t *testing.T, from, to string, into bool) {
	t.Helper()
	patterns := strings.Split(string(readFile(t, "../.dockerignore")), "\n")
	copied := 0
	err := fs.WalkDir(os.DirFS(repository), from, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || ignored(name, patterns) {
			return err
		}
		copied++
		target := filepath.Join(to, strings.TrimPrefix(name, from))
		if into {
			target = filepath.Join(to, path.Base(name))
		}
		copyFiles(t, filepath.Join(repository, name), target)
		return nil
	})
	if err != nil || copied == 0 {
		t.Fatalf("copying %s: %v, %d files", from, err, copied)
	}
}

// ignored reports whether .dockerignore excludes a name: the last pattern that matches the name or
// one of its parents decides.
func ignored(name string, patterns []string) bool {
	excluded := false
	for _, pattern := range patterns {
		bare, included := strings.CutPrefix(pattern, "!")
		for parent := name; parent != "."; parent = path.Dir(parent) {
			base, anywhere := strings.CutPrefix(bare, "**/")
			compared := parent
			if anywhere {
				compared = path.Base(parent)
			}
			if matches, err := path.Match(base, compared); err == nil && matches {
				excluded = !included
			}
		}
	}
	return excluded
}

// copyFiles copies a file or a folder with its permissions.
func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	if err != nil {
		t.Fatal(err)
	}
	if info.IsDir() {
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, readFile(t, from), info.Mode()); err != nil {
		t.Fatal(err)
	}
}

// run runs a shell command in a folder.
func run(t *testing.T, folder, command string, environment ...string) {
	t.Helper()
	shell := exec.CommandContext(t.Context(), "sh", "-ec", command)
	shell.Dir, shell.Env = folder, append(os.Environ(), environment...)
	if output, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, output)
	}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
