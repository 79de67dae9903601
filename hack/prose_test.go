// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hack

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pattern is a pattern of hard-to-read sentences with its limit per 10,000 words.
type pattern struct {
	name    string
	pattern *regexp.Regexp
	limit   float64
}

// prose lists the patterns for pages. CONTRIBUTING.md lists replacements.
var prose = []pattern{
	{"that of, those of", regexp.MustCompile(`\b(that|those) of\b`), 3},
	{", too", regexp.MustCompile(`, too\b`), 1},
	{"is to be", regexp.MustCompile(`\b(is|are) to be\b`), 0.5},
	{"any more", regexp.MustCompile(`\bany more\b`), 1},
	{"meanwhile", regexp.MustCompile(`(?i)\bmeanwhile\b`), 1},
	{"an unnamed actor", regexp.MustCompile(`(?i)\b((no|some)body|who(ever)|of whom)\b`), 1},
}

// guides lists more patterns for the pages that are not decision records. The limits are close to the
// counts in the Markdown of Open Cluster Management. Pages of the Kubernetes documentation have
// similar counts.
var guides = []pattern{
	{"which", regexp.MustCompile(`\bwhich\b`), 15},
	{"that is", regexp.MustCompile(`\bthat is\b`), 4},
	{"means", regexp.MustCompile(`\bmeans\b`), 2.5},
	{"so that", regexp.MustCompile(`\bso that\b`), 2.5},
	{"nor", regexp.MustCompile(`\bnor\b`), 0.5},
	{"none", regexp.MustCompile(`(?i)\bnone\b`), 1},
}

// TestProse counts the patterns in all pages except the generated reference. Code blocks do not
// count.
func TestProse(t *testing.T) {
	t.Parallel()
	var text, records strings.Builder
	for _, file := range []string{"../README.md", "../CONTRIBUTING.md", "../SECURITY.md"} {
		text.WriteString(withoutCode(string(readFile(t, file))))
	}
	err := filepath.WalkDir("../docs", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "reference": // it is generated
			return fs.SkipDir
		case filepath.Ext(file) != ".md":
		case filepath.Base(filepath.Dir(file)) == "decisions":
			records.WriteString(withoutCode(string(readFile(t, file))))
		default:
			text.WriteString(withoutCode(string(readFile(t, file))))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	countPatterns(t, text.String(), 50_000, guides)
	countPatterns(t, text.String()+records.String(), 80_000, prose)
}

// comments lists the patterns for comments. The limits are close to the counts in
// controller-runtime and kueue.
var comments = []pattern{
	{"that of, those of", regexp.MustCompile(`\b(that|those) of\b`), 0.5},
	{", too", regexp.MustCompile(`, too\b`), 0.5},
	{"is to be", regexp.MustCompile(`\b(is|are) to be\b`), 0.5},
	{"is what", regexp.MustCompile(`\b(is|are) what\b`), 0.5},
	{"any more", regexp.MustCompile(`\bany more\b`), 0.5},
	{"meanwhile", regexp.MustCompile(`(?i)\bmeanwhile\b`), 0.5},
	{"an unnamed actor", regexp.MustCompile(`(?i)\b((no|some)body|who(ever)|of whom)\b`), 0.5},
	{"which", regexp.MustCompile(`\bwhich\b`), 15},
	{"that is", regexp.MustCompile(`\bthat is\b`), 10},
	{"means", regexp.MustCompile(`\bmeans\b`), 5},
	{"so that", regexp.MustCompile(`\bso that\b`), 2},
}

// comment matches a line with a comment, except directives and the license.
var comment = regexp.MustCompile(`(?m)^(?:[^"\n]*\s)?// ?([^+\n].*)$`)

// TestComments counts the patterns in the comments of Go files that are not generated.
func TestComments(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	err := filepath.WalkDir("..", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "bin"):
			return fs.SkipDir
		case filepath.Ext(file) != ".go":
			return nil
		}
		source := string(readFile(t, file))
		if strings.Contains(source[:min(len(source), 500)], "Code generated") {
			return nil
		}
		for _, line := range comment.FindAllStringSubmatch(source, -1) {
			text.WriteString(line[1] + "\n")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	countPatterns(t, text.String(), 150_000, comments)
}

func countPatterns(t *testing.T, text string, atLeast float64, patterns []pattern) {
	t.Helper()
	all := strings.Join(strings.Fields(text), " ")
	words := float64(strings.Count(all, " "))
	if words < atLeast {
		t.Fatalf("the text has %.0f words: some is not read", words)
	}
	for _, p := range patterns {
		found := p.pattern.FindAllStringIndex(all, -1)
		if rate := float64(len(found)) * 10_000 / words; rate > p.limit {
			t.Errorf("%q occurs %d times, %.1f times in 10,000 words, want at most %g:", p.name, len(found), rate, p.limit)
			for _, at := range found {
				t.Logf("…%s…", all[max(0, at[0]-60):min(len(all), at[1]+40)])
			}
		}
	}
}

var codeBlock = regexp.MustCompile("(?ms)^ *```.*?^ *```$")

func withoutCode(page string) string { return codeBlock.ReplaceAllString(page, "") + "\n" }
