// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

//go:embed report.css
var style string

// Pages are built from nodes, and html.Render escapes their texts and attributes. Templates would work as
// well, but their reflection makes the linker keep all exported methods.

// element returns an element. Attributes are pairs of names and values. Nil children are skipped.
func element(name string, attributes []string, children ...*html.Node) *html.Node {
	n := &html.Node{Type: html.ElementNode, Data: name}
	for i := 0; i+1 < len(attributes); i += 2 {
		n.Attr = append(n.Attr, html.Attribute{Key: attributes[i], Val: attributes[i+1]})
	}
	for _, child := range children {
		if child != nil {
			n.AppendChild(child)
		}
	}
	return n
}

// classed returns an element with a class, or without one if class is empty.
func classed(name, class string, children ...*html.Node) *html.Node {
	if class == "" {
		return element(name, nil, children...)
	}
	return element(name, []string{"class", class}, children...)
}

func words(s string) *html.Node { return &html.Node{Type: html.TextNode, Data: s} }

// each returns a node for each item.
func each[T any](items []T, node func(T) *html.Node) []*html.Node {
	nodes := make([]*html.Node, 0, len(items))
	for _, item := range items {
		nodes = append(nodes, node(item))
	}
	return nodes
}

// muted returns a paragraph in muted text.
func muted(s string) *html.Node { return classed("p", "muted", words(s)) }

// more returns a note about the number of hidden items, or nil if there are none.
func more(n int) *html.Node {
	if n == 0 {
		return nil
	}
	return muted(strconv.Itoa(n) + " more are not shown.")
}

// frame holds what all pages share.
type frame struct {
	Title, Made    string
	RefreshSeconds int
}

// page returns a page with a header and sections.
func (f frame) page(header *html.Node, sections ...*html.Node) *html.Node {
	made := "Made at " + f.Made + " by kubectl-update."
	if f.RefreshSeconds > 0 {
		made += " The page is read again every " + strconv.Itoa(f.RefreshSeconds) + " seconds."
	}
	document := &html.Node{Type: html.DocumentNode}
	document.AppendChild(&html.Node{Type: html.DoctypeNode, Data: "html"})
	body := element("body", nil, header, element("main", nil, sections...), element("footer", nil, muted(made)))
	document.AppendChild(element("html", []string{"lang", "en"}, f.head(), body))
	return document
}

func (f frame) head() *html.Node {
	meta := func(attributes ...string) *html.Node { return element("meta", attributes) }
	var refresh *html.Node
	if f.RefreshSeconds > 0 {
		refresh = meta("http-equiv", "refresh", "content", strconv.Itoa(f.RefreshSeconds))
	}
	return element("head", nil,
		refresh,
		meta("charset", "utf-8"),
		meta("name", "viewport", "content", "width=device-width, initial-scale=1"),
		meta("name", "color-scheme", "content", "light dark"),
		meta("http-equiv", "Content-Security-Policy", "content", "default-src 'none'; style-src 'unsafe-inline'"),
		element("title", nil, words(f.Title)),
		element("style", nil, words(style)),
	)
}

// link returns a link to another page or within the page.
func link(address, s string) *html.Node { return element("a", []string{"href", address}, words(s)) }

func (v view) page() *html.Node {
	header, sections := v.content()
	return v.frame.page(header, sections...)
}

// content returns the header and sections. Nil sections are skipped.
func (v view) content() (header *html.Node, sections []*html.Node) {
	header = element("header", nil,
		element("h1", nil, words(v.Heading)),
		element("p", nil, classed("span", "phase "+v.Class, words(v.Phase)), words(" "+v.Upgrade)),
	)
	if v.Message != "" {
		header.AppendChild(element("p", nil, words(v.Message)))
	}
	header.AppendChild(facets(v.Facts))
	if v.Back != "" {
		header.InsertBefore(element("p", nil, link(v.Back, "All clusters")), header.FirstChild)
	}
	for _, missing := range v.Missing {
		header.AppendChild(classed("p", classFailed, words("Missing: "+missing)))
	}
	sections = append([]*html.Node{causesSection(v.Causes)}, each(v.Charts, v.chart)...)
	if !v.StepsOnly {
		sections = append(sections, v.events())
	}
	return header, append(sections, v.attempts())
}

// facets returns the list of facts.
func facets(all []Fact) *html.Node {
	return element("dl", nil, each(all, func(f Fact) *html.Node {
		return element("div", nil, element("dt", nil, words(f.Name)), element("dd", nil, words(f.Value)))
	})...)
}

// causesSection returns the section of causes, or nil if there are none.
func causesSection(all []Cause) *html.Node {
	if len(all) == 0 {
		return nil
	}
	items := each(all, func(c Cause) *html.Node {
		item := element("li", nil, words(strings.Join(c.Chain, " → ")))
		if c.Remedy != "" {
			item.AppendChild(element("p", nil, words(c.Remedy)))
		}
		for _, command := range c.Commands {
			item.AppendChild(element("p", nil, element("code", nil, words(command))))
		}
		return item
	})
	return element("section", nil, element("h2", nil, words("Causes")), element("ul", nil, items...))
}

// legend explains the colors. Each entry is a word and a CSS class.
func legend(all [][2]string) *html.Node {
	return classed("p", "legend", each(all, func(l [2]string) *html.Node {
		return element("span", nil, classed("span", "key "+l[1]), words(l[0]))
	})...)
}

func (v view) chart(c chart) *html.Node {
	section := element("section", []string{"style", fmt.Sprintf("--names:%dch", namesWidth(v.Charts))}, element("h2", nil, words(c.Title)))
	if len(c.Rows) == 0 {
		section.AppendChild(muted(c.Empty))
		return section
	}
	ticks := each(v.Axis, func(t tick) *html.Node {
		return element("span", []string{"style", fmt.Sprintf("left:%v%%", t.Left)}, words(t.Text))
	})
	section.AppendChild(legend(c.Legend))
	section.AppendChild(classed("div", "row", classed("span", "muted", words(v.Date)), classed("div", "axis", ticks...)))
	for _, r := range c.Rows {
		section.AppendChild(r.node())
	}
	if n := more(c.More); n != nil {
		section.AppendChild(n)
	}
	return section
}

// nameClass returns the CSS class of a name. Names wrap only if they are too long.
func nameClass(name string) string {
	if len([]rune(name)) <= maxName {
		return "name"
	}
	return ""
}

func (r row) node() *html.Node {
	bars := each(r.Bars, func(b bar) *html.Node {
		return element("div", []string{
			"class", "bar " + b.Class, "style", fmt.Sprintf("left:%v%%;width:%v%%", b.Left, b.Width), "title", b.Title, "role", "img", "aria-label", b.Title,
		})
	})
	n := classed("div", "row", classed("span", nameClass(r.Name), words(r.Name)), classed("div", "track", bars...), classed("span", "took", words(r.Took)))
	if r.Text != "" {
		n.AppendChild(classed("span", "text", words(r.Text)))
	}
	return n
}

func (v view) events() *html.Node {
	section := element("section", nil, element("h2", nil, words("Events")))
	if len(v.Events) == 0 {
		section.AppendChild(muted("No Event is stored: the API server deletes Events after some hours."))
		return section
	}
	titles := each([]string{"Time", "Reason", "Message"}, func(s string) *html.Node { return element("th", nil, words(s)) })
	rows := each(v.Events, func(e eventRow) *html.Node {
		return element("tr", nil, classed("td", "name", words(e.Time)), classed("td", e.Class, words(e.Reason)), element("td", nil, words(e.Message)))
	})
	section.AppendChild(element("table", nil, element("thead", nil, element("tr", nil, titles...)), element("tbody", nil, rows...)))
	if n := more(v.MoreEvents); n != nil {
		section.AppendChild(n)
	}
	return section
}

// attempts returns the section of earlier attempts, or nil if there are none.
func (v view) attempts() *html.Node {
	if len(v.Attempts) == 0 {
		return nil
	}
	section := element("section", nil, element("h2", nil, words("Earlier attempts")))
	for _, attempt := range v.Attempts {
		section.AppendChild(element("p", nil, words(attempt)))
	}
	return section
}
