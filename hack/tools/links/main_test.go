// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.md":     "# Two words: `code`, more\n\n## Again\n\n## Again\n\n<a id=\"by-hand\"></a>\n\n[x](b.md) ![y](c.png)\n",
		"sub/b.md": "# Title\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, want := range map[string]string{
		"sub/b.md":                   "",
		"sub/b.md#title":             "",
		"sub":                        "",
		"#two-words-code-more":       "",
		"a.md#again":                 "",
		"a.md#again-1":               "",
		"#by-hand":                   "",
		"https://nowhere.invalid/#x": "",
		"mailto:someone@example.com": "",
		"#again-2":                   "there is no such heading",
		"sub/b.md#other":             "there is no such heading",
		"b.md":                       "there is no such file",
		"/a.md":                      "must be relative to the page",
	} {
		if got := check(map[string]*page{}, filepath.Join(dir, "a.md"), link); got != want {
			t.Errorf("%s: got %q, want %q", link, got, want)
		}
	}
	p, err := load(map[string]*page{}, filepath.Join(dir, "a.md"))
	if err != nil || len(p.links) != 2 || p.links[0] != "b.md" || p.links[1] != "c.png" {
		t.Errorf("links %q, %v", p.links, err)
	}
}

func TestUnreached(t *testing.T) {
	t.Parallel()
	pages := map[string]*page{
		"README.md":           parse([]byte("[a](docs/a.md) [elsewhere](https://example.com/docs/c.md)")),
		"docs/a.md":           parse([]byte("[folder](decisions) [heading](#docs/b.md)")),
		"docs/b.md":           parse([]byte("[a](a.md)")),
		"docs/c.md":           parse([]byte("[c](c.md)")),
		"docs/decisions/1.md": parse([]byte("[back](../a.md)")),
	}
	got := unreached(pages, []string{"README.md", "docs/a.md", "docs/b.md", "docs/c.md", "docs/decisions/1.md"})
	if !slices.Equal(got, []string{"docs/b.md", "docs/c.md"}) {
		t.Errorf("not reached: %q", got)
	}
}
