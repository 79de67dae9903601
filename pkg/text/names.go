// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxNames is the maximum number of names in a message.
const maxNames = 3

// JoinNames joins names for a message. It sorts them, removes duplicates, and shows at most three:
// "a, b, c and 4 more".
func JoinNames(names []string) string { return JoinInPlace(slices.Clone(names)) }

// JoinInPlace is like JoinNames but may reorder the slice.
func JoinInPlace(names []string) string {
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) <= maxNames {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:maxNames], ", ") + " and " + strconv.Itoa(len(names)-maxNames) + " more"
}

// WithReason returns a name followed by the reason in parentheses, if there is one.
func WithReason(name, reason string) string {
	if reason == "" {
		return name
	}
	return fmt.Sprintf("%s (%s)", name, reason)
}

// FormatSince returns "since" and the time, or an empty string for a zero time.
func FormatSince(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return "since " + FormatTime(at)
}

// MatchesAny reports whether any pattern matches the whole name. An asterisk matches any sequence
// of characters.
func MatchesAny(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matchGlob(name, pattern) })
}

func matchGlob(name, pattern string) bool {
	part, pattern, more := strings.Cut(pattern, "*")
	rest, begins := strings.CutPrefix(name, part)
	if !begins || !more {
		return begins && rest == ""
	}
	for {
		part, pattern, more = strings.Cut(pattern, "*")
		if !more {
			return strings.HasSuffix(rest, part)
		}
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
}
