// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// deepest is how many levels of keys are looked into beyond the first: one more than there are.
const deepest = 2

// isKey is what any key looks like.
var isKey = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// shown is what is written in a file made fit for a message: short, in quotes,
// and left out if it may be a URL with a secret in it.
func shown(text string) string {
	const most = 64
	switch {
	case strings.ContainsAny(text, "@?#"):
		text = "…"
	case len(text) > most:
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return strconv.Quote(text)
}

// entry is one value of a file: its path, what is written there and in which line.
type entry struct {
	path, text string
	line       int
	empty      bool // nothing is written there
	isText     bool
	isList     bool
	items      []entry // of a list
}

func (e entry) shown() string { return shown(e.text) }

// read returns the values of a YAML text in their order.
func read(data []byte) ([]entry, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, another yaml.Node
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := decoder.Decode(&another); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one document, must be one")
	}
	if len(document.Content) == 0 {
		return nil, nil
	}
	top := document.Content[0]
	if top.Kind != yaml.MappingNode && top.Tag != "!!null" {
		return nil, errors.New("must be keys and their values, such as upgradeWindow: 30m")
	}
	return entries("", top), nil
}

func entries(path string, node *yaml.Node) []entry {
	switch {
	case node.Kind == yaml.SequenceNode:
		return []entry{{path: path, text: "a list", line: node.Line, isList: true, items: items(node)}}
	case node.Kind == yaml.AliasNode:
		return []entry{{path: path, text: "*" + node.Value, line: node.Line}}
	case node.Kind == yaml.ScalarNode:
		return []entry{{path: path, text: node.Value, line: node.Line, empty: node.Tag == "!!null", isText: node.Tag == "!!str"}}
	case len(node.Content) == 0:
		return []entry{{path: path, line: node.Line, empty: true}}
	case strings.Count(path, ".") >= deepest:
		return []entry{{path: path, text: "keys", line: node.Line}}
	}
	var all []entry
	for i := 0; i+1 < len(node.Content); i += 2 {
		at := node.Content[i].Value
		if !isKey.MatchString(at) { // with a dot, it is no path, and must not be taken for one
			at = shown(at)
		}
		if path != "" {
			at = path + "." + at
		}
		all = append(all, entries(at, node.Content[i+1])...)
	}
	return all
}

// items are those of a list. What is no text in it is named, not looked into.
func items(list *yaml.Node) []entry {
	all := make([]entry, 0, len(list.Content))
	for _, node := range list.Content {
		if node.Kind == yaml.MappingNode {
			all = append(all, entry{text: "keys", line: node.Line})
			continue
		}
		all = append(all, entries("", node)...)
	}
	return all
}
