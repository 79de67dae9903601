// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/crdtest"
)

// crds returns the definitions by kind.
func crds(tb testing.TB) map[string]*apiextensionsv1.CustomResourceDefinition {
	tb.Helper()
	all := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, crd := range crdtest.Definitions(tb, definitionsFolder) {
		all[crd.Spec.Names.Kind] = crd
	}
	if len(all) != len(samples) {
		tb.Fatalf("%d definitions, want %d", len(all), len(samples))
	}
	return all
}

func schemaOf(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.JSONSchemaProps {
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

func TestSpec(t *testing.T) {
	t.Parallel()
	for kind, definition := range crdtest.Validators(t, definitionsFolder, "") {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for name, tc := range cases()[kind] {
				if slices.ContainsFunc(tc.want, func(want string) bool { return strings.HasPrefix(want, crdtest.StrictError) }) {
					continue // only an API server reports unknown fields
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					object := sample(t, kind)
					tc.edits.apply(t, object)
					crdtest.CompareAdmission(t, tc.want, definition.Admit(nil, object))
				})
			}
		})
	}
}

// walk calls visit for each schema of a definition with its path.
func walk(path string, schema *apiextensionsv1.JSONSchemaProps, visit func(path string, schema *apiextensionsv1.JSONSchemaProps)) {
	visit(path, schema)
	for name, property := range schema.Properties {
		walk(path+"."+name, &property, visit)
	}
	if schema.Items != nil {
		walk(path+"[]", schema.Items.Schema, visit)
	}
}

// Each rule of a definition has a case that violates it.
func TestEachRuleHasACase(t *testing.T) {
	t.Parallel()
	for kind, crd := range crds(t) {
		messages := []string{unchangeable} // TestTargetCannotChange
		for _, tc := range cases()[kind] {
			for _, want := range tc.want {
				_, message, _ := strings.Cut(want, ": ")
				messages = append(messages, message)
			}
		}
		walk(kind, schemaOf(crd), func(path string, schema *apiextensionsv1.JSONSchemaProps) {
			for _, rule := range schema.XValidations {
				if !slices.Contains(messages, rule.Message) {
					t.Errorf("%s: no case is rejected because %q", path, rule.Message)
				}
			}
		})
	}
}

// No field accepts a value of any size.
func TestEachFieldIsBounded(t *testing.T) {
	t.Parallel()
	for kind, crd := range crds(t) {
		walk(kind, schemaOf(crd), func(path string, schema *apiextensionsv1.JSONSchemaProps) {
			if path == kind+".apiVersion" || path == kind+".kind" || strings.HasPrefix(path, kind+".metadata") {
				return
			}
			switch schema.Type {
			case "string":
				if schema.MaxLength == nil && len(schema.Enum) == 0 && !strings.HasPrefix(schema.Pattern, "^([0-9]{4}-") {
					t.Errorf("%s is a text of any length", path)
				}
			case "array":
				if schema.MaxItems == nil || *schema.MaxItems > 8192 {
					t.Errorf("%s may have %v items, want at most 8192", path, schema.MaxItems)
				}
			case "object":
				if schema.AdditionalProperties != nil || schema.XPreserveUnknownFields != nil {
					t.Errorf("%s may have any fields", path)
				}
			case "integer", "boolean":
			default:
				t.Errorf("%s has type %q", path, schema.Type)
			}
		})
	}
}

// example returns a value with each field of a schema.
func example(schema *apiextensionsv1.JSONSchemaProps) any {
	switch schema.Type {
	case "object":
		object := map[string]any{}
		for name, property := range schema.Properties {
			object[name] = example(&property)
		}
		return object
	case "array":
		return []any{example(schema.Items.Schema)}
	case "integer":
		return int64(1)
	case "boolean":
		return true
	}
	switch {
	case len(schema.Enum) > 0:
		return strings.Trim(string(schema.Enum[0].Raw), `"`)
	case strings.HasPrefix(schema.Pattern, "^([0-9]{4}-"):
		return "2026-11-22T17:00:00Z"
	case schema.Pattern != "":
		return "Example"
	default:
		return "example"
	}
}

// The types have each field of the definitions, and the definitions each of the types.
func TestTypesKeepEachFieldOfAStatus(t *testing.T) {
	t.Parallel()
	for kind, into := range map[string]runtime.Object{
		"UpdateInformer": &updatev1beta1.UpdateInformer{}, "UpdatePlan": &updatev1beta1.UpdatePlan{}, "UpdateStatus": &updatev1beta1.UpdateStatus{},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			want := sample(t, kind).Object
			status := schemaOf(crds(t)[kind]).Properties["status"]
			want["status"] = example(&status)
			data, err := json.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			decoder := json.NewDecoder(bytes.NewReader(data))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(into); err != nil {
				t.Fatal(err)
			}
			got, err := runtime.DefaultUnstructuredConverter.ToUnstructured(into)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want["status"], got["status"]); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

// The lists of insights are atomic: metadata.managedFields would have an entry for each otherwise.
func TestListsOfStatusAreAtomic(t *testing.T) {
	t.Parallel()
	for kind, crd := range crds(t) {
		walk(kind, schemaOf(crd), func(path string, schema *apiextensionsv1.JSONSchemaProps) {
			if schema.Type != "array" || !strings.HasPrefix(path, kind+".status") {
				return
			}
			want := "atomic"
			if strings.HasSuffix(path, ".conditions") {
				want = "map"
			}
			if schema.XListType == nil || *schema.XListType != want {
				t.Errorf("%s is a list of type %v, want %s", path, schema.XListType, want)
			}
		})
	}
}

func TestDefinitionsFitClientSideApply(t *testing.T) {
	t.Parallel()
	crdtest.CheckClientSideApply(t, definitionsFolder)
}

func TestStatusesFitIntoEtcd(t *testing.T) {
	t.Parallel()
	crdtest.CheckStatusSize(t, definitionsFolder, "UpdatePlan.config.openshift.io", "UpdateStatus.config.openshift.io") // descriptions and insights are dropped
}

func TestDefinitionsNames(t *testing.T) {
	t.Parallel()
	got := map[string][]string{}
	for kind, crd := range crds(t) {
		names := crd.Spec.Names
		got[kind] = slices.Concat([]string{crd.Name, names.Plural, names.Singular, names.ListKind}, names.ShortNames, names.Categories)
		if crd.Spec.Scope != apiextensionsv1.ClusterScoped || crd.Spec.Versions[0].Name != "v1beta1" || crd.Spec.Versions[0].Subresources.Status == nil {
			t.Errorf("%s has scope %s, version %s, and subresources %v, want the cluster, v1beta1, and a status", kind, crd.Spec.Scope, crd.Spec.Versions[0].Name, crd.Spec.Versions[0].Subresources)
		}
	}
	want := map[string][]string{
		"UpdateInformer": {"updateinformers.config.openshift.io", "updateinformers", "updateinformer", "UpdateInformerList", "ui", "update"},
		"UpdatePlan":     {"updateplans.config.openshift.io", "updateplans", "updateplan", "UpdatePlanList", "up", "update"},
		"UpdateStatus":   {"updatestatuses.config.openshift.io", "updatestatuses", "updatestatus", "UpdateStatusList", "us", "update"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestKustomizationIncludesEachDefinition(t *testing.T) {
	t.Parallel()
	crdtest.CheckKustomization(t, definitionsFolder)
}
