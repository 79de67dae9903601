// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var mutate = flag.Bool("mutants", false, "build the mutants of all kept seeds, and check that each seed fails with its own; -histories searches for others in place of those that do not")

// mutant is a change of the sources that puts a defect back. More than one place has to change if one guards against what
// the other lets through. In a changed text, MUTANT is true while the mutant is on: all mutants are in one binary, and the
// environment says which one is on.
type mutant []struct{ file, old, changed string }

// TestKeptSeedsFindTheirMutants checks that each mutant applies to the current sources and, with -mutants, that the kept
// seed, or the test in its place, fails with it.
func TestKeptSeedsFindTheirMutants(t *testing.T) {
	t.Parallel()
	sources := applyMutants(t)
	if !*mutate {
		return
	}
	overlay, binary := buildMutants(t, sources)
	for _, kept := range keptTests {
		t.Run(kept.defect, func(t *testing.T) {
			t.Parallel()
			run := exec.CommandContext(t.Context(), "go", "test", "-short", "-overlay", overlay, "-run", "^"+kept.test+"$", "./"+kept.pkg)
			run.Dir, run.Env = "../../..", append(os.Environ(), "MUTANT="+kept.defect)
			if out, err := run.CombinedOutput(); err == nil || !bytes.Contains(out, []byte("--- FAIL: "+kept.test+" ")) {
				t.Errorf("%s of %s does not find it: %v\n%s", kept.test, kept.pkg, err, out)
			}
		})
	}
	for of, seeds := range keptSeeds {
		for _, kept := range seeds {
			t.Run(kept.defect, func(t *testing.T) {
				t.Parallel()
				found, out := finds(t, binary, kept.defect, "-kind="+string(of), "-seed="+strconv.FormatUint(kept.seed, 10), "-actions="+strconv.Itoa(kept.actions))
				if found {
					t.Log(violations(out))
					return
				}
				t.Errorf("seed %d no longer finds it", kept.seed)
				if *count == 0 {
					return
				}
				_, out = finds(t, binary, kept.defect, "-kind="+string(of), "-histories="+strconv.FormatUint(*count, 10), "-from="+strconv.FormatUint(*from, 10), "-first")
				t.Logf("of %d others:\n%s", *count, violations(out))
				if other := replayed.FindSubmatch(out); other != nil {
					if broken, _ := finds(t, binary, "", "-kind="+string(of), "-seed="+string(other[1])); broken {
						t.Errorf("seed %s fails without the mutant, too", other[1])
					}
				}
			})
		}
	}
}

// replayed finds the seed of a history that has failed.
var replayed = regexp.MustCompile(`replay: .* -seed=(\d+)`)

// finds runs histories with a mutant, and reports whether one of them fails.
func finds(t *testing.T, binary, defect string, args ...string) (bool, []byte) {
	t.Helper()
	run := exec.CommandContext(t.Context(), binary, append(args, "-test.run=^TestSoak$", "-test.timeout=0")...)
	run.Env = append(os.Environ(), "MUTANT="+defect)
	out, err := run.CombinedOutput()
	found := bytes.Contains(out, []byte("replay: "))
	if err != nil && !found {
		t.Fatalf("%v\n%s", err, out)
	}
	return found, out
}

// violations returns the lines with the seeds that have failed, and why.
func violations(out []byte) string {
	var found []string
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, ": seed ") && !strings.Contains(line, " actions, ") || strings.Contains(line, "replay: ") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return strings.Join(found, "\n")
}

// applyMutants returns the sources with all mutants, by file.
func applyMutants(t *testing.T) map[string][]byte {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	mutants := map[string]mutant{}
	for _, seeds := range keptSeeds {
		for _, kept := range seeds {
			mutants[kept.defect] = kept.mutant
		}
	}
	for _, kept := range keptTests {
		mutants[kept.defect] = kept.mutant
	}
	sources := map[string][]byte{}
	for _, defect := range slices.Sorted(maps.Keys(mutants)) {
		on := fmt.Sprintf("(mutantOn == %q)", defect)
		for _, m := range mutants[defect] {
			file := filepath.Join(root, m.file)
			if sources[file] == nil {
				if sources[file], err = os.ReadFile(file); err != nil {
					t.Fatal(err)
				}
			}
			if n := bytes.Count(sources[file], []byte(m.old)); n != 1 {
				t.Errorf("%s: %s has %q %d times", defect, m.file, m.old, n)
			}
			sources[file] = bytes.Replace(sources[file], []byte(m.old), []byte(strings.ReplaceAll(m.changed, "MUTANT", on)), 1)
		}
	}
	return sources
}

// buildMutants builds the tests of this package with other contents of source files. It returns the overlay with those and
// the binary.
func buildMutants(t *testing.T, sources map[string][]byte) (overlay, binary string) {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	write := func(file string, content []byte) {
		replace[file] = filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		if err := os.WriteFile(replace[file], content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for file, content := range sources {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, content, parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		write(file, content)
		if on := filepath.Join(filepath.Dir(file), "mutant_on.go"); replace[on] == "" {
			write(on, fmt.Appendf(nil, "package %s\n\nimport \"os\"\n\nvar mutantOn = os.Getenv(\"MUTANT\")\n", parsed.Name.Name))
		}
	}
	overlay, binary = filepath.Join(dir, "overlay.json"), filepath.Join(dir, "mutants.test")
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", overlay, "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the mutants: %v\n%s", err, out)
	}
	return overlay, binary
}
