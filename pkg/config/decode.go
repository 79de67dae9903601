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

// maxDepth is how many levels of keys are looked into beyond the first: one more than there are.
const maxDepth = 2

// keyPattern is what any key looks like.
var keyPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// quoteSafely is what is written in a file made fit for a message: short, in quotes,
// and left out if it may be a URL with a secret in it.
func quoteSafely(text string) string {
	const most = 64
	switch {
	case strings.ContainsAny(text, "@?#"):
		text = "…"
	case len(text) > most:
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return strconv.Quote(text)
}

// node is one value of a file: its path, what is written there and in which line.
type node struct {
	path, text string
	line       int
	empty      bool // nothing is written there
	isText     bool
	isList     bool
	items      []node // of a list
}

func (e node) quoted() string { return quoteSafely(e.text) }

// read returns the values of a YAML text in their order.
func read(data []byte) ([]node, error) {
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
	return flatten("", top), nil
}

func flatten(path string, yamlNode *yaml.Node) []node {
	switch {
	case yamlNode.Kind == yaml.SequenceNode:
		return []node{{path: path, text: "a list", line: yamlNode.Line, isList: true, items: listItems(yamlNode)}}
	case yamlNode.Kind == yaml.AliasNode:
		return []node{{path: path, text: "*" + yamlNode.Value, line: yamlNode.Line}}
	case yamlNode.Kind == yaml.ScalarNode:
		return []node{{path: path, text: yamlNode.Value, line: yamlNode.Line, empty: yamlNode.Tag == "!!null", isText: yamlNode.Tag == "!!str"}}
	case len(yamlNode.Content) == 0:
		return []node{{path: path, line: yamlNode.Line, empty: true}}
	case strings.Count(path, ".") >= maxDepth:
		return []node{{path: path, text: "keys", line: yamlNode.Line}}
	}
	var all []node
	for i := 0; i+1 < len(yamlNode.Content); i += 2 {
		key := yamlNode.Content[i].Value
		if !keyPattern.MatchString(key) { // with a dot, it is no path, and must not be taken for one
			key = quoteSafely(key)
		}
		if path != "" {
			key = path + "." + key
		}
		all = append(all, flatten(key, yamlNode.Content[i+1])...)
	}
	return all
}

// listItems are those of a list. What is no text in it is named, not looked into.
func listItems(list *yaml.Node) []node {
	all := make([]node, 0, len(list.Content))
	for _, yamlNode := range list.Content {
		if yamlNode.Kind == yaml.MappingNode {
			all = append(all, node{text: "keys", line: yamlNode.Line})
			continue
		}
		all = append(all, flatten("", yamlNode)...)
	}
	return all
}
