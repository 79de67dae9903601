// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// sniffBytes is how much of a file is read to find out whether it has objects.
const sniffBytes = 4096

// format is the format of a file.
type format int

const (
	formatOther format = iota
	formatYAML
	formatJSON
)

var (
	yamlStart = regexp.MustCompile("^(\\s|#.*\n|---.*\n)*apiVersion:")
	kindField = regexp.MustCompile("(?m)(?:^|[{,])\\s*\"?kind\"?\\s*:\\s*[\"']?([A-Za-z]+)")
	typeField = regexp.MustCompile("(?m)^(apiVersion|kind):\\s*[\"']?([A-Za-z0-9./-]+)")
)

// formatOf returns the format of a file from its first bytes. Names only decide that a file which was
// to have objects has none.
func formatOf(name string, start []byte) format {
	trimmed := bytes.TrimLeft(start, "\xef\xbb\xbf \t\r\n")
	extension := path.Ext(name)
	switch {
	case extension == ".log":
		return formatOther
	case bytes.HasPrefix(trimmed, []byte("{")), bytes.HasPrefix(trimmed, []byte("[")) && extension == ".json":
		return formatJSON
	case yamlStart.Match(start), extension == ".yaml", extension == ".yml":
		return formatYAML
	case extension == ".json":
		return formatJSON
	default:
		return formatOther
	}
}

// kindIn returns a kind that a broken text names, or "".
func kindIn(content []byte) string {
	for _, match := range kindField.FindAllSubmatch(content, -1) {
		if kind := string(match[1]); kind != "List" {
			return kind
		}
	}
	return ""
}

// kindsOfPath returns the kinds whose resources a path names, as in a must-gather.
func kindsOfPath(file string) []string {
	var kinds []string
	for part := range strings.SplitSeq(strings.ToLower(strings.TrimSuffix(file, path.Ext(file))), "/") {
		for kind := range wantedKinds() {
			if part == strings.ToLower(kind)+"s" || part == strings.ToLower(kind) {
				kinds = append(kinds, kind)
			}
		}
	}
	return kinds
}

// wantedGroups are the groups whose objects are read from a dump. Other objects are skipped, so that a
// large must-gather is read in seconds.
var wantedGroups = []string{
	"apiserver.openshift.io", "cluster.open-cluster-management.io", "cluster.x-k8s.io", "config.openshift.io", "coordination.k8s.io",
	"hypershift.openshift.io", "machine.openshift.io", "machineconfiguration.openshift.io",
	"managedupgrade.appuio.io", "operator.openshift.io", "operators.coreos.com", "policy",
	"upgrade.managed.openshift.io",
}

// wantedCore are the kinds of the core group that are read from a dump.
var wantedCore = []string{"ConfigMap", "Node", "Pod"}

// wantedKinds yields kinds whose resources are recognized in the path of a broken file.
func wantedKinds() func(yield func(string) bool) {
	return slices.Values([]string{
		"ClusterOperator", "ClusterVersion", "ConfigMap", "Lease", "MachineConfig", "MachineConfigPool", "MachineSet",
		"Node", "Pod", "PodDisruptionBudget", "UpdateInformer", "UpdateStatus", "UpgradeConfig", "UpgradeJob",
	})
}

// wanted reports whether objects or lists of a kind are read.
func wanted(apiVersion, kind string) bool {
	group, _, hasGroup := strings.Cut(apiVersion, "/")
	if !hasGroup {
		return kind == "List" || slices.Contains(wantedCore, strings.TrimSuffix(kind, "List"))
	}
	return slices.Contains(wantedGroups, group)
}

// addYAML adds the documents of a YAML file. Those before a broken one count.
func (d *dump) addYAML(name string, content []byte) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	last := ""
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			d.problem(name, kindIn(content), "is broken: "+text.Excerpt(err.Error()))
			return
		}
		if len(bytes.TrimSpace(document)) == 0 || !mayBeWanted(document) {
			last = ""
			continue
		}
		last = d.addYAMLDocument(name, document)
	}
	if last != "" && !bytes.HasSuffix(content, []byte("\n")) {
		d.problem(name, last, "may be cut off: its last line has no end")
	}
}

// mayBeWanted reports whether a document has to be decoded.
func mayBeWanted(document []byte) bool {
	var apiVersion, kind string
	for _, match := range typeField.FindAllSubmatch(document, -1) {
		if string(match[1]) == "kind" {
			kind = string(match[2])
		} else {
			apiVersion = string(match[2])
		}
	}
	return apiVersion == "" || kind == "" || wanted(apiVersion, kind)
}

// addYAMLDocument adds a document, and returns its kind.
func (d *dump) addYAMLDocument(name string, document []byte) string {
	content, err := yaml.YAMLToJSON(document)
	if err != nil {
		d.problem(name, kindIn(document), "is broken: "+text.Excerpt(err.Error()))
		return ""
	}
	var value any
	if err := utiljson.Unmarshal(content, &value); err != nil {
		d.problem(name, kindIn(document), "is broken: "+text.Excerpt(err.Error()))
		return ""
	}
	d.addValue(name, value, document)
	if fields, ok := value.(map[string]any); ok {
		kind, _ := fields["kind"].(string)
		if kind == "List" {
			return kindIn(document)
		}
		return kind
	}
	return ""
}

// addJSON adds the documents of a JSON file. Those before a broken one count.
func (d *dump) addJSON(name string, content []byte) {
	decoder := json.NewDecoder(bytes.NewReader(content))
	for {
		at := decoder.InputOffset()
		var document json.RawMessage
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return
		}
		var value any
		if err == nil {
			err = utiljson.Unmarshal(document, &value)
		}
		if err != nil {
			if isAlerts(content[at:]) {
				d.alerts = &dumpAlerts{err: fmt.Errorf("%s is broken: %w", name, err)}
			}
			d.problem(name, kindIn(content[at:]), "is broken: "+text.Excerpt(err.Error()))
			return
		}
		d.addValue(name, value, document)
	}
}

// addValue adds a decoded document: an object, a list, a JSON array of objects, or alerts. Anything
// else that names no kind is not from the API server, unless its kind has been cut off.
func (d *dump) addValue(name string, value any, document []byte) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			d.addValue(name, item, nil)
		}
	case map[string]any:
		switch {
		case d.addAlerts(name, value):
		case value["kind"] != nil && value["apiVersion"] != nil:
			d.addObject(name, value)
		case value["items"] != nil || value["metadata"] != nil || value["apiVersion"] != nil || value["kind"] != nil:
			d.problem(name, kindIn(document), "is broken: an object without apiVersion or kind")
		}
	}
}

// addObject adds an object, or the items of a list.
func (d *dump) addObject(name string, fields map[string]any) {
	object := &unstructured.Unstructured{Object: fields}
	kind, apiVersion := object.GetKind(), object.GetAPIVersion()
	items, isList := fields["items"].([]any)
	if !isList && !strings.HasSuffix(kind, "List") {
		switch {
		case !wanted(apiVersion, kind):
		case object.GetName() == "":
			d.problem(name, kind, "is broken: an object without a name")
		default:
			d.add(object)
		}
		return
	}
	if !isList && fields["items"] != nil {
		d.problem(name, kind, "is broken: the items are no list")
		return
	}
	of := strings.TrimSuffix(kind, "List")
	if of != "" && wanted(apiVersion, kind) {
		d.seen[schema.FromAPIVersionAndKind(apiVersion, of).GroupKind()] = true
	}
	if list := (&unstructured.UnstructuredList{Object: fields}); list.GetContinue() != "" {
		d.problem(name, of, "has only a part of the list")
	}
	for _, item := range items {
		fields, ok := item.(map[string]any)
		if !ok {
			d.problem(name, of, "is broken: an item is not an object")
			continue
		}
		if fields["kind"] == nil && of != "" {
			fields["kind"], fields["apiVersion"] = of, apiVersion
		}
		d.addValue(name, fields, nil)
	}
}
