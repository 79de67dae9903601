// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The links program checks the relative links in Markdown files. The target file of a link must
// exist and contain the heading named by the fragment. All files must be reachable by links from
// the first one; a link to a folder reaches all files in it. The program prints one line for each
// broken link and each unreachable file.
//
// Usage: links FILE...
package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

func main() {
	pages := map[string]*page{}
	broken := 0
	for _, file := range os.Args[1:] {
		p, err := load(pages, file)
		if err != nil {
			fmt.Fprintln(os.Stderr, "links:", err)
			os.Exit(1)
		}
		for _, link := range p.links {
			if reason := check(pages, file, link); reason != "" {
				fmt.Printf("%s: link %q: %s\n", file, link, reason)
				broken++
			}
		}
	}
	for _, file := range unreached(pages, os.Args[1:]) {
		fmt.Printf("%s: no chain of links leads here from %s\n", file, os.Args[1])
		broken++
	}
	if broken > 0 {
		os.Exit(1)
	}
}

// unreached returns the files that cannot be reached by links from the first one.
func unreached(pages map[string]*page, files []string) []string {
	reached, left := []string{files[0]}, files[1:]
	for n := 0; n < len(reached); n++ {
		linked := map[string]bool{}
		for _, link := range pages[reached[n]].links {
			if target, err := url.Parse(link); err == nil && target.Host == "" && target.Path != "" {
				linked[filepath.Join(filepath.Dir(reached[n]), target.Path)] = true
			}
		}
		var others []string
		for _, file := range left {
			if linked[file] || linked[filepath.Dir(file)] {
				reached = append(reached, file)
			} else {
				others = append(others, file)
			}
		}
		left = others
	}
	return left
}

// page contains the links and anchors of a Markdown file.
type page struct {
	links   []string
	anchors map[string]bool
}

func load(pages map[string]*page, file string) (*page, error) {
	if p := pages[file]; p != nil {
		return p, nil
	}
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	p := parse(source)
	pages[file] = p
	return p, nil
}

func parse(source []byte) *page {
	p := &page{anchors: map[string]bool{}}
	document := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	// Walk returns an error only if the function does.
	_ = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := node.(type) {
		case *ast.Heading:
			p.addAnchor(slug(plainText(n, source)))
		case *ast.Link:
			p.links = append(p.links, string(n.Destination))
		case *ast.Image:
			p.links = append(p.links, string(n.Destination))
		case *ast.RawHTML:
			for i := range n.Segments.Len() {
				segment := n.Segments.At(i)
				p.addID(string(segment.Value(source)))
			}
		case *ast.HTMLBlock:
			for i := range n.Lines().Len() {
				line := n.Lines().At(i)
				p.addID(string(line.Value(source)))
			}
		}
		return ast.WalkContinue, nil
	})
	return p
}

// addAnchor adds the anchor of a heading. GitHub numbers duplicates.
func (p *page) addAnchor(anchor string) {
	unique := anchor
	for n := 1; p.anchors[unique]; n++ {
		unique = fmt.Sprintf("%s-%d", anchor, n)
	}
	p.anchors[unique] = true
}

// addID adds the anchor of an HTML element, such as <a id="x">.
func (p *page) addID(html string) {
	for _, attribute := range []string{`id="`, `name="`} {
		if _, after, found := strings.Cut(html, attribute); found {
			id, _, _ := strings.Cut(after, `"`)
			p.anchors[id] = true
		}
	}
}

func plainText(node ast.Node, source []byte) string {
	var b strings.Builder
	for child := node.FirstChild(); child != nil; child = child.NextSibling() {
		switch c := child.(type) {
		case *ast.Text:
			b.Write(c.Segment.Value(source))
		case *ast.String:
			b.Write(c.Value)
		default:
			b.WriteString(plainText(c, source))
		}
	}
	return b.String()
}

// slug returns GitHub's anchor for a heading: lower case, hyphens instead of spaces, and no
// punctuation.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r >= 0x80:
			return r
		}
		return -1
	}, strings.ToLower(heading))
}

// check returns why a link in a file is broken, or an empty string. It does not follow links to
// other hosts.
func check(pages map[string]*page, file, link string) string {
	target, err := url.Parse(link)
	switch {
	case err != nil:
		return err.Error()
	case target.Scheme != "" || target.Host != "":
		return ""
	case strings.HasPrefix(target.Path, "/"):
		return "must be relative to the page"
	}
	path := file
	if target.Path != "" {
		path = filepath.Join(filepath.Dir(file), target.Path)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "there is no such file"
	case target.Fragment == "" || info.IsDir() || filepath.Ext(path) != ".md":
		return ""
	}
	p, err := load(pages, path)
	if err != nil {
		return err.Error()
	}
	if !p.anchors[target.Fragment] {
		return "there is no such heading"
	}
	return ""
}
