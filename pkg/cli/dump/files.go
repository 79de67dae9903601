// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// sniffBytes is how much of a file is read to check whether it contains objects.
	sniffBytes = 4096
	// ioBytes is the size of the read buffer.
	ioBytes = 64 << 10
)

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
)

// formatOf detects the format of a file from its first bytes. The name only decides whether a file without
// objects should have contained some.
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

// kindIn returns the first kind in a malformed text, or "".
func kindIn(content []byte) string {
	for _, match := range kindField.FindAllSubmatch(content, -1) {
		if kind := string(match[1]); kind != "List" {
			return kind
		}
	}
	return ""
}

// kindsOfPath returns the kinds whose resources appear in a path, as in a must-gather.
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

// wantedGroups lists the API groups that are read from a dump. All other objects are skipped, so a large
// must-gather is read within seconds.
var wantedGroups = []string{
	"apiserver.openshift.io", "cluster.open-cluster-management.io", "cluster.x-k8s.io", "config.openshift.io", "coordination.k8s.io",
	"hypershift.openshift.io", "machine.openshift.io", "machineconfiguration.openshift.io",
	"managedupgrade.appuio.io", "operator.openshift.io", "operators.coreos.com", "policy",
	"upgrade.managed.openshift.io",
}

// wantedCore lists the core kinds that are read from a dump.
var wantedCore = []string{"ConfigMap", "Event", "Node", "Pod"}

// wantedKinds yields the kinds recognized in the path of a malformed file.
func wantedKinds() func(yield func(string) bool) {
	return slices.Values([]string{
		"ClusterOperator", "ClusterVersion", "ConfigMap", "Event", "Lease", "MachineConfig", "MachineConfigPool", "MachineSet",
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

// addValue adds a decoded document: an object, a list, a JSON array of objects, or alerts. Any other value
// without a kind does not come from the API server, unless the document was truncated before its kind.
func (d *Dump) addValue(name string, value any, document []byte) {
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

// addObject adds an object or the items of a list.
func (d *Dump) addObject(name string, fields map[string]any) {
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
