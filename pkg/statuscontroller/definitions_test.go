// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package statuscontroller

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// deployedDefinition returns one of the CustomResourceDefinitions that are deployed with the program.
func deployedDefinition(t *testing.T, name string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob("../../deploy/update-status/crds/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(filepath.Clean(file))
		if err != nil {
			t.Fatal(err)
		}
		var found apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(content, &found); err == nil && found.Name == name {
			return &found
		}
	}
	t.Fatalf("no CustomResourceDefinition %s is deployed", name)
	return nil
}

// TestDefinitions_of_others turns each deployed definition into one from another program.
func TestDefinitions_of_others(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*apiextensionsv1.CustomResourceDefinitionSpec, []string)
		want   string // substring of the error; empty if the definition is accepted
	}{
		"its own":      {func(*apiextensionsv1.CustomResourceDefinitionSpec, []string) {}, ""},
		"another kind": {func(s *apiextensionsv1.CustomResourceDefinitionSpec, _ []string) { s.Names.Kind = "Update" }, "it defines Update, scope Cluster"},
		"another scope": {func(s *apiextensionsv1.CustomResourceDefinitionSpec, _ []string) {
			s.Scope = apiextensionsv1.NamespaceScoped
		}, "scope Namespaced"},
		"another version": {func(s *apiextensionsv1.CustomResourceDefinitionSpec, _ []string) { s.Versions[0].Name = "v1" }, "it does not serve version v1beta1"},
		"not served":      {func(s *apiextensionsv1.CustomResourceDefinitionSpec, _ []string) { s.Versions[0].Served = false }, "it does not serve version v1beta1"},
		"no schema":       {func(s *apiextensionsv1.CustomResourceDefinitionSpec, _ []string) { s.Versions[0].Schema = nil }, "it has no field"},
		"a newer version as well": {func(s *apiextensionsv1.CustomResourceDefinitionSpec, _ []string) {
			s.Versions = append([]apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true}}, s.Versions...)
		}, ""},
		"without an addition": {func(s *apiextensionsv1.CustomResourceDefinitionSpec, field []string) {
			schema := s.Versions[0].Schema.OpenAPIV3Schema
			for _, part := range field[:len(field)-1] {
				next := schema.Properties[part]
				schema = &next
			}
			delete(schema.Properties, field[len(field)-1])
		}, "it has no field"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, d := range definitions() {
				found := deployedDefinition(t, d.name)
				tc.change(&found.Spec, d.field)
				err := d.check(found)
				if tc.want == "" && err != nil {
					t.Errorf("%s: %v", d.name, err)
				}
				if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "apply deploy/update-status/crds")) {
					t.Errorf("%s: error %v, want %q and what to do", d.name, err, tc.want)
				}
			}
		})
	}
}
