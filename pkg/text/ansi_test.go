// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package text_test

import (
	"testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Terminal escape sequences are removed completely, not just their first character.
func TestSanitize_escape_sequences(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ in, want string }{
		"a color":                   {"\x1b[1;31mred\x1b[0m", "red"},
		"within a word":             {"wor\x1b[2Kker", "worker"},
		"a control sequence of C1":  {"a\u009b31mb", "ab"},
		"a title":                   {"a\x1b]0;title\x07b", "ab"},
		"a link":                    {"\x1b]8;;https://x\x1b\\text\x1b]8;;\x1b\\", "text"},
		"another sequence":          {"a\x1b(Bb", "ab"},
		"a sequence that is broken": {"a\x1b", "a"},
		"brackets":                  {"[31m is text", "[31m is text"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := text.Sanitize(tc.in, 100); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
