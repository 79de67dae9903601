// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package golden compares texts that people read with golden files, so tests assert reasons and objects, and a
// better sentence is a change of one line. `hack/update-texts.sh` renews the files.
package golden

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Update is the flag that writes the golden files.
var Update = flag.Bool("update", false, "write the golden files")

const file = "testdata/texts.txt"

var (
	mu    sync.Mutex
	texts = sync.OnceValue(read)
)

// read returns the texts of a package by case. Each line of the file is a case, a tab, and a text.
func read() map[string][]string {
	found := map[string][]string{}
	content, err := os.ReadFile(file)
	if err != nil {
		return found
	}
	for line := range strings.Lines(string(content)) {
		key, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		found[key] = append(found[key], text)
	}
	return found
}

// Texts compares what a test observed with the lines of the test in the golden file of its package. If a test compares
// several times, the names of its cases differ. Empty texts are left out.
func Texts(tb testing.TB, name string, got ...string) {
	tb.Helper()
	key := strings.TrimSuffix(tb.Name()+" "+name, " ")
	got = slices.DeleteFunc(slices.Clone(got), func(text string) bool { return text == "" })
	for i := range got {
		got[i] = strings.ReplaceAll(got[i], "\n", `\n`)
	}
	mu.Lock()
	defer mu.Unlock()
	if *Update {
		texts()[key] = got
		write(tb)
		return
	}
	if diff := cmp.Diff(texts()[key], got); diff != "" && len(texts()[key])+len(got) > 0 {
		tb.Errorf("%s differs in the case %q, renew it with hack/update-texts.sh (-want +got):\n%s", file, key, diff)
	}
}

// Events compares the part of each text before its first colon, such as the reason of an Event, with want, and the texts
// as Texts does.
func Events(tb testing.TB, name string, want []string, got ...string) {
	tb.Helper()
	var heads []string
	for _, text := range got {
		head, _, _ := strings.Cut(text, ":")
		heads = append(heads, head)
	}
	if diff := cmp.Diff(want, heads); diff != "" {
		tb.Errorf("Events (-want +got):\n%s", diff)
	}
	Texts(tb, name, got...)
}

func write(tb testing.TB) {
	tb.Helper()
	var content strings.Builder
	for _, key := range slices.Sorted(maps.Keys(texts())) {
		for _, text := range texts()[key] {
			content.WriteString(key + "\t" + text + "\n")
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content.String()), 0o600); err != nil {
		tb.Fatal(err)
	}
}
