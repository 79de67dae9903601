// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// pictureFile names the environment variable with the file to which TestDashboards draws the dashboard; "make pictures" sets it.
const pictureFile = "DASHBOARD_PICTURE"

// dashboardPanel is a panel as Grafana reads it.
type dashboardPanel struct {
	Title   string
	Type    string // row, stat, or timeseries
	GridPos struct{ X, Y, W, H int }
	Targets []struct{ Expr, LegendFormat string }

	FieldConfig struct{ Defaults struct{ Unit string } }
}

// drawDashboard draws the panels of grafana.json with what Prometheus answered from since to until, by expression.
func drawDashboard(t *testing.T, file string, answers map[string]model.Matrix, since, until time.Time) {
	t.Helper()
	var dashboard struct {
		Title  string
		Panels []dashboardPanel
	}
	mustSucceed(t, json.Unmarshal([]byte(readFile(t, "../../deploy/dashboards/grafana.json")), &dashboard))
	p := &picture{since: since, until: until}
	bottom := 0
	for _, panel := range dashboard.Panels {
		bottom = max(bottom, (panel.GridPos.Y+panel.GridPos.H)*gridY)
		p.panel(panel, answers)
	}
	mustSucceed(t, os.WriteFile(file, fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">
<title>%s: an upgrade of a dev cluster</title>
<style>.back{fill:#fff}.box{fill:#f4f5f7}text{fill:#24292f}.axis{fill:#6b7280}@media(prefers-color-scheme:dark){.back{fill:#111217}.box{fill:#1e2026}text{fill:#d8d9da}.axis{fill:#9aa0a6}}</style>
<rect class="back" width="100%%" height="100%%"/>
%s</svg>
`, 24*gridX, bottom, html.EscapeString(dashboard.Title), p.svg.String()), 0o600))
}

const (
	gridX, gridY = 50, 26 // pixels of a unit of the grid
	legendLines  = 4
)

var lineColors = []string{"#3b82f6", "#f59e0b", "#10b981", "#ef4444", "#8b5cf6", "#14b8a6", "#ec4899", "#84cc16"}

type picture struct {
	svg          strings.Builder
	since, until time.Time
}

func (p *picture) text(x, y, size float64, class, words string) {
	fmt.Fprintf(&p.svg, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.0f\" class=\"%s\">%s</text>\n", x, y, size, class, html.EscapeString(words))
}

func (p *picture) panel(panel dashboardPanel, answers map[string]model.Matrix) {
	x, y := float64(panel.GridPos.X*gridX)+4, float64(panel.GridPos.Y*gridY)+4
	width, height := float64(panel.GridPos.W*gridX)-8, float64(panel.GridPos.H*gridY)-8
	if panel.Type == "row" {
		p.text(x, y+15, 14, "row", panel.Title)
		return
	}
	fmt.Fprintf(&p.svg, "<rect class=\"box\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"3\"/>\n", x, y, width, height)
	p.text(x+8, y+16, 12, "title", panel.Title)
	series := answers[panel.Targets[0].Expr]
	if panel.Type == "stat" {
		last := series[len(series)-1].Values
		p.text(x+width/2-10, y+height-24, 36, "stat", strconv.FormatFloat(float64(last[len(last)-1].Value), 'g', 3, 64))
		return
	}
	p.graph(panel, series, x+44, y+26, width-52, height-26-16-legendLines*14)
}

// graph draws a line for each series, and what they are.
func (p *picture) graph(panel dashboardPanel, series model.Matrix, x, y, width, height float64) {
	top := 1.0
	for _, each := range series {
		for _, value := range each.Values {
			top = max(top, float64(value.Value))
		}
	}
	unit := map[string]string{"s": " s"}[panel.FieldConfig.Defaults.Unit]
	for _, share := range []float64{0, 0.5, 1} {
		p.text(x-40, y+height*(1-share)+4, 10, "axis", strconv.FormatFloat(top*share, 'g', 3, 64)+unit)
		fmt.Fprintf(&p.svg, "<path d=\"M%.1f %.1fh%.1f\" stroke=\"#9ca3af\" stroke-opacity=\".35\"/>\n", x, y+height*(1-share), width)
	}
	length := p.until.Sub(p.since)
	for _, share := range []float64{0, 0.5, 0.9} {
		p.text(x+width*share, y+height+14, 10, "axis", "+"+(time.Duration(share*float64(length))).Round(time.Second).String())
	}
	for i, each := range series {
		color := lineColors[i%len(lineColors)]
		var points strings.Builder
		last := time.Time{}
		for _, value := range each.Values {
			at := value.Timestamp.Time()
			command := "L"
			if last.IsZero() || at.Sub(last) > 2*time.Second { // the series had no value in between
				command = "M"
			}
			last = at
			fmt.Fprintf(&points, "%s%.1f %.1fh.6", command, x+width*float64(at.Sub(p.since))/float64(length), y+height*(1-float64(value.Value)/top))
		}
		fmt.Fprintf(&p.svg, "<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\"/>\n", points.String(), color)
	}
	p.legend(legend(series, panel.Targets[0].LegendFormat), x-34, y+height+30, width+44)
}

// legend draws the names of the lines in two columns, or in one if they are long.
func (p *picture) legend(names []string, x, y, width float64) {
	columns := 2
	if slices.ContainsFunc(names, func(name string) bool { return float64(len(name)) > width/12 }) {
		columns = 1
	}
	n := 0
	for i, name := range names {
		if strings.Trim(name, "/ ") == "" || n == columns*legendLines {
			continue
		}
		left, line := x+float64(n%columns)*width/2, y+float64(n/columns)*14
		fmt.Fprintf(&p.svg, "<rect x=\"%.1f\" y=\"%.1f\" width=\"8\" height=\"8\" fill=\"%s\"/>\n", left, line-8, lineColors[i%len(lineColors)])
		p.text(left+12, line, 10, "legend", text.Truncate(name, int(width/float64(columns)/6.5)))
		n++
	}
}

// legend returns the names of series by a format such as "{{pool}}".
func legend(series model.Matrix, format string) []string {
	var names []string
	for _, each := range series {
		names = append(names, regexp.MustCompile(`{{(\w+)}}`).ReplaceAllStringFunc(format, func(label string) string {
			return string(each.Metric[model.LabelName(strings.Trim(label, "{}"))])
		}))
	}
	return names
}

// The picture of the dashboard in the docs has each of its panels.
func TestPicture_shows_each_panel(t *testing.T) {
	t.Parallel()
	picture := readFile(t, "../../docs/pictures/dashboard.svg")
	titles := map[string]bool{}
	for _, match := range regexp.MustCompile(`class="title">([^<]*)<`).FindAllStringSubmatch(picture, -1) {
		titles[html.UnescapeString(match[1])] = true
	}
	var dashboard struct{ Panels []dashboardPanel }
	mustSucceed(t, json.Unmarshal([]byte(readFile(t, "../../deploy/dashboards/grafana.json")), &dashboard))
	for _, panel := range dashboard.Panels {
		if panel.Type != "row" && !titles[panel.Title] {
			t.Errorf(`the picture lacks %q, it has %q; draw it again with "make pictures"`, panel.Title, slices.Sorted(maps.Keys(titles)))
		}
	}
}
