// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
)

// pictureFolder names the environment variable with the folder for the pictures of the dashboards; "make pictures" sets it.
const pictureFolder = "DASHBOARD_PICTURES"

// dashboardNames are the dashboards.
var dashboardNames = []string{"upgrades", "status", "fleets"}

// answered holds the answers of Prometheus for a period.
type answered struct {
	series       map[string]model.Matrix // by expression
	since, until time.Time
	step         time.Duration
}

// dashboardPanel is a panel as Grafana reads it.
type dashboardPanel struct {
	Title   string
	Type    string // row, stat, or timeseries
	GridPos struct{ X, Y, W, H int }
	Targets []struct{ Expr, LegendFormat string }

	FieldConfig struct{ Defaults struct{ Unit string } }
}

// dashboard is a dashboard as Grafana reads it.
type dashboard struct {
	Title  string
	Panels []dashboardPanel
}

func readDashboard(t *testing.T, name string) dashboard {
	t.Helper()
	var d dashboard
	mustSucceed(t, json.Unmarshal([]byte(readFile(t, "../../deploy/dashboards/grafana-"+name+".json")), &d))
	return d
}

// drawDashboard draws the panels of a dashboard with what Prometheus answered, if there is a folder for pictures.
func drawDashboard(t *testing.T, name, caption string, answers answered) {
	t.Helper()
	folder := os.Getenv(pictureFolder)
	if folder == "" {
		return
	}
	d := readDashboard(t, name)
	p := &picture{answered: answers}
	bottom := 0
	for _, panel := range d.Panels {
		bottom = max(bottom, (panel.GridPos.Y+panel.GridPos.H)*gridY)
		p.panel(panel)
	}
	mustSucceed(t, os.WriteFile(filepath.Join(folder, "dashboard-"+name+".svg"), fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">
<title>%s: %s</title>
<style>.back{fill:#fff}.box{fill:#f4f5f7}text{fill:#24292f}.axis{fill:#6b7280}@media(prefers-color-scheme:dark){.back{fill:#111217}.box{fill:#1e2026}text{fill:#d8d9da}.axis{fill:#9aa0a6}}</style>
<rect class="back" width="100%%" height="100%%"/>
%s</svg>
`, 24*gridX, bottom, html.EscapeString(d.Title), html.EscapeString(caption), p.svg.String()), 0o600))
}

const (
	gridX, gridY = 50, 26 // pixels of a unit of the grid
	legendLines  = 4
)

var lineColors = []string{"#3b82f6", "#f59e0b", "#10b981", "#ef4444", "#8b5cf6", "#14b8a6", "#ec4899", "#84cc16"}

type picture struct {
	answered

	svg strings.Builder
}

func (p *picture) text(x, y, size float64, class, words string) {
	p.anchored("start", x, y, size, class, words)
}

// anchored writes words whose start, middle, or end is at x.
func (p *picture) anchored(anchor string, x, y, size float64, class, words string) {
	fmt.Fprintf(&p.svg, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.0f\" text-anchor=\"%s\" class=\"%s\">%s</text>\n", x, y, size, anchor, class, html.EscapeString(words))
}

func (p *picture) panel(panel dashboardPanel) {
	x, y := float64(panel.GridPos.X*gridX)+4, float64(panel.GridPos.Y*gridY)+4
	width, height := float64(panel.GridPos.W*gridX)-8, float64(panel.GridPos.H*gridY)-8
	if panel.Type == "row" {
		p.text(x, y+15, 14, "row", panel.Title)
		return
	}
	fmt.Fprintf(&p.svg, "<rect class=\"box\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"3\"/>\n", x, y, width, height)
	p.text(x+8, y+16, 12, "title", panel.Title)
	series := p.series[everything.Replace(panel.Targets[0].Expr)]
	if panel.Type == "stat" {
		last := series[len(series)-1].Values
		p.anchored("middle", x+width/2, y+height-24, 36, "stat", strconv.FormatFloat(float64(last[len(last)-1].Value), 'g', 3, 64))
		return
	}
	p.graph(panel, series, x+44, y+26, width-52, height-26-24-legendLines*14)
}

// graph draws a line for each series, and the legend.
func (p *picture) graph(panel dashboardPanel, series model.Matrix, x, y, width, height float64) {
	top := 1.0
	for _, each := range series {
		for _, value := range each.Values {
			top = max(top, float64(value.Value))
		}
	}
	for _, share := range []float64{0, 0.5, 1} {
		p.anchored("end", x-4, y+height*(1-share)+4, 10, "axis", inUnit(top*share, panel.FieldConfig.Defaults.Unit))
		fmt.Fprintf(&p.svg, "<path d=\"M%.1f %.1fh%.1f\" stroke=\"#9ca3af\" stroke-opacity=\".35\"/>\n", x, y+height*(1-share), width)
	}
	length := p.until.Sub(p.since)
	for i, anchor := range []string{"start", "middle", "end"} {
		share := float64(i) / 2
		p.anchored(anchor, x+width*share, y+height+14, 10, "axis", "+"+inUnit(share*length.Seconds(), "s"))
	}
	for i, each := range series {
		color := lineColors[i%len(lineColors)]
		var points strings.Builder
		last := time.Time{}
		for _, value := range each.Values {
			at := value.Timestamp.Time()
			command := "L"
			if last.IsZero() || at.Sub(last) > 2*p.step { // the series had no value in between
				command = "M"
			}
			last = at
			fmt.Fprintf(&points, "%s%.1f %.1fh.6", command, x+width*float64(at.Sub(p.since))/float64(length), y+height*(1-float64(value.Value)/top))
		}
		fmt.Fprintf(&p.svg, "<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\"/>\n", points.String(), color)
	}
	p.legend(legend(series, panel.Targets[0].LegendFormat), x-34, y+height+30, width+44)
}

// inUnit writes a value as Grafana does: a duration in seconds has the unit that suits it.
func inUnit(value float64, unit string) string {
	if unit == "s" {
		switch {
		case value >= 2*time.Hour.Seconds():
			value, unit = value/time.Hour.Seconds(), " h"
		case value >= 2*time.Minute.Seconds():
			value, unit = value/time.Minute.Seconds(), " min"
		default:
			unit = " s"
		}
		return strconv.FormatFloat(value, 'f', map[bool]int{true: 0, false: 1}[value >= 10 || value == math.Trunc(value)], 64) + unit
	}
	return strconv.FormatFloat(value, 'g', 3, 64)
}

// legend draws the names of the lines in two columns, or in one if they are long. A line without a name, such as the zero
// of an expression without a result, is named only if it is alone.
func (p *picture) legend(names []string, x, y, width float64) {
	columns := 2
	if slices.ContainsFunc(names, func(name string) bool { return float64(len(name)) > width/columnLetter/2 }) {
		columns = 1
	}
	var shown []int
	for i, name := range names {
		if strings.Trim(name, "/ ") != "" {
			shown = append(shown, i)
		}
	}
	room := columns * legendLines
	for n, i := range shown {
		left, line := x+float64(n%columns)*width/float64(columns), y+float64(n/columns)*14
		if n == room-1 && len(shown) > room {
			p.text(left, line, 10, "legend", fmt.Sprintf("and %d more", len(shown)-n))
			break
		}
		fmt.Fprintf(&p.svg, "<rect x=\"%.1f\" y=\"%.1f\" width=\"8\" height=\"8\" fill=\"%s\"/>\n", left, line-8, lineColors[i%len(lineColors)])
		p.text(left+12, line, 10, "legend", lastOf(names[i], int((width/float64(columns)-12)/columnLetter)))
	}
}

// columnLetter is the width of a letter of a legend.
const columnLetter = 6.2

// lastOf returns the end of a name, which differs among the objects of a namespace.
func lastOf(name string, letters int) string {
	if len(name) <= letters {
		return name
	}
	return "…" + name[len(name)-letters+1:]
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

// pictureOf returns the picture of a dashboard in the docs.
func pictureOf(t *testing.T, name string) string {
	t.Helper()
	return readFile(t, "../../docs/pictures/dashboard-"+name+".svg")
}

// The pictures of the dashboards in the docs have each of their panels.
func TestPicture_shows_each_panel(t *testing.T) {
	t.Parallel()
	for _, name := range dashboardNames {
		titles := map[string]bool{}
		for _, match := range regexp.MustCompile(`class="title">([^<]*)<`).FindAllStringSubmatch(pictureOf(t, name), -1) {
			titles[html.UnescapeString(match[1])] = true
		}
		for _, panel := range readDashboard(t, name).Panels {
			if panel.Type != "row" && !titles[panel.Title] {
				t.Errorf(`the picture of %s lacks %q, it has %q; draw it again with "make pictures"`, name, panel.Title, slices.Sorted(maps.Keys(titles)))
			}
		}
	}
}

// TestPicture_is_readable checks that no label is cut off, and that no two lines of a panel have the same legend.
func TestPicture_is_readable(t *testing.T) {
	t.Parallel()
	for _, name := range dashboardNames {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkReadable(t, pictureOf(t, name))
		})
	}
}

func checkReadable(t *testing.T, picture string) {
	t.Helper()
	panels := strings.Split(picture, `<rect class="box" `)[1:]
	if len(panels) < 10 {
		t.Fatalf("the picture has %d panels", len(panels))
	}
	number := func(text, name string) float64 {
		match := regexp.MustCompile(name + `="([0-9.]+)"`).FindStringSubmatch(text)
		if match == nil {
			t.Fatalf("%s has no %s", text, name)
		}
		value, err := strconv.ParseFloat(match[1], 64)
		mustSucceed(t, err)
		return value
	}
	for _, panel := range panels {
		box, _, _ := strings.Cut(panel, "/>")
		left, right := number(" "+box, " x"), number(" "+box, " x")+number(box, "width")
		bottom := number(" "+box, " y") + number(box, "height")
		legends := map[string]bool{}
		for _, match := range regexp.MustCompile(`<text([^>]*)>([^<]*)</text>`).FindAllStringSubmatch(panel, -1) {
			attributes, words := match[1], html.UnescapeString(match[2])
			if strings.Contains(attributes, `class="row"`) { // the title of the next row
				continue
			}
			width := number(attributes, "font-size") * 0.55 * float64(len([]rune(words)))
			start := number(attributes, " x")
			switch {
			case strings.Contains(attributes, `"middle"`):
				start -= width / 2
			case strings.Contains(attributes, `"end"`):
				start -= width
			}
			if start < left-1 || start+width > right+1 || number(attributes, " y") > bottom-4 {
				t.Errorf("%q is cut off: it reaches from %.0f to %.0f in a panel from %.0f to %.0f", words, start, start+width, left, right)
			}
			if strings.Contains(attributes, `class="legend"`) {
				if legends[words] {
					t.Errorf("two lines have the legend %q", words)
				}
				legends[words] = true
			}
		}
	}
}
