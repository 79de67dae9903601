// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"

	"github.com/rivo/uniseg"
)

const (
	// labelWidth is the width of the labels in the first column of a screen.
	labelWidth = 12
	// columnGap separates the columns of a table.
	columnGap = 2
	// minDetail is the narrowest last column of a table. If it were narrower, it becomes a line of its
	// own.
	minDetail = 24
)

// layout arranges a screen in lines of at most width columns. Only commands may be longer, so that
// they can be copied.
type layout struct {
	width int
	lines []string
}

// String returns the lines.
func (l *layout) String() string { return strings.Join(l.lines, "\n") + "\n" }

// headline adds the first line: a word, and a text that is indented below its end.
func (l *layout) headline(word, text string) {
	l.hang(word+blank(columnGap), text)
}

// text adds a text under a label. The label is empty for further paragraphs of the same field.
func (l *layout) text(label, text string) { l.hang(padRight(label, labelWidth), text) }

// hang adds a text behind a prefix. Its further lines are indented to the end of the prefix.
func (l *layout) hang(prefix, text string) {
	indent := columns(prefix)
	for i, line := range wrap(text, l.width-indent) {
		if i > 0 {
			prefix = blank(indent)
		}
		l.lines = append(l.lines, strings.TrimRight(prefix+line, " "))
	}
}

// command adds a command that a user may copy. It is never wrapped.
func (l *layout) command(command string) {
	l.lines = append(l.lines, blank(labelWidth+columnGap)+command)
}

// table adds rows of a name, a count, and a detail under a label.
func (l *layout) table(label string, rows [][3]string) {
	name, count := 0, 0
	for _, row := range rows {
		name, count = max(name, columns(row[0])), max(count, columns(row[1]))
	}
	detail := labelWidth + name + columnGap + count + columnGap
	for _, row := range rows {
		prefix := padRight(label, labelWidth)
		label = ""
		if l.width-detail < minDetail {
			l.stack(prefix, row)
			continue
		}
		l.hang(prefix+padRight(row[0], name+columnGap)+padRight(row[1], count+columnGap), row[2])
	}
}

// stack adds a row of a table whose columns do not fit beside each other.
func (l *layout) stack(prefix string, row [3]string) {
	l.hang(prefix, row[0]+": "+row[1])
	if row[2] != "" {
		l.hang(blank(labelWidth+columnGap), row[2])
	}
}

// wrap breaks a text at spaces into lines of at most width columns. Words that are longer are broken
// between characters. The result has at least one line.
func wrap(text string, width int) []string {
	width = max(width, 1)
	lines := []string{""}
	used := 0
	for word := range strings.FieldsSeq(text) {
		for {
			gap := min(used, 1)
			need := columnsUpTo(word, width)
			last := len(lines) - 1
			if used+gap+need <= width {
				lines[last] += blank(gap) + word
				used += gap + need
				break
			}
			if used > 0 {
				lines, used = append(lines, ""), 0
				continue
			}
			head, rest := splitAt(word, width)
			lines[last] += head // after characters without a width
			lines, word = append(lines, ""), rest
		}
	}
	return lines
}

// splitAt splits a word after as many characters as fit into width columns, at least one.
func splitAt(word string, width int) (head, rest string) {
	rest, used, state := word, 0, -1
	for rest != "" {
		cluster, after, w, next := uniseg.FirstGraphemeClusterInString(rest, state)
		if used > 0 && used+w > width {
			break
		}
		head, rest, used, state = head+cluster, after, used+w, next
	}
	return head, rest
}

// columnsUpTo returns the width of a text, or more than the limit if it is wider, without reading all of
// a long text.
func columnsUpTo(text string, limit int) int {
	head, rest := splitAt(text, limit)
	if rest != "" {
		return limit + 1
	}
	return columns(head)
}

// columns returns the width of a text.
func columns(text string) int { return uniseg.StringWidth(text) }

// padRight pads a text with spaces to a width.
func padRight(text string, width int) string {
	return text + blank(width-columns(text))
}
