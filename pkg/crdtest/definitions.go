// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crdtest tests the definitions of kinds without an API server: their rules and sizes, how objects are decoded, and
// what a stranger may write. It also generates objects that a definition accepts.
package crdtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// Definitions returns the CustomResourceDefinitions in a folder, ordered by file name.
// controller-gen names the files after the group and the resource.
func Definitions(tb testing.TB, folder string) []*apiextensionsv1.CustomResourceDefinition {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_*.yaml"))
	if err != nil {
		tb.Fatal(err)
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		data, err := os.ReadFile(file) //nolint:gosec // a file of the repository
		if err != nil {
			tb.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, crd); err != nil {
			tb.Fatalf("decoding %s: %v", file, err)
		}
		all = append(all, crd)
	}
	return all
}

// Definition returns the CustomResourceDefinition of a kind in a folder.
func Definition(tb testing.TB, folder, group, kind string) *apiextensionsv1.CustomResourceDefinition {
	tb.Helper()
	for _, crd := range Definitions(tb, folder) {
		if crd.Spec.Group == group && crd.Spec.Names.Kind == kind {
			return crd
		}
	}
	tb.Fatalf("%s has no definition of %s in %s", folder, kind, group)
	return nil
}

// Validators returns the test kit's definitions of one group, or of all groups, from a folder, by
// kind.
func Validators(tb testing.TB, folder, group string) map[string]*simulation.Definition {
	tb.Helper()
	definitions, err := simulation.Definitions(os.DirFS(folder))
	if err != nil {
		tb.Fatal(err)
	}
	all := map[string]*simulation.Definition{}
	for _, d := range definitions {
		if kind := d.Kind(); group == "" || kind.Group == group {
			all[kind.Kind] = d
		}
	}
	return all
}

// CheckClientSideApply reports definitions in a folder that are too large for client-side "kubectl
// apply": it stores the object in an annotation, and all annotations of an object share 262144
// bytes.
func CheckClientSideApply(tb testing.TB, folder string) {
	tb.Helper()
	const limit = 262144 - 16*1024 // leave room for other annotations
	for _, crd := range Definitions(tb, folder) {
		data, err := json.Marshal(crd)
		if err != nil {
			tb.Fatal(err)
		}
		if len(data) > limit {
			tb.Errorf("the definition of %s has %d bytes, want at most %d", crd.Name, len(data), limit)
		}
	}
}

// CheckKustomization reports the differences between the resources of a kustomization and the
// definitions in its folder.
func CheckKustomization(tb testing.TB, folder string) {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join(folder, "kustomization.yaml")) //nolint:gosec // a file of the repository
	if err != nil {
		tb.Fatal(err)
	}
	var kustomization struct{ Resources []string }
	if err := yaml.Unmarshal(data, &kustomization); err != nil {
		tb.Fatal(err)
	}
	want, err := filepath.Glob(filepath.Join(folder, "*_*.yaml"))
	if err != nil {
		tb.Fatal(err)
	}
	for i := range want {
		want[i] = filepath.Base(want[i])
	}
	if diff := cmp.Diff(want, kustomization.Resources); diff != "" {
		tb.Errorf("resources (-want +got):\n%s", diff)
	}
}

// Rules returns the message of each validation rule below a schema node. The keys consist of the
// path, a space, and the rule.
func Rules(tb testing.TB, schema any) map[string]string {
	tb.Helper()
	data, err := json.Marshal(schema)
	if err != nil {
		tb.Fatal(err)
	}
	var node any
	if err := json.Unmarshal(data, &node); err != nil {
		tb.Fatal(err)
	}
	found := map[string]string{}
	addRules(found, "", node)
	return found
}

func addRules(found map[string]string, path string, node any) {
	switch node := node.(type) {
	case map[string]any:
		rules, _ := node["x-kubernetes-validations"].([]any)
		for _, rule := range rules {
			rule, _ := rule.(map[string]any)
			text, _ := rule["rule"].(string)
			message, _ := rule["message"].(string)
			found[path+" "+text] = message
		}
		for name, value := range node {
			addRules(found, path+"."+name, value)
		}
	case []any:
		for _, value := range node {
			addRules(found, path, value)
		}
	}
}

// maxStatusBytes is the maximum size of a status that leaves room for metadata and a spec: etcd
// stores objects of up to 1.5 MiB.
const maxStatusBytes = 900 << 10

// CheckStatusSize reports the kinds in a folder whose status, at the maximum size that its
// definition allows, may not fit into etcd. shortened lists the kinds whose controller shortens an
// oversized status.
func CheckStatusSize(tb testing.TB, folder string, shortened ...string) {
	tb.Helper()
	var large []string
	for _, crd := range Definitions(tb, folder) {
		for i := range crd.Spec.Versions {
			status := crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["status"]
			if size := maxSize(&status); size > maxStatusBytes {
				large = append(large, crd.Spec.Names.Kind+"."+crd.Spec.Group)
			}
		}
	}
	if diff := cmp.Diff(shortened, large); diff != "" {
		tb.Errorf("the kinds with a status of more than %d bytes (-shortened +found):\n%s", maxStatusBytes, diff)
	}
}

// maxSize returns the size in bytes, as JSON, of the largest value that a schema accepts, assuming
// strings of single-byte characters without escapes. Unlimited values exceed any limit.
func maxSize(schema *apiextensionsv1.JSONSchemaProps) int {
	const number, enum, timestamp, unlimited = 20, 64, 64, 1 << 30
	size := func(limit *int64, each int) int {
		if limit == nil || *limit > unlimited {
			return unlimited
		}
		return min(unlimited, int(*limit)*min(each, unlimited))
	}
	switch {
	case schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields:
		return unlimited
	case schema.Type == "array":
		return len("[]") + size(schema.MaxItems, len(",")+maxSize(schema.Items.Schema))
	case schema.Type == "object" && schema.AdditionalProperties != nil:
		return size(schema.MaxProperties, maxNameBytes+maxSize(schema.AdditionalProperties.Schema))
	case schema.Type == "object":
		total := len("{}")
		for name, property := range schema.Properties {
			total = min(unlimited, total+len(name)+len(`"":,`)+maxSize(&property))
		}
		return total
	case schema.Type != "string":
		return number
	case len(schema.Enum) > 0:
		return enum
	case schema.MaxLength == nil && (schema.Format == "date-time" || strings.HasPrefix(schema.Pattern, "^([0-9]{4}-")):
		return timestamp
	default:
		return len(`""`) + size(schema.MaxLength, 1)
	}
}

// maxNameBytes is the maximum length of a map key.
const maxNameBytes = 256
