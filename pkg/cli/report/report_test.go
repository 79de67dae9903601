// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/report"
)

var start = time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC)

func at(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }

func pointer(minutes int) *metav1.Time { return new(metav1.NewTime(at(minutes))) }

// night returns an upgrade that failed after two hours.
func night() report.Report {
	step := func(name string, from, to int, status metav1.ConditionStatus, message string) history.StepCondition {
		return history.StepCondition{Type: name, Status: status, Reason: "Done", Message: message, StartTime: pointer(from), CompleteTime: pointer(to)}
	}
	return report.Report{
		Cluster: "store-7", Upgrade: "upgrade/cluster", Namespace: "managed-upgrade-operator", Now: at(300),
		Causes: []report.Cause{{Chain: []string{"a budget refuses", "the drain waits"}, Remedy: "Change it:", Commands: []string{"oc edit pdb"}}},
		Record: history.Record{
			Version: "4.20.6", PrecedingVersion: "4.20.5", Phase: history.PhaseFailed, Attempt: 2, Message: "AllWorkerNodesUpgraded: a node is not ready",
			StartTime: pointer(0), CommenceTime: pointer(10), CompleteTime: pointer(120),
			Conditions: []history.StepCondition{
				step("PreHealthCheck", 0, 10, metav1.ConditionTrue, "healthy"),
				step("ControlPlaneUpgraded", 10, 60, metav1.ConditionTrue, ""),
				step("AllWorkerNodesUpgraded", 60, 120, metav1.ConditionFalse, "a node is not ready"),
			},
			PreviousAttempts: []history.PreviousAttempt{{Attempt: 1, Phase: history.PhaseFailed, FailedStep: "PreHealthCheck", Message: "etcd is degraded"}},
		},
		Nodes: []report.Row{
			{Name: "worker-1", Bars: []report.Bar{{report.KindCordoned, at(75), at(110)}, {report.KindNotReady, at(80), at(120)}}},
			{Name: "worker-0", Bars: []report.Bar{{report.KindCordoned, at(61), at(74)}, {report.KindNotReady, at(66), at(72)}}},
			{Name: "worker-2", Bars: []report.Bar{{report.KindNotReady, at(70), at(75)}}},
			{Name: "earlier", Bars: []report.Bar{{report.KindCordoned, at(-60), at(-50)}}},
		},
		Alerts: []report.Row{
			{Name: "KubeNodeNotReady", Bars: []report.Bar{{report.KindCritical, at(90), at(180)}}},
			{Name: "Long", Bars: []report.Bar{{report.KindWarning, at(-100), at(500)}}},
		},
		Events:  []report.Event{{Time: at(0), Reason: "UpgradeStarted", Message: "the upgrade to 4.20.6 has started"}, {Time: at(120), Warning: true, Reason: "UpgradeFailed"}},
		Missing: []string{"alerts: a part"},
	}
}

// parse writes a report and returns the page and all of its elements.
func parse(t *testing.T, r report.Report) (string, []*html.Node) {
	t.Helper()
	var page strings.Builder
	if err := report.Write(&page, r); err != nil {
		t.Fatal(err)
	}
	root, err := html.Parse(strings.NewReader(page.String()))
	if err != nil {
		t.Fatal(err)
	}
	var elements []*html.Node
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			elements = append(elements, n)
		}
	}
	return page.String(), elements
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// text returns the text of an element.
func text(n *html.Node) string {
	var all strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			all.WriteString(d.Data + " ")
		}
	}
	return strings.Join(strings.Fields(all.String()), " ")
}

// rows returns the texts of the chart rows and the titles of their bars.
func rows(elements []*html.Node) []string {
	var all []string
	for _, n := range elements {
		if attribute(n, "class") != "row" {
			continue
		}
		bars := []string{text(n)}
		for d := range n.Descendants() {
			if title := attribute(d, "title"); title != "" {
				bars = append(bars, attribute(d, "class")+": "+title)
			}
		}
		all = append(all, strings.Join(bars, " | "))
	}
	return all
}

func TestWrite(t *testing.T) {
	t.Parallel()
	page, elements := parse(t, night())
	const axis = "2026-11-23 UTC 02:00 02:30 03:00 03:30 04:00"
	want := []string{
		axis,
		"PreHealthCheck 10m healthy | bar done: done, 2026-11-23 02:00:00 UTC, 10m",
		"ControlPlaneUpgraded 50m | bar done: done, 2026-11-23 02:10:00 UTC, 50m",
		"AllWorkerNodesUpgraded 60m a node is not ready | bar failed: failed, 2026-11-23 03:00:00 UTC, 60m",
		axis,
		"worker-0 | bar cordoned: cordoned, 2026-11-23 03:01:00 UTC, 13m | bar rebooting: rebooting, 2026-11-23 03:06:00 UTC, 6m",
		"worker-2 | bar failed: not ready, 2026-11-23 03:10:00 UTC, 5m",
		"worker-1 | bar cordoned: cordoned, 2026-11-23 03:15:00 UTC, 35m | bar failed: not ready, 2026-11-23 03:20:00 UTC, 40m",
		axis,
		"Long | bar warning: warning, 2026-11-23 00:20:00 UTC, 10h",
		"KubeNodeNotReady | bar failed: critical, 2026-11-23 03:30:00 UTC, 90m",
	}
	if got := rows(elements); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("rows:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var body string
	for _, n := range elements {
		if n.Data == "body" {
			body = text(n)
		}
	}
	for _, want := range []string{
		"store-7: 4.20.5 to 4.20.6", "Failed upgrade/cluster in namespace managed-upgrade-operator", "AllWorkerNodesUpgraded: a node is not ready", "Attempt 2",
		"Causes AllWorkerNodesUpgraded failed: a node is not ready a budget refuses → the drain waits Change it: oc edit pdb",
		"Steps done failed 2026-11-23", "Nodes cordoned rebooting not ready 2026-11-23", "Alerts warning critical 2026-11-23",
		"Started 2026-11-23 02:00:00 UTC", "Commenced 2026-11-23 02:10:00 UTC", "Ended 2026-11-23 04:00:00 UTC", "Duration 120m", "Missing: alerts: a part",
		"2026-11-23 02:00:00 UTC UpgradeStarted the upgrade to 4.20.6 has started", "Attempt 1: Failed PreHealthCheck. etcd is degraded",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q: %s", want, body)
		}
	}
	checkSelfContained(t, page, elements)
}

// checkSelfContained fails if a page loads or runs anything or if a bar exceeds its track.
func checkSelfContained(t *testing.T, page string, elements []*html.Node) {
	t.Helper()
	position := regexp.MustCompile(`^left:([0-9.e+-]+)%(?:;width:([0-9.e+-]+)%)?$`)
	relative := regexp.MustCompile(`^(\./|\.\./|\?[a-zA-Z0-9=&]+|clusters/[^/?#]+|#(state|cluster)-[^/?#]*)$`)
	width := regexp.MustCompile(`^--names:[1-9][0-9]?ch$`)
	found := map[string]bool{}
	for _, n := range elements {
		switch n.Data {
		case "script", "link", "img", "iframe", "object", "embed", "form", "base", "svg":
			t.Errorf("the page has <%s>", n.Data)
		case "a":
			if address := attribute(n, "href"); !relative.MatchString(address) {
				t.Errorf("the page has a link to %q", address)
			}
		}
		found[attribute(n, "name")+attribute(n, "http-equiv")] = true
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "src" || a.Key == "href" && n.Data != "a" {
				t.Errorf("<%s> has the attribute %s", n.Data, a.Key)
			}
			if a.Key != "style" || n.Data == "section" && width.MatchString(a.Val) {
				continue
			}
			match := position.FindStringSubmatch(a.Val)
			if match == nil {
				t.Errorf("style %q", a.Val)
				continue
			}
			left, _ := strconv.ParseFloat(match[1], 64)
			extent, _ := strconv.ParseFloat(match[2], 64)
			if left < 0 || extent < 0 || left+extent > 100.001 {
				t.Errorf("style %q leaves the track", a.Val)
			}
		}
	}
	for _, want := range []string{"viewport", "color-scheme", "Content-Security-Policy"} {
		if !found[want] {
			t.Errorf("the page has no meta element %s", want)
		}
	}
	if strings.Contains(page, "url(") || strings.Contains(page, "@import") {
		t.Errorf("the page loads something:\n%s", page)
	}
}

func TestWrite_hostile_texts(t *testing.T) {
	t.Parallel()
	const hostile = "</style><script>alert(1)</script><img src=x onerror=alert(1)>\" style=\"left:0\u202etxt\x1b[31m\x00"
	r := night()
	r.Cluster, r.Upgrade, r.Namespace, r.Missing = hostile, hostile, hostile, []string{hostile}
	r.Causes = []report.Cause{{Chain: []string{hostile, hostile}, Remedy: hostile, Commands: []string{hostile}}}
	r.Record.Version, r.Record.PrecedingVersion, r.Record.Message, r.Record.Phase = hostile, hostile, hostile, history.Phase(hostile)
	r.Record.PreviousAttempts[0].Message = hostile
	r.Record.Conditions[0].Type, r.Record.Conditions[0].Message = hostile, hostile
	r.Record.Conditions[0].Items = []history.StepItem{{Name: hostile, Status: hostile}}
	r.Nodes = []report.Row{{Name: hostile, Bars: []report.Bar{{report.BarKind(hostile), at(10), at(20)}}}}
	r.Events[0].Reason, r.Events[0].Message = hostile, hostile
	page, elements := parse(t, r)
	checkSelfContained(t, page, elements)
	for _, harmful := range []string{"\u202e", "\x1b", "\x00"} {
		if strings.Contains(page, harmful) {
			t.Errorf("the page has %q", harmful)
		}
	}
}

func TestWrite_odd_reports(t *testing.T) {
	t.Parallel()
	many := func(n int) []report.Row {
		var all []report.Row
		for i := range n {
			all = append(all, report.Row{Name: fmt.Sprintf("node-%04d", i), Bars: []report.Bar{{report.KindCordoned, at(10), at(20)}}})
		}
		return all
	}
	for name, tc := range map[string]struct {
		edit func(*report.Report)
		want string
	}{
		"in progress":            {func(r *report.Report) { r.Record.CompleteTime, r.Record.Phase = nil, history.PhaseUpgrading }, "not yet"},
		"hooks only":             {func(r *report.Report) { r.Record.Version, r.Record.PrecedingVersion = "", "" }, "hooks only"},
		"no duration":            {func(r *report.Report) { r.Record.CompleteTime, r.Record.Conditions = r.Record.StartTime, nil }, "No step has started."},
		"the clock was set back": {func(r *report.Report) { r.Record.CompleteTime = pointer(-10) }, "PreHealthCheck"},
		"a step without times":   {func(r *report.Report) { r.Record.Conditions[0].StartTime = nil }, "PreHealthCheck"},
		"no nodes and no alerts": {func(r *report.Report) { r.Nodes, r.Alerts = nil, nil }, "No alert is known to have fired."},
		"no Events":              {func(r *report.Report) { r.Events = nil }, "No Event is stored"},
		"2,000 nodes":            {func(r *report.Report) { r.Nodes = many(2000) }, "1800 more are not shown."},
		"many Events":            {func(r *report.Report) { r.Events = make([]report.Event, 600) }, "100 more are not shown."},
		"a node without a bar":   {func(r *report.Report) { r.Nodes[0].Bars = nil }, "worker-0"},
		"of half a minute": {func(r *report.Report) {
			r.Record.CompleteTime = new(metav1.NewTime(at(0).Add(30 * time.Second)))
			r.Record.Conditions = r.Record.Conditions[:1]
			r.Record.Conditions[0].CompleteTime = nil
		}, ">02:00:15<"},
		"over midnight":        {func(r *report.Report) { r.Record.StartTime = pointer(-300) }, ">Nov 22 21:00<"},
		"that has not started": {func(r *report.Report) { r.Record.StartTime = nil }, "No step has started."},
		"of a fleet":           {func(r *report.Report) { r.StepsOnly = true }, "AllWorkerNodesUpgraded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := night()
			tc.edit(&r)
			page, elements := parse(t, r)
			checkSelfContained(t, page, elements)
			if !strings.Contains(page, tc.want) {
				t.Errorf("the page lacks %q", tc.want)
			}
		})
	}
}
