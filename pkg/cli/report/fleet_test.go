// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/report"
)

// states lists cluster states and their tones.
var states = []struct {
	name string
	tone report.Tone
}{{"NotStarted", report.ToneNone}, {"Initialized", report.ToneRunning}, {"PartialUpgrade", report.ToneWarning}, {"Complete", report.ToneDone}, {"Failed", report.ToneFailed}}

// shops returns a fleet whose clusters cycle through the states.
func shops(n int) report.Fleet {
	f := report.Fleet{
		Name: "shops", Namespace: "fleet", Target: "4.20.6", Verdict: "finished, 1 failed", Tone: report.ToneFailed, Detail: "A retry helps.",
		Advice: "After fixing the cause: ", Command: "oc update fleet retry shops", Now: at(0),
		Facts:  []report.Fact{{Name: "Slots", Value: "1/4"}},
		Groups: []report.Group{{Name: "canaries", Text: "1 of 4 complete", Complete: 1, Active: 1, Failed: 1, Pending: 1}, {Name: "group 1"}},
		Causes: []report.FleetCause{{Tone: report.ToneFailed, Label: "FAILED", Count: 3, Text: "Superseded: another release", Clusters: []string{"shop-0004", "gone"}}},
	}
	for _, s := range states {
		f.States = append(f.States, s.name)
	}
	for i := range n {
		s := states[i%len(states)]
		f.Clusters = append(f.Clusters, report.Cluster{Name: fmt.Sprintf("shop-%04d", i), State: s.name, Tone: s.tone, Group: "canary", Step: "ClusterUpgraded", Reason: "Why", Message: "because", HasRun: s.name != "NotStarted"})
	}
	return f
}

// parsePage returns a page and its elements.
func parsePage(t *testing.T, write func(*strings.Builder) error) (string, []*html.Node) {
	t.Helper()
	var page strings.Builder
	if err := write(&page); err != nil {
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

func serve(t *testing.T, f report.Fleet, selection report.Selection) (string, []*html.Node) {
	t.Helper()
	return parsePage(t, func(page *strings.Builder) error { return report.WriteFleet(page, f, selection, 30*time.Second) })
}

// file writes a file with the pages of clusters.
func file(t *testing.T, f report.Fleet) (string, []*html.Node) {
	t.Helper()
	var details []report.Report
	for _, c := range f.Detailed() {
		r := night()
		r.Cluster, r.StepsOnly = c.Name, true
		details = append(details, r)
	}
	return parsePage(t, func(page *strings.Builder) error { return report.WriteFleetFile(page, f, details) })
}

// found returns the texts of elements with a name, and the addresses of links.
func found(elements []*html.Node, name string) []string {
	var all []string
	for _, n := range elements {
		if n.Data == name {
			all = append(all, strings.TrimSpace(text(n)+" "+attribute(n, "href")))
		}
	}
	return all
}

func TestWriteFleet(t *testing.T) {
	t.Parallel()
	page, elements := serve(t, shops(5), report.Selection{})
	checkSelfContained(t, page, elements)
	if !strings.Contains(page, `<meta http-equiv="refresh" content="30"/>`) {
		t.Error("the page is not read again")
	}
	header := found(elements, "header")[0]
	for _, want := range []string{
		"shops: upgrade to 4.20.6 finished, 1 failed managedclustersupgrade/shops in namespace fleet A retry helps.", "After fixing the cause: oc update fleet retry shops", "Slots 1/4",
	} {
		if !strings.Contains(header, want) {
			t.Errorf("the header lacks %q: %s", want, header)
		}
	}
	want := []string{
		"canaries 25 % 1 of 4 complete | bar done: 1 of 4 complete | bar running: 1 of 4 in flight or finishing | bar failed: 1 of 4 failed", "group 1",
	}
	if got := rows(elements); !slices.Equal(got, want) {
		t.Errorf("bars %q, want %q", got, want)
	}
	want = []string{
		"Cluster State Group Step Message", "shop-0000 NotStarted canary ClusterUpgraded Why: because", "shop-0001 Initialized canary ClusterUpgraded Why: because",
		"shop-0002 PartialUpgrade, slow canary ClusterUpgraded Why: because", "shop-0003 Complete canary ClusterUpgraded Why: because", "shop-0004 Failed canary ClusterUpgraded Why: because",
	}
	if got := found(elements, "tr"); !slices.Equal(got, want) {
		t.Errorf("table %q, want %q", got, want)
	}
	want = []string{
		"shop-0004 clusters/shop-0004", "All 5 ./", "NotStarted 1 ?state=NotStarted", "Initialized 1 ?state=Initialized", "PartialUpgrade 1 ?state=PartialUpgrade", "Complete 1 ?state=Complete", "Failed 1 ?state=Failed",
		"shop-0000 clusters/shop-0000", "shop-0001 clusters/shop-0001", "shop-0002 clusters/shop-0002", "shop-0003 clusters/shop-0003", "shop-0004 clusters/shop-0004",
	}
	if got := found(elements, "a"); !slices.Equal(got, want) {
		t.Errorf("links %q, want %q", got, want)
	}
	if want := "FAILED 3 : Superseded: another release: shop-0004 , gone and 1 more"; !slices.Contains(found(elements, "li"), want) {
		t.Errorf("causes %q", found(elements, "li"))
	}
}

// A served page contains some of the clusters in a state.
func TestWriteFleet_selection(t *testing.T) {
	t.Parallel()
	f := shops(1203)
	for name, tc := range map[string]struct {
		selection   report.Selection
		rows        int
		first, page string
		links       []string
	}{
		"all":                   {report.Selection{}, 100, "shop-0000", "Page 1 of 13", []string{"Next ?page=2"}},
		"the last page":         {report.Selection{Page: 13}, 3, "shop-1200", "Page 13 of 13", []string{"Previous ?page=12"}},
		"a page of none":        {report.Selection{Page: 99}, 3, "shop-1200", "Page 13 of 13", []string{"Previous ?page=12"}},
		"failed":                {report.Selection{State: "Failed"}, 100, "shop-0004", "Page 1 of 3", []string{"Next ?page=2&state=Failed"}},
		"failed, second page":   {report.Selection{State: "Failed", Page: 2}, 100, "shop-0504", "Page 2 of 3", []string{"Previous ?state=Failed", "Next ?page=3&state=Failed"}},
		"a state of no cluster": {report.Selection{State: "Unknown"}, -1, "", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page, elements := serve(t, f, tc.selection)
			checkSelfContained(t, page, elements)
			shown := found(elements, "tr")
			if len(shown) != tc.rows+1 || tc.rows > 0 && !strings.HasPrefix(shown[1], tc.first) || !strings.Contains(page, tc.page) {
				t.Errorf("%d rows: %.100q, want %d from %s, %s", len(shown)-1, shown, tc.rows, tc.first, tc.page)
			}
			for _, want := range tc.links {
				if !slices.Contains(found(elements, "a"), want) {
					t.Errorf("no link %q", want)
				}
			}
			if len(page) > 100_000 {
				t.Errorf("the page has %d bytes", len(page))
			}
		})
	}
}

func TestWriteFleetFile(t *testing.T) {
	t.Parallel()
	page, elements := file(t, shops(5))
	checkSelfContained(t, page, elements)
	ids := map[string]bool{}
	for _, n := range elements {
		if id := attribute(n, "id"); id != "" {
			if ids[id] {
				t.Errorf("two elements have the id %s", id)
			}
			ids[id] = true
		}
	}
	for _, n := range elements {
		if address := attribute(n, "href"); n.Data == "a" && !ids[strings.TrimPrefix(address, "#")] {
			t.Errorf("nothing in the file has the address %s", address)
		}
	}
	links := found(elements, "a")
	for _, want := range []string{"All clusters #state-", "Failed 1 #state-Failed", "shop-0004 #cluster-shop-0004"} {
		if !slices.Contains(links, want) {
			t.Errorf("no link %q: %q", want, links)
		}
	}
	if slices.ContainsFunc(links, func(l string) bool { return strings.HasPrefix(l, "shop-0000") }) {
		t.Error("a cluster that has not started has a page")
	}
	if articles := found(elements, "article"); len(articles) != 4 || !strings.Contains(articles[0], "shop-0004: 4.20.5 to 4.20.6") {
		t.Errorf("%d pages of clusters: %.200q", len(articles), articles)
	}
}

// The style sheet can filter by each state.
func TestStyle_filters_by_state(t *testing.T) {
	t.Parallel()
	style, err := os.ReadFile("report.css")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range states {
		for _, want := range []string{
			fmt.Sprintf("#state-%[1]s:target ~ main tr[class]:not(.state-%[1]s)", s.name), fmt.Sprintf(`#state-%[1]s:target ~ main a[href="#state-%[1]s"]`, s.name),
		} {
			if !strings.Contains(string(style), want) {
				t.Errorf("no rule %s", want)
			}
		}
	}
}

// The size of a file is limited for any number of clusters and any length of messages.
func TestWriteFleetFile_is_bounded(t *testing.T) {
	t.Parallel()
	f := shops(12_000)
	for i := range f.Clusters {
		f.Clusters[i].Message = strings.Repeat("x", 5000)
	}
	page, elements := file(t, f)
	if rows, articles := len(found(elements, "tr"))-1, len(found(elements, "article")); rows != report.MaxClusters || articles != report.MaxDetails {
		t.Errorf("%d rows and %d pages of clusters", rows, articles)
	}
	if !strings.Contains(page, "7000 more are not shown.") || len(page) > 5_000_000 {
		t.Errorf("%d bytes, which must say what is not shown", len(page))
	}
	clipped := f.Clusters[0].Clip()
	if len(clipped.Message) > 310 {
		t.Errorf("a message in memory has %d bytes", len(clipped.Message))
	}
}

func TestWriteFleet_hostile_texts(t *testing.T) {
	t.Parallel()
	const hostile = "javascript:alert(1)//\"><script>alert(1)</script></style>\u202e\x1b[31m\x00"
	f := shops(5)
	f.Name, f.Namespace, f.Target, f.Verdict, f.Detail, f.Advice, f.Command = hostile, hostile, hostile, hostile, hostile, hostile, hostile
	f.Facts[0].Value, f.Groups[0].Name, f.Groups[0].Text, f.Causes[0].Label, f.Causes[0].Text, f.Causes[0].Clusters = hostile, hostile, hostile, hostile, hostile, []string{hostile}
	f.Missing = []string{hostile}
	f.Clusters[4] = report.Cluster{Name: hostile, State: hostile, Group: hostile, Step: hostile, Reason: hostile, Message: hostile, HasRun: true}
	for name, write := range map[string]func() (string, []*html.Node){
		"served": func() (string, []*html.Node) { return serve(t, f, report.Selection{}) },
		"a file": func() (string, []*html.Node) { return file(t, f) },
	} {
		page, elements := write()
		checkSelfContained(t, page, elements)
		for _, harmful := range []string{"\u202e", "\x1b", "\x00"} {
			if strings.Contains(page, harmful) {
				t.Errorf("%s: the page has %q", name, harmful)
			}
		}
	}
}

// The page of a cluster that has not started has no axis, but has a link to the fleet.
func TestWrite_of_a_cluster_of_a_fleet(t *testing.T) {
	t.Parallel()
	page, elements := parse(t, report.Report{
		Cluster: "shop-1", Upgrade: "managedclustersupgrade/shops", Namespace: "fleet", StepsOnly: true, Back: "../", Now: at(0),
		Facts: []report.Fact{{Name: "State", Value: "NotStarted"}}, Record: history.Record{Version: "4.20.6", Phase: history.PhasePending, Message: "held"},
	})
	checkSelfContained(t, page, elements)
	body := found(elements, "body")[0]
	for _, want := range []string{"All clusters shop-1: 4.20.6 Pending managedclustersupgrade/shops in namespace fleet held State NotStarted", "Started not yet", "No step has started."} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q: %s", want, body)
		}
	}
	for _, wrong := range []string{"Nodes", "Alerts", "Events"} {
		if strings.Contains(body, wrong) {
			t.Errorf("the page has %q", wrong)
		}
	}
}
