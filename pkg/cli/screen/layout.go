// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"strings"

	"github.com/rivo/uniseg"
)

const (
	// LabelWidth is the width of the label column on a screen.
	LabelWidth = 12
	// ColumnGap is the space between table columns.
	ColumnGap = 2
	// MinDetail is the minimum width of the last table column. If less space is left, the column moves to a
	// separate line.
	MinDetail = 24
)

// Layout arranges a screen in lines of at most Width columns. Only commands may be longer, so users can copy
// them.
type Layout struct {
	Width int
	Lines []string
}

// String returns the lines.
func (l *Layout) String() string { return strings.Join(l.Lines, "\n") + "\n" }

// Headline adds the first line: a word followed by a text with a hanging indent.
func (l *Layout) Headline(word, text string) {
	l.Hang(word+Blank(ColumnGap), text)
}

// Text adds a text next to a label. Use an empty label for further paragraphs of the same field.
func (l *Layout) Text(label, text string) { l.Hang(PadRight(label, LabelWidth), text) }

// Hang adds a text after a prefix. Further lines are indented by the width of the prefix.
func (l *Layout) Hang(prefix, text string) {
	indent := Columns(prefix)
	for i, line := range wrap(text, l.Width-indent) {
		if i > 0 {
			prefix = Blank(indent)
		}
		l.Lines = append(l.Lines, strings.TrimRight(prefix+line, " "))
	}
}

// HangMost is like Hang but limits the number of lines. An ellipsis marks omitted text.
func (l *Layout) HangMost(prefix, text string, most int) {
	lines := wrap(text, l.Width-Columns(prefix))
	if len(lines) > most {
		last := wrap(lines[most-1], l.Width-Columns(prefix)-Columns(" …"))[0]
		text = strings.Join(append(lines[:most-1:most-1], last), " ") + " …"
	}
	l.Hang(prefix, text)
}

// Command adds a command that users may copy. It is never wrapped.
func (l *Layout) Command(command string) {
	l.Lines = append(l.Lines, Blank(LabelWidth+ColumnGap)+command)
}

// Table adds rows of a name, a count, and a detail next to a label.
func (l *Layout) Table(label string, rows [][3]string) {
	name, count := 0, 0
	for _, row := range rows {
		name, count = max(name, Columns(row[0])), max(count, Columns(row[1]))
	}
	detail := LabelWidth + name + ColumnGap + count + ColumnGap
	for _, row := range rows {
		prefix := PadRight(label, LabelWidth)
		label = ""
		if l.Width-detail < MinDetail {
			l.stack(prefix, row)
			continue
		}
		l.Hang(prefix+PadRight(row[0], name+ColumnGap)+PadRight(row[1], count+ColumnGap), row[2])
	}
}

// stack adds a table row too wide for columns.
func (l *Layout) stack(prefix string, row [3]string) {
	l.Hang(prefix, row[0]+": "+row[1])
	if row[2] != "" {
		l.Hang(Blank(LabelWidth+ColumnGap), row[2])
	}
}

// wrap breaks a text at spaces into lines of at most width columns. Words that are too long, such as object
// names, are broken after a period, hyphen, or slash if possible, and between characters otherwise. The
// result has at least one line.
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
				lines[last] += Blank(gap) + word
				used += gap + need
				break
			}
			if used > 0 {
				lines, used = append(lines, ""), 0
				continue
			}
			head, rest := splitName(word, width)
			lines[last] += head // after zero-width characters
			lines, word = append(lines, ""), rest
		}
	}
	return lines
}

// splitName splits a word like splitAt, but prefers to split after the last period, hyphen, or slash that
// fits.
func splitName(word string, width int) (head, rest string) {
	head, rest = splitAt(word, width)
	if at := strings.LastIndexAny(head, ".-/"); at > 0 && at+1 < len(head) && rest != "" {
		return head[:at+1], head[at+1:] + rest
	}
	return head, rest
}

// splitAt splits a word after as many characters as fit into width columns, but at least one.
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

// columnsUpTo returns the width of a text, or a value greater than limit if it is wider. It does not read all
// of a long text.
func columnsUpTo(text string, limit int) int {
	head, rest := splitAt(text, limit)
	if rest != "" {
		return limit + 1
	}
	return Columns(head)
}

// Columns returns the width of a text.
func Columns(text string) int { return uniseg.StringWidth(text) }

// PadRight pads a text with spaces to a width.
func PadRight(text string, width int) string {
	return text + Blank(width-Columns(text))
}
