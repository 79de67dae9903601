// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// entry is one value of a file: its path, what is written there and in which line.
type entry struct {
	path, text string
	line       int
	empty      bool // nothing is written there
	isText     bool
	isList     bool
	items      []entry // of a list
}

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
	}
	var all []entry
	for i := 0; i+1 < len(node.Content); i += 2 {
		at := node.Content[i].Value
		if strings.Contains(at, ".") { // it is no path, and must not be taken for one
			at = strconv.Quote(at)
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
