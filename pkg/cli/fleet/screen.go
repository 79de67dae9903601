// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Printer prints screens.
type Printer struct {
	// Width is the width of a screen in columns.
	Width int
	// Command returns a command line for the upgrade, such as "oc update fleet retry stores".
	Command func(verb string) string
}

// lines collects the lines of a screen.
type lines []string

func (l *lines) addf(format string, args ...any) {
	*l = append(*l, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

// String returns the lines.
func (l *lines) String() string { return strings.Join(*l, "\n") + "\n" }

// row is a reason why clusters need attention.
type row struct {
	label string // set on the first row of its kind
	count int
	text  string
	names []string // up to three
}

const (
	// minText is the minimum width of a shortened text.
	minText = 20
	// maxGap is the maximum space between texts and names in a table.
	maxGap = 3
)

// clusterNames names the clusters of a row: up to two, or the first of more.
func (r *row) clusterNames() string {
	switch {
	case len(r.names) == 0:
		return ""
	case r.count <= 2:
		return strings.Join(r.names[:min(len(r.names), r.count)], ", ")
	}
	return fmt.Sprintf("%s and %s more", r.names[0], grouped(r.count-1))
}

// table adds rows in three columns. Texts get at least the given width. They are shortened if a line does not
// fit otherwise.
func (p *Printer) table(l *lines, prefix func(*row) string, rows []row, width int) {
	indent, widest := 0, 0
	for i := range rows {
		r := &rows[i]
		r.text = text.Sanitize(r.text, text.MaxReason)
		indent = max(indent, len(prefix(r)))
		width, widest = max(width, len([]rune(r.text))), max(widest, len(r.clusterNames()))
	}
	gap := min(maxGap, max(1, p.Width-indent-width-widest))
	if most := p.Width - indent - gap - widest; width > most {
		width = max(most, minText)
	}
	for i := range rows {
		r := &rows[i]
		l.addf("%s%s%s%s", prefix(r), pad(shorten(r.text, width), width), strings.Repeat(" ", gap), r.clusterNames())
	}
}

// shorten cuts a text to a width.
func shorten(s string, width int) string {
	if runes := []rune(s); len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return s
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-len([]rune(s))))
}

// heading returns the first line with the time aligned to the right.
func (p *Printer) heading(left string, at time.Time) string {
	clock := at.UTC().Format("15:04 UTC")
	return left + strings.Repeat(" ", max(2, p.Width-len([]rune(left))-len(clock))) + clock
}

// target describes what the upgrade installs.
func target(u *fleetv1beta1.ManagedClustersUpgrade) string {
	version := u.Spec.ClusterVersion
	switch {
	case version == nil:
		return "operators and actions"
	case version.Version != "":
		return version.Version
	}
	_, digest, _ := strings.Cut(version.Image, "@")
	return text.Truncate(digest, 19) // sha256: and twelve digits
}

// grouped formats a number with thousands separators.
func grouped(n int) string {
	digits := strconv.Itoa(n)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// roughly formats a duration in minutes, hours, or days, rounded up or down.
func roughly(d time.Duration, up bool) string {
	unit, name := time.Minute, "m"
	switch {
	case d >= 72*time.Hour:
		unit, name = 24*time.Hour, "d"
	case d >= 2*time.Hour:
		unit, name = time.Hour, "h"
	}
	if up {
		d += unit - 1
	} else {
		d += unit / 2
	}
	if d < unit {
		return "<1" + name
	}
	return strconv.Itoa(int(d/unit)) + name
}
