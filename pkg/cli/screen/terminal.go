// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"io"
	"strings"

	"golang.org/x/term"
)

const (
	// DefaultWidth is the width of a screen that is not printed to a terminal.
	DefaultWidth = 80
	// minWidth and maxWidth limit the width of a screen. Words do not fit on narrower screens, and wider
	// lines are hard to read.
	minWidth, maxWidth = 60, 200
)

// Terminal describes the terminal of a program.
type Terminal struct {
	// Width is the number of columns, or 0 for the default.
	Width int
	// Interactive is set if the output goes to a terminal. It may then be colored and redrawn.
	Interactive bool
	// Asks is set if a user can answer questions.
	Asks bool
}

// DetectTerminal returns the properties of the terminal behind the standard streams.
func DetectTerminal(in io.Reader, out io.Writer) *Terminal {
	_, asks := terminalOf(in)
	t := &Terminal{Asks: asks}
	file, ok := terminalOf(out)
	if !ok {
		return t
	}
	t.Interactive = true
	if width, _, err := term.GetSize(file); err == nil {
		t.Width = width
	}
	return t
}

// terminalOf returns the file descriptor of a stream and whether it is a terminal.
func terminalOf(stream any) (int, bool) {
	file, ok := stream.(interface{ Fd() uintptr })
	if !ok {
		return 0, false
	}
	return int(file.Fd()), term.IsTerminal(int(file.Fd()))
}

// Columns returns the width of a screen.
func (t *Terminal) Columns() int {
	if t.Width == 0 {
		return DefaultWidth
	}
	return min(max(t.Width, minWidth), maxWidth)
}

// Color is a terminal color. Colors only emphasize what the text also says.
type Color string

// Terminal colors.
const (
	NoColor Color = ""
	Red     Color = "31"
	Green   Color = "32"
	Yellow  Color = "33"
	Magenta Color = "35"
	Cyan    Color = "36"
)

// Blank returns the given number of spaces.
func Blank(width int) string { return strings.Repeat(" ", max(width, 0)) }
