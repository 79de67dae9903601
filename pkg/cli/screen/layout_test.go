// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLayout_bounds_messages checks that a message is cut after three lines at the end of a word, with an
// ellipsis.
func TestLayout_bounds_messages(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"short":       {"one two three", "> one two three\n"},
		"three lines": {"aaaaaaaa bbbbbbbb cccccccc dddddddd eeeeeeee ffffffff", "> aaaaaaaa bbbbbbbb\n  cccccccc dddddddd\n  eeeeeeee ffffffff\n"},
		"four lines":  {"aaaaaaaa bbbbbbbb cccccccc dddddddd eeeeeeee ffffffff gggggggg", "> aaaaaaaa bbbbbbbb\n  cccccccc dddddddd\n  eeeeeeee …\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := Layout{Width: 20}
			l.HangMost("> ", tc.text, 3)
			if got := l.String(); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text  string
		width int
		want  []string
	}{
		"empty text is one empty line":      {"", 10, []string{""}},
		"words that fit stay on the line":   {"one two", 7, []string{"one two"}},
		"a word that does not fit moves":    {"one two", 6, []string{"one", "two"}},
		"a long word is broken":             {"a abcdefgh b", 4, []string{"a", "abcd", "efgh", "b"}},
		"a name is broken behind a hyphen":  {"ip-10-0-137-108.ec2.internal", 14, []string{"ip-10-0-137-", "108.ec2.", "internal"}},
		"wide characters count twice":       {"ノード ノード", 8, []string{"ノード", "ノード"}},
		"a wide character is never halved":  {"ノード", 3, []string{"ノ", "ー", "ド"}},
		"combined characters stay together": {"e\u0301e\u0301e\u0301", 2, []string{"e\u0301e\u0301", "e\u0301"}},
		"a width of zero still ends":        {"ab", 0, []string{"a", "b"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, wrap(test.text, test.width)); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzWrap(f *testing.F) {
	f.Add("ノード worker-1 \u202e is draining", 7)
	f.Add("0000"+strings.Repeat("\xc9", 1<<14)+" 00000", -67) // takes seconds if each line reads the rest of the word
	f.Fuzz(func(t *testing.T, text string, width int) {
		width = 2 + min(max(width, 0), 200)
		lines := wrap(text, width)
		for _, line := range lines {
			if Columns(line) > width && len([]rune(line)) > 1 {
				t.Errorf("line %q has %d columns, want at most %d", line, Columns(line), width)
			}
		}
		if got, want := strings.Join(strings.Fields(strings.Join(lines, " ")), ""), strings.Join(strings.Fields(text), ""); got != want {
			t.Errorf("lines %q lack characters of %q", lines, text)
		}
	})
}

func TestTerminal_width_is_bounded(t *testing.T) {
	t.Parallel()
	for width, want := range map[int]int{0: 80, 20: 60, 60: 60, 100: 100, 500: 200} {
		if got := (&Terminal{Width: width}).Columns(); got != want {
			t.Errorf("a terminal of %d columns has screens of %d, want %d", width, got, want)
		}
	}
}
