// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// pkg is a package as described by "go list -json".
type pkg struct {
	ImportPath, Dir                    string
	GoFiles                            []string
	Imports, TestImports, XTestImports []string
	TestGoFiles, XTestGoFiles          []string
	Module                             struct{ Path string }

	relative string
	// dependents lists the packages whose tests run after the package's own tests.
	dependents []string
}

// golang returns a go command.
func golang(ctx context.Context, arguments ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "go", arguments...) //nolint:gosec // The caller names the packages.
}

// list returns the packages that match patterns.
func list(ctx context.Context, patterns ...string) ([]pkg, error) {
	output, err := golang(ctx, append([]string{"list", "-json"}, patterns...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w", err)
	}
	var all []pkg
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p pkg
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("decoding packages: %w", err)
		}
		p.relative = strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, p.Module.Path), "/")
		all = append(all, p)
	}
}

// load returns the packages that match patterns, including packages with tests that import them.
func load(ctx context.Context, patterns []string) ([]pkg, error) {
	packages, err := list(ctx, patterns...)
	if err != nil {
		return nil, err
	}
	all, err := list(ctx, "./...")
	if err != nil {
		return nil, err
	}
	for i := range packages {
		for _, other := range all {
			imports := slices.Concat(other.Imports, other.TestImports, other.XTestImports)
			tested := len(other.TestGoFiles)+len(other.XTestGoFiles) > 0
			if tested && other.ImportPath != packages[i].ImportPath && slices.Contains(imports, packages[i].ImportPath) {
				packages[i].dependents = append(packages[i].dependents, other.ImportPath)
			}
		}
	}
	return packages, nil
}

// result is the result of testing a mutant.
type result string

const (
	killed   result = "killed  "
	timedOut result = "timeout "
	survived result = "SURVIVED"
	invalid  result = "invalid "
)

// try runs the tests with a mutant. It returns the package that detected it.
func try(ctx context.Context, m mutant, o options) (result, string, error) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return "", "", fmt.Errorf("reading source: %w", err)
	}
	directory, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return "", "", fmt.Errorf("creating directory: %w", err)
	}
	defer os.RemoveAll(directory)
	changed, overlay := filepath.Join(directory, "changed.go"), filepath.Join(directory, "overlay.json")
	replaced, err := json.Marshal(map[string]map[string]string{"Replace": {m.file: changed}})
	if err != nil {
		return "", "", fmt.Errorf("encoding overlay: %w", err)
	}
	//nolint:gosec // A directory of its own for temporary files.
	if err := errors.Join(os.WriteFile(changed, m.apply(source), 0o600), os.WriteFile(overlay, replaced, 0o600)); err != nil {
		return "", "", fmt.Errorf("writing mutant: %w", err)
	}
	if golang(ctx, "build", "-overlay", overlay, m.pkg.ImportPath).Run() != nil {
		return invalid, "", nil
	}
	for _, path := range o.tested(m.pkg) {
		if output, err := test(ctx, o, path, "-overlay", overlay); err != nil {
			return resultOf(output), " by " + strings.TrimPrefix(path, m.pkg.Module.Path+"/"), nil
		}
	}
	return survived, "", nil
}

// tested returns the packages whose tests run for a mutant of a package.
func (o options) tested(p pkg) []string {
	tested := []string{p.ImportPath}
	if o.dependents {
		tested = append(tested, p.dependents...)
	}
	return tested
}

// test runs the tests of a package and returns their output.
func test(ctx context.Context, o options, path string, flags ...string) (output []byte, err error) {
	arguments := append([]string{"test", "-short", "-count", "1", "-failfast", "-vet=off", "-ldflags=-s -w", "-timeout", o.timeout.String()}, flags...)
	return golang(ctx, append(arguments, path)...).CombinedOutput()
}

// resultOf returns the result for a mutant whose tests failed with this output.
func resultOf(output []byte) result {
	if bytes.Contains(output, []byte("panic: test timed out after ")) {
		return timedOut
	}
	return killed
}

// baseline runs the tests of the unchanged packages. It returns an error if any fail, because they
// would count every mutant as detected.
func baseline(ctx context.Context, packages []pkg, o options) error {
	passed := map[string]bool{}
	for _, p := range packages {
		for _, path := range o.tested(p) {
			if passed[path] {
				continue
			}
			if output, err := test(ctx, o, path); err != nil {
				return fmt.Errorf("the tests of the unchanged package %s fail: %w\n%s", path, err, output)
			}
			passed[path] = true
		}
	}
	return nil
}
