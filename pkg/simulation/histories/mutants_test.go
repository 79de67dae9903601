// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

var mutate = flag.Bool("mutants", false, "apply to a copy of the sources the mutants that kept seeds have found, and check that the seeds still find them")

// mutant is a source change that a kept seed detects. The path is relative to the root of the
// module.
type mutant struct{ file, old, changed string }

// mutants are changes that reintroduce the defects found by kept seeds.
var mutants = map[string]mutant{
	"an upgrade that goes on without its object is forgotten once another one acquires its lock": {
		"pkg/lock/lock.go", "if continues, err = l.abandon(ctx, lease); err != nil {", "if err != nil {",
	},
	"the extra nodes of an upgrade stay whose record and Lease were lost while the operator was down": {
		"pkg/lifecycle/scope.go", "if s.isForgotten() {", "if false {",
	},
	"the extra nodes of an upgrade stay whose record was forged and whose Lease was lost while the operator was down": {
		"pkg/lifecycle/cancel.go", "!engine.Summarize(s.plan.Book, s.record, s.now, s.constraints()).Finished()", "!s.record.Finished()",
	},
	"two leaders whose clocks differ save in turn that a step is slow": {
		"pkg/engine/engine.go", "(isPauseChange(c, saved) || p.becomesSlow(step, saved, now)) && !now.Before",
		"p.becomesSlow(step, saved, now) || isPauseChange(c, saved) && !now.Before",
	},
}

// TestKeptSeedsFindTheirMutants checks that each mutant applies to the current sources and, with
// -mutants, that the kept seed fails with it.
func TestKeptSeedsFindTheirMutants(t *testing.T) {
	t.Parallel()
	for defect, m := range mutants {
		t.Run(defect, func(t *testing.T) {
			t.Parallel()
			i := slices.IndexFunc(failedSeeds, func(s failedSeed) bool { return s.defect == defect })
			if i < 0 {
				t.Fatal("no seed has found it")
			}
			file, changed := applyMutant(t, m)
			if !*mutate {
				return
			}
			binary := buildMutant(t, file, changed)
			kept := failedSeeds[i]
			args := []string{"-test.run=^TestSoak$", "-kind=" + string(UpgradeConfigs), "-seed=" + strconv.FormatUint(kept.seed, 10), "-actions=" + strconv.Itoa(kept.actions)}
			out, err := exec.CommandContext(t.Context(), binary, args...).CombinedOutput()
			if err == nil || !bytes.Contains(out, []byte("\nreplay: ")) && !bytes.Contains(out, []byte(" replay: ")) {
				t.Errorf("seed %d no longer finds it: %v\n%s", kept.seed, err, out)
			}
		})
	}
}

// applyMutant returns the name and the changed content of a mutant's source file.
func applyMutant(t *testing.T, m mutant) (file string, changed []byte) {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(root, m.file)
	source, err := os.ReadFile(file)
	if err != nil || bytes.Count(source, []byte(m.old)) != 1 {
		t.Fatalf("%s has %q %d times, %v", m.file, m.old, bytes.Count(source, []byte(m.old)), err)
	}
	return file, bytes.Replace(source, []byte(m.old), []byte(m.changed), 1)
}

// buildMutant builds the tests of this package with changed content of one source file and returns
// the path of the binary.
func buildMutant(t *testing.T, file string, content []byte) string {
	t.Helper()
	dir := t.TempDir()
	changed, overlay, binary := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "mutant.test")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{changed: content, overlay: replace} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", overlay, "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the mutant: %v\n%s", err, out)
	}
	return binary
}
