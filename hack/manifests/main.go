// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The manifests program transforms manifests between `kubectl kustomize` and a cluster.
//
// Usage:
//
//	manifests render IMAGE TAG  replaces the image, and the branch in the URLs of alert pages with the tag of a release
//	manifests hive              wraps the manifests in a SelectorSyncSet for Hive
//	manifests names             prints the kind, the namespace or -, and the name of each object
//	manifests without KIND NAME omits an object
//	manifests chart             turns the manifests into the template of a Helm chart
//
// It reads YAML documents from stdin and, except for names, writes YAML documents to stdout.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// placeholder is the image in the manifests of this repository.
const placeholder = "managed-upgrade-operator:latest"

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	objects, err := read(in)
	if err != nil {
		return err
	}
	template := strings.NewReplacer()
	switch {
	case len(args) == 3 && args[0] == "render":
		for i := range objects {
			objects[i] = render("", objects[i], args[1], args[2])
		}
	case len(args) == 1 && args[0] == "hive":
		objects = []any{selectorSyncSet(objects)}
	case len(args) == 1 && args[0] == "chart":
		objects, template = chart(objects)
	case len(args) == 1 && args[0] == "names":
		return writeNames(out, objects)
	case len(args) == 3 && args[0] == "without":
		objects = slices.DeleteFunc(objects, func(object any) bool {
			return field(object, "kind") == args[1] && field(object, "metadata", "name") == args[2]
		})
	default:
		return errors.New("usage: manifests render IMAGE TAG | hive | chart | names | without KIND NAME")
	}
	return write(out, template, objects)
}

// writeNames writes the kind, namespace, and name of each object, one object per line.
func writeNames(out io.Writer, objects []any) error {
	for _, object := range objects {
		if _, err := fmt.Fprintln(out, field(object, "kind"), cmp.Or(field(object, "metadata", "namespace"), any("-")), field(object, "metadata", "name")); err != nil {
			return err
		}
	}
	return nil
}

// write writes the objects as YAML documents. The replacer inserts everything that is not YAML.
func write(out io.Writer, template *strings.Replacer, objects []any) error {
	for i, object := range objects {
		content, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		if i > 0 {
			content = append([]byte("---\n"), content...)
		}
		if _, err := template.WriteString(out, string(content)); err != nil {
			return err
		}
	}
	return nil
}

func read(in io.Reader) ([]any, error) {
	var objects []any
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(in)); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading manifests: %w", err)
		}
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		var object map[string]any
		text, err := yaml.YAMLToJSON(document)
		if err == nil {
			err = json.Unmarshal(text, &object) // keeps integers unchanged
		}
		if err != nil {
			return nil, fmt.Errorf("decoding manifests: %w", err)
		}
		objects = append(objects, object)
	}
}

// render returns the value of a field with the image and the tag of a release. The hub's manifest
// contains two images: its own, and, in an environment variable, the image of the Jobs that it runs
// on managed clusters.
func render(field string, value any, image, tag string) any {
	switch value := value.(type) {
	case map[string]any:
		for name := range value {
			value[name] = render(name, value[name], image, tag)
		}
	case []any:
		for i := range value {
			value[i] = render(field, value[i], image, tag)
		}
	case string:
		switch field {
		case "image", "value":
			if value == placeholder {
				return image
			}
		case "runbook_url":
			return strings.Replace(value, "/blob/main/", "/blob/"+tag+"/", 1)
		}
	}
	return value
}

// selectorSyncSet returns the object that makes Hive apply the manifests to clusters whose
// ClusterDeployments have the operator's label.
func selectorSyncSet(resources []any) map[string]any {
	return map[string]any{
		"apiVersion": "hive.openshift.io/v1",
		"kind":       "SelectorSyncSet",
		"metadata":   map[string]any{"name": "managed-upgrade-operator"},
		"spec": map[string]any{
			"clusterDeploymentSelector": map[string]any{"matchLabels": map[string]any{"upgrade.managed.openshift.io/operator": "installed"}},
			"resourceApplyMode":         "Upsert",
			// By default, Hive deletes and recreates objects that it may not update. For a CRD, this would
			// delete all of its objects.
			"applyBehavior": "CreateOrUpdate",
			"resources":     resources,
		},
	}
}
