// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// quoted returns the capitalized words formatted as code in part of a page.
func quoted(t *testing.T, page, from, to string) []string {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(data), from)
	part, _, ended := strings.Cut(after, to)
	if !found || !ended {
		t.Fatalf("%s has no part %q", page, from)
	}
	var words []string
	for i, word := range strings.Split(part, "`") {
		if i%2 == 1 && word[0] >= 'A' && word[0] <= 'Z' {
			words = append(words, word)
		}
	}
	return words
}

func TestPage_explains_why_no_cluster_begins(t *testing.T) {
	t.Parallel()
	const page = "../../../docs/concepts/fleet-rollout.md"
	explained := quoted(t, page, "## Why no cluster begins", "## Differences from")
	for reason := range stopVerdicts() {
		if !slices.Contains(explained, reason) {
			t.Errorf("%s does not explain %s", page, reason)
		}
	}
}

// The page shows the output of the command.
func TestPage_shows_the_screen(t *testing.T) {
	t.Parallel()
	screen, err := os.ReadFile("testdata/progress.txt")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/concepts/fleets.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), string(screen)) {
		t.Error("the page shows another screen")
	}
}
