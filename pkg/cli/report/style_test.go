// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	themePattern    = regexp.MustCompile(`:root \{([^}]*)\}`)
	variablePattern = regexp.MustCompile(`--([a-z]+): (#[0-9a-f]{6});`)
	colorPattern    = regexp.MustCompile(`#[0-9a-fA-F]{3,8}\b|\b(?:rgb|hsl)a?\(|\bopacity\b`)
	textPattern     = regexp.MustCompile(`(?:^|[{; ])color: var\(--([a-z]+)\)`)
	backPattern     = regexp.MustCompile(`background: var\(--([a-z]+)\)`)
)

// luminance returns the relative luminance of a color according to the Web Content Accessibility Guidelines.
func luminance(t *testing.T, color string) float64 {
	t.Helper()
	rgb, err := strconv.ParseUint(strings.TrimPrefix(color, "#"), 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		channel := float64(rgb>>(16-8*i)&0xff) / 255
		if channel <= 0.04045 {
			sum += weight * channel / 12.92
		} else {
			sum += weight * math.Pow((channel+0.055)/1.055, 2.4)
		}
	}
	return sum
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func TestContrast(t *testing.T) {
	t.Parallel()
	for pair, want := range map[[2]string]float64{{"#000000", "#ffffff"}: 21, {"#777777", "#ffffff"}: 4.48, {"#ffffff", "#ffffff"}: 1} {
		if got := contrast(t, pair[0], pair[1]); math.Abs(got-want) > 0.01 {
			t.Errorf("%v: %.2f, want %.2f", pair, got, want)
		}
	}
}

// TestStyle_has_contrast checks the contrast ratios that WCAG 2.2 AA requires in light and dark mode: 4.5
// between text and background, and 3 between a bar and its track.
func TestStyle_has_contrast(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("report.css")
	if err != nil {
		t.Fatal(err)
	}
	style := string(content)
	themes := themePattern.FindAllStringSubmatch(style, -1)
	if len(themes) != 2 {
		t.Fatalf("%d themes, want light and dark", len(themes))
	}
	rules := themePattern.ReplaceAllString(style, "")
	if literal := colorPattern.FindString(rules); literal != "" {
		t.Errorf("the rules have %q, which no theme changes", literal)
	}
	backs := map[string]bool{}
	for _, match := range backPattern.FindAllStringSubmatch(rules, -1) {
		backs[match[1]] = true
	}
	if fmt.Sprint(backs) != fmt.Sprint(map[string]bool{"back": true, "track": true}) {
		t.Fatalf("the backgrounds are %v", backs)
	}
	texts := map[string]bool{}
	for _, match := range textPattern.FindAllStringSubmatch(rules, -1) {
		texts[match[1]] = true
	}
	for _, want := range []string{"text", "muted", "done", "running", "skipped", "neutral", "warning", "failed"} {
		if !texts[want] {
			t.Errorf("no text has the color %s", want)
		}
	}
	for i, theme := range []string{"light", "dark"} {
		colors := map[string]string{}
		for _, match := range variablePattern.FindAllStringSubmatch(themes[i][1], -1) {
			colors[match[1]] = match[2]
		}
		for name := range texts {
			if colors[name] == "" {
				t.Errorf("%s: no color %s", theme, name)
				continue
			}
			if got := contrast(t, colors[name], colors["back"]); got < 4.5 {
				t.Errorf("%s: text %s: contrast %.2f, want 4.5", theme, name, got)
			}
			if got := contrast(t, colors[name], colors["track"]); got < 3 {
				t.Errorf("%s: bar %s: contrast %.2f, want 3", theme, name, got)
			}
		}
	}
}
