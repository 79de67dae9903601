// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package text_test

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

func TestJoinNames(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		names []string
		want  string
	}{
		"none":                          {nil, ""},
		"one":                           {[]string{"a"}, "a"},
		"three are all named":           {[]string{"c", "a", "b"}, "a, b, c"},
		"of more, three and the others": {[]string{"g", "f", "e", "d", "c", "b", "a"}, "a, b, c and 4 more"},
		"each counts once":              {[]string{"b", "a", "b", "a", "c", "c"}, "a, b, c"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := slices.Clone(tc.names)
			if got := text.JoinNames(tc.names); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if !slices.Equal(before, tc.names) {
				t.Errorf("the names were reordered: %q", tc.names)
			}
		})
	}
}

func TestWithReason(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("CET", 3600))
	if got := text.WithReason("a", text.FormatSince(noon)); got != "a (since 2026-03-01T11:00:00Z)" {
		t.Errorf("with a reason: got %q", got)
	}
	if got := text.WithReason("a", text.FormatSince(time.Time{})); got != "a" {
		t.Errorf("without a reason: got %q", got)
	}
}

func TestMatchesAny(t *testing.T) {
	t.Parallel()
	patterns := []string{"default", "kube-*", "openshift-*", "team-*-system", "a.c", "[", "\\", "x*y*z"}
	for name, want := range map[string]bool{
		"default": true, "kube-system": true, "openshift-etcd": true, "kube-": true, "team-a-system": true, "team--system": true,
		"xyz": true, "x-yy-z": true, "[": true,
		"default-2": false, "team-a": false, "abc": false, "my-kube-system": false, "kube": false, "openshift": false, "shop": false,
		"team-system": false, "xz": false, "xzy": false, "ayz": false, "xyq": false, "": false,
	} {
		if got := text.MatchesAny(name, patterns); got != want {
			t.Errorf("%s: got %t", name, got)
		}
	}
	if text.MatchesAny("shop", nil) || !text.MatchesAny("shop", []string{"*"}) || !text.MatchesAny("shop", []string{"**"}) {
		t.Error("an empty list has nothing, and an asterisk is everything")
	}
}

func TestSanitize(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		"":                        "",
		"plain":                   "plain",
		" x":                      "x",
		"x ":                      "x",
		"a  b":                    "a b",
		"  plain \t text\r\n":     "plain text",
		"a\x00b\x1b[2Jc":          "a bc",
		"not \xff UTF-8":          "not UTF-8",
		"right\u202eto left":      "right to left",
		"grüße 世界":                "grüße 世界",
		strings.Repeat("é", 5000): strings.Repeat("é", 100) + "…",
		strings.Repeat("\n", 900): "…",
	} {
		if got := text.Sanitize(input, 200); got != want {
			t.Errorf("%q: got %q, want %q", input, got, want)
		}
	}
	for input, want := range map[string]string{"": "no reason given", "\n": "no reason given", "a\nb": "a b"} {
		if got := text.Reason(input); got != want {
			t.Errorf("reason %q: got %q, want %q", input, got, want)
		}
	}
}

func TestFit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text     string
		maxBytes int
		fit, cut string
	}{
		"shorter":            {"abc", 4, "abc", "abc"},
		"as long":            {"abcd", 4, "abcd", "abcd"},
		"longer":             {"abcde", 4, "a…", "abcd"},
		"within a character": {"aéé", 4, "a…", "aé"},
		"only the ellipsis":  {"abcd", 3, "…", "abc"},
		"not even that":      {"abcd", 2, "", "ab"},
		"nothing":            {"abcd", 0, "", ""},
		"less than nothing":  {"abcd", -1, "", ""},
	} {
		if got := text.Fit(tc.text, tc.maxBytes); got != tc.fit {
			t.Errorf("fit, %s: got %q, want %q", name, got, tc.fit)
		}
		if got := text.Cut(tc.text, tc.maxBytes); got != tc.cut {
			t.Errorf("cut, %s: got %q, want %q", name, got, tc.cut)
		}
	}
}

func FuzzSanitize(f *testing.F) {
	f.Add("short", 100)
	f.Add("a"+strings.Repeat("ä", 5000), 512) // always truncated within a character
	f.Add(strings.Repeat(" x\n", 5000), 512)
	f.Add(strings.Repeat("\xff", 5000), 512)
	f.Add("\x1b[31m\x00\u202e", 8)
	f.Fuzz(func(t *testing.T, input string, maxBytes int) {
		maxBytes = min(max(maxBytes, 1), 4096)
		got := text.Sanitize(input, maxBytes)
		if len(got) > maxBytes+len("…") || !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("of %d bytes, got %d: %q", len(input), len(got), got)
		}
		if again := text.Sanitize(got, maxBytes+len("…")); again != got {
			t.Errorf("%q becomes %q when sanitized again", got, again)
		}
	})
}
