// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/html"
)

const (
	// PageSize is the number of clusters per served page.
	PageSize = 100

	// MaxClusters limits the clusters in a file.
	MaxClusters = 5000

	// MaxDetails limits the clusters in a file with detail pages.
	MaxDetails = 300

	// maxCell limits a text in the table of clusters, in bytes, and thus the memory for a fleet.
	maxCell = 300
)

// Tone says how good a state is.
type Tone string

// Tones, shown as colors.
const (
	ToneDone    Tone = classDone
	ToneRunning Tone = classRunning
	ToneNone    Tone = classSkipped
	ToneWarning Tone = "warning"
	ToneFailed  Tone = classFailed
)

// Fleet is the state of a fleet upgrade at one time.
type Fleet struct {
	// Name and Namespace identify the ManagedClustersUpgrade. Target is the target release.
	Name, Namespace, Target string
	// Verdict is the state, and Tone says how good it is.
	Verdict string
	Tone    Tone
	// Detail explains the verdict. It is empty if the verdict needs no explanation.
	Detail string
	// Command is the next command for the user to run. Advice introduces it. Both may be empty.
	Advice, Command string
	// Facts lists figures about the rollout.
	Facts []Fact
	// Groups lists the whole fleet, the canaries, and the groups.
	Groups []Group
	// Causes explains why clusters need attention.
	Causes []FleetCause
	// States lists the cluster states in display order.
	States []string
	// Clusters lists the clusters in admission order.
	Clusters []Cluster
	// Missing lists what could not be read, with reasons.
	Missing []string
	// Now is the time of the report.
	Now time.Time
}

// Group counts clusters that start together.
type Group struct {
	Name, Text string
	// Complete, Active, Failed, and Pending add up to the clusters of the group.
	Complete, Active, Failed, Pending int
}

// FleetCause explains why clusters need attention.
type FleetCause struct {
	Tone  Tone
	Label string
	Count int
	Text  string
	// Clusters lists some of these clusters.
	Clusters []string
}

// Cluster is a row of the table.
type Cluster struct {
	Name, State, Group, Step, Reason, Message string
	Tone                                      Tone
	// HasRun is set if the cluster has a ClusterUpgradeRun.
	HasRun bool
}

// Clip returns the cluster with sanitized and shortened texts.
func (c Cluster) Clip() Cluster {
	for _, s := range []*string{&c.Group, &c.Step, &c.Reason, &c.Message} {
		*s = strings.Clone(clip(*s))
	}
	return c
}

// Selection is the part of the table shown on a page.
type Selection struct {
	// State limits the page to clusters in this state. If it is empty, all clusters are shown.
	State string
	// Page is the number of the page, starting at 1.
	Page int
}

// WriteFleet writes a served page: part of the table, with links to the other parts and to the clusters'
// pages.
func WriteFleet(w io.Writer, f Fleet, selection Selection, refresh time.Duration) error {
	p := &fleetPage{
		Fleet: f, selection: selection,
		stateLink: func(state string, page int) string {
			if query := selectionQuery(state, page); query != "" {
				return "?" + query
			}
			return "./"
		},
		clusterLink: func(c Cluster) string { return "clusters/" + url.PathEscape(c.Name) },
	}
	selected := f.In(selection.State)
	p.pages = max(1, (len(selected)+PageSize-1)/PageSize)
	p.selection.Page = min(max(1, selection.Page), p.pages)
	p.shown = selected[(p.selection.Page-1)*PageSize : min(len(selected), p.selection.Page*PageSize)]
	return html.Render(w, p.page(refresh))
}

func selectionQuery(state string, page int) string {
	query := url.Values{}
	if state != "" {
		query.Set("state", state)
	}
	if page > 1 {
		query.Set("page", strconv.Itoa(page))
	}
	return query.Encode()
}

// WriteFleetFile writes the table and the pages of clusters to one file with internal links. Detailed selects
// the clusters with pages.
func WriteFleetFile(w io.Writer, f Fleet, details []Report) error {
	has := make(map[string]bool, len(details))
	for i := range details {
		has[details[i].Cluster] = true
	}
	p := &fleetPage{
		Fleet: f, shown: f.Clusters[:min(len(f.Clusters), MaxClusters)], pages: 1,
		stateLink: func(state string, _ int) string { return "#state-" + state },
		clusterLink: func(c Cluster) string {
			if has[c.Name] {
				return "#cluster-" + url.PathEscape(clean(c.Name))
			}
			return ""
		},
		more: max(0, len(f.Clusters)-MaxClusters),
	}
	document := p.page(0)
	body := document.LastChild.LastChild
	first := body.FirstChild
	for _, state := range append([]string{""}, f.States...) {
		body.InsertBefore(element("span", []string{"id", "state-" + state, "class", "anchor"}), first)
	}
	for _, r := range details {
		v := newView(r)
		v.Back = "#state-"
		header, sections := v.content()
		article := element("article", []string{"id", "cluster-" + clean(r.Cluster), "class", "detail"}, header)
		for _, section := range sections {
			if section != nil {
				article.AppendChild(section)
			}
		}
		body.InsertBefore(article, first)
	}
	return html.Render(w, document)
}

// In returns the clusters in a state, or all clusters if the state is empty.
func (f Fleet) In(state string) []Cluster {
	if state == "" {
		return f.Clusters
	}
	var all []Cluster
	for _, c := range f.Clusters {
		if c.State == state {
			all = append(all, c)
		}
	}
	return all
}

// Detailed returns the clusters with pages in a file. They have started. Failed clusters and clusters in
// progress come first.
func (f Fleet) Detailed() []Cluster {
	urgency := map[Tone]int{ToneFailed: 0, ToneWarning: 1, ToneRunning: 2}
	rank := func(c Cluster) int {
		if r, urgent := urgency[c.Tone]; urgent {
			return r
		}
		return len(urgency)
	}
	all := slices.DeleteFunc(slices.Clone(f.Clusters), func(c Cluster) bool { return !c.HasRun })
	slices.SortStableFunc(all, func(a, b Cluster) int { return cmp.Compare(rank(a), rank(b)) })
	return all[:min(len(all), MaxDetails)]
}

// fleetPage is a page about a fleet.
type fleetPage struct {
	Fleet

	selection   Selection
	shown       []Cluster
	pages, more int
	stateLink   func(state string, page int) string
	clusterLink func(Cluster) string // empty if the cluster has no page
}

func (p *fleetPage) page(refresh time.Duration) *html.Node {
	title := clean(p.Name) + ": upgrade to " + clean(p.Target)
	header := element("header", nil,
		element("h1", nil, words(title)),
		element("p", nil, classed("span", "phase "+string(p.Tone), words(clean(p.Verdict))), words(" managedclustersupgrade/"+clean(p.Name)+" in namespace "+clean(p.Namespace))),
	)
	if p.Detail != "" {
		header.AppendChild(element("p", nil, words(clean(p.Detail))))
	}
	if p.Command != "" {
		header.AppendChild(element("p", nil, words(clean(p.Advice)), element("code", nil, words(clean(p.Command)))))
	}
	facts := make([]Fact, len(p.Facts))
	for i, f := range p.Facts {
		facts[i] = Fact{f.Name, clean(f.Value)}
	}
	header.AppendChild(facets(facts))
	for _, missing := range p.Missing {
		header.AppendChild(classed("p", classFailed, words("Missing: "+clean(missing))))
	}
	return frame{title + ", " + clean(p.Verdict), stamp(p.Now), int(refresh.Seconds())}.page(header, p.groups(), p.causes(), p.table())
}

// groups returns the section with one bar per group.
func (p *fleetPage) groups() *html.Node {
	width := minName
	for _, g := range p.Groups {
		width = widen(width, clean(g.Name))
	}
	section := element("section", []string{"style", fmt.Sprintf("--names:%dch", width)}, element("h2", nil, words("Groups")))
	if len(p.Groups) == 0 {
		section.AppendChild(muted("The hub has not counted the clusters yet."))
		return section
	}
	section.AppendChild(legend([][2]string{{"complete", classDone}, {"in flight or finishing", classRunning}, {"failed", classFailed}, {"pending", "pending"}}))
	for _, g := range p.Groups {
		section.AppendChild(g.row().node())
	}
	return section
}

// row returns the bar of the group. Its parts follow one another.
func (g Group) row() row {
	total := g.Complete + g.Active + g.Failed + g.Pending
	r := row{Name: clean(g.Name), Text: clean(g.Text)}
	if total == 0 {
		return r
	}
	r.Took = strconv.Itoa(100*g.Complete/total) + " %"
	left := 0.0
	for _, part := range []struct {
		count       int
		word, class string
	}{{g.Complete, "complete", classDone}, {g.Active, "in flight or finishing", classRunning}, {g.Failed, "failed", classFailed}} {
		if part.count == 0 {
			continue
		}
		width := 100 * float64(part.count) / float64(total)
		title := fmt.Sprintf("%d of %d %s", part.count, total, part.word)
		r.Bars = append(r.Bars, bar{Class: part.class, Title: title, Left: percent(left), Width: percent(percent(left+width) - percent(left))})
		left += width
	}
	return r
}

// causes returns the section of causes, or nil if there are none.
func (p *fleetPage) causes() *html.Node {
	if len(p.Causes) == 0 {
		return nil
	}
	pages := make(map[string]string, len(p.shown))
	for _, c := range p.Clusters {
		pages[c.Name] = p.clusterLink(c)
	}
	items := each(p.Causes, func(c FleetCause) *html.Node {
		item := element("li", nil, classed("strong", string(c.Tone), words(clean(c.Label)+" "+strconv.Itoa(c.Count))), words(": "+clean(c.Text)))
		for i, name := range c.Clusters {
			item.AppendChild(words([]string{": ", ", "}[min(i, 1)]))
			if address := pages[name]; address != "" {
				item.AppendChild(link(address, clean(name)))
			} else {
				item.AppendChild(words(clean(name)))
			}
		}
		if n := c.Count - len(c.Clusters); n > 0 && len(c.Clusters) > 0 {
			item.AppendChild(words(" and " + strconv.Itoa(n) + " more"))
		}
		return item
	})
	return element("section", nil, element("h2", nil, words("Causes")), element("ul", nil, items...))
}

// table returns the section of clusters with a filter by state.
func (p *fleetPage) table() *html.Node {
	section := element("section", nil, element("h2", nil, words("Clusters")))
	counts := map[string]int{}
	for _, c := range p.Clusters {
		counts[c.State]++
	}
	filter := element("nav", []string{"class", "filter", "aria-label", "Filter by state"}, p.filterLink("", "All", len(p.Clusters)))
	for _, state := range p.States {
		filter.AppendChild(p.filterLink(state, state, counts[state]))
	}
	section.AppendChild(filter)
	if len(p.shown) == 0 {
		section.AppendChild(muted("No clusters found."))
		return section
	}
	titles := each([]string{"Cluster", "State", "Group", "Step", "Message"}, func(s string) *html.Node { return element("th", []string{"scope", "col"}, words(s)) })
	body := element("tbody", nil, each(p.shown, p.row)...)
	section.AppendChild(element("table", nil, element("thead", nil, element("tr", nil, titles...)), body))
	if n := more(p.more); n != nil {
		section.AppendChild(n)
	}
	if p.pages > 1 {
		section.AppendChild(p.pager())
	}
	return section
}

func (p *fleetPage) filterLink(state, word string, count int) *html.Node {
	a := link(p.stateLink(state, 1), fmt.Sprintf("%s %d", word, count))
	if p.selection.Page > 0 && p.selection.State == state {
		a.Attr = append(a.Attr, html.Attribute{Key: "aria-current", Val: "page"})
	}
	return a
}

func (p *fleetPage) row(c Cluster) *html.Node {
	name := words(clean(c.Name))
	if address := p.clusterLink(c); address != "" {
		name = link(address, clean(c.Name))
	}
	state, message := clip(c.State), clip(c.Message)
	if c.Tone == ToneWarning {
		state += ", slow"
	}
	if reason := clip(c.Reason); reason != "" && message != "" {
		message = reason + ": " + message
	} else if message == "" {
		message = reason
	}
	cell := func(s string) *html.Node { return classed("td", nameClass(s), words(s)) }
	return classed("tr", "state-"+clip(c.State),
		classed("td", nameClass(c.Name), name), classed("td", "name "+string(c.Tone), words(state)), cell(clip(c.Group)), cell(clip(c.Step)), element("td", nil, words(message)))
}

// pager returns the links to the previous and next page.
func (p *fleetPage) pager() *html.Node {
	nav := element("nav", []string{"class", "filter", "aria-label", "Pages"})
	at := p.selection.Page
	if at > 1 {
		nav.AppendChild(link(p.stateLink(p.selection.State, at-1), "Previous"))
	}
	nav.AppendChild(element("span", nil, words(fmt.Sprintf("Page %d of %d", at, p.pages))))
	if at < p.pages {
		nav.AppendChild(link(p.stateLink(p.selection.State, at+1), "Next"))
	}
	return nav
}
