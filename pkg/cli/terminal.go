// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"strings"

	"golang.org/x/term"
)

const (
	// defaultWidth is the width of a screen that is not written to a terminal.
	defaultWidth = 80
	// minWidth and maxWidth bound the width of a screen: below, words no longer fit; above, lines are
	// too long to read.
	minWidth, maxWidth = 60, 200
)

// Terminal describes where a program prints.
type Terminal struct {
	// Width is the number of columns; zero means the default.
	Width int
	// Interactive reports whether a person sees the output as it is written, so that it may be
	// colored and redrawn.
	Interactive bool
}

// detectTerminal describes the terminal behind a writer.
func detectTerminal(out io.Writer) *Terminal {
	file, ok := out.(interface{ Fd() uintptr })
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return &Terminal{}
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		width = 0
	}
	return &Terminal{Width: width, Interactive: true}
}

// columns returns the width of a screen.
func (t *Terminal) columns() int {
	if t.Width == 0 {
		return defaultWidth
	}
	return min(max(t.Width, minWidth), maxWidth)
}

// color is a color of a terminal. It only ever emphasizes what the text says, too.
type color string

const (
	noColor color = ""
	red     color = "31"
	green   color = "32"
	yellow  color = "33"
	magenta color = "35"
	cyan    color = "36"
)

// paint colors a text if the program prints in colors.
func (p *Program) paint(c color, text string) string {
	if p.NoColor || !p.Terminal.Interactive || c == noColor {
		return text
	}
	return "\x1b[1;" + string(c) + "m" + text + "\x1b[0m"
}

// redraw clears the terminal above the next screen.
const redraw = "\x1b[H\x1b[2J\x1b[3J"

// blank returns spaces.
func blank(width int) string { return strings.Repeat(" ", max(width, 0)) }
