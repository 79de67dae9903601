// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha_test

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
)

// schema is a part of the OpenAPI document.
type schema struct {
	Ref        string            `json:"$ref"`
	Type       string            `json:"type"`
	Format     string            `json:"format"`
	Enum       []string          `json:"enum"`
	Required   []string          `json:"required"`
	Properties map[string]schema `json:"properties"`
	Items      *schema           `json:"items"`
	MaxLength  int               `json:"maxLength"`
	MaxItems   int               `json:"maxItems"`
}

type document struct {
	Paths      map[string]map[string]any `json:"paths"`
	Components struct {
		Schemas map[string]schema `json:"schemas"`
	} `json:"components"`
}

func read[T any](t *testing.T, file string) T {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var d T
	if err := yaml.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

const openAPI = "../../../docs/reference/update-informer-protocol.openapi.yaml"

// messages are the types of the protocol, with their kind.
var messages = map[string]any{
	hooksv1alpha.DiscoveryResponseKind:          hooksv1alpha.DiscoveryResponse{},
	hooksv1alpha.UpdateInsightsRequestKind:      hooksv1alpha.UpdateInsightsRequest{},
	hooksv1alpha.UpdateInsightsResponseKind:     hooksv1alpha.UpdateInsightsResponse{},
	hooksv1alpha.UpdatePlanInsightsRequestKind:  hooksv1alpha.UpdatePlanInsightsRequest{},
	hooksv1alpha.UpdatePlanInsightsResponseKind: hooksv1alpha.UpdatePlanInsightsResponse{},
}

// The document has each type with each field, and no others.
func TestOpenAPIMatchesTheTypes(t *testing.T) {
	t.Parallel()
	got := read[document](t, openAPI).Components.Schemas
	want := map[string]bool{}
	for kind, message := range messages {
		compare(t, got, reflect.TypeOf(message), want)
		if diff := cmp.Diff([]string{kind}, got[kind].Properties["kind"].Enum); diff != "" {
			t.Errorf("%s.kind (-want +got):\n%s", kind, diff)
		}
		if diff := cmp.Diff([]string{hooksv1alpha.APIVersion}, got[kind].Properties["apiVersion"].Enum); diff != "" {
			t.Errorf("%s.apiVersion (-want +got):\n%s", kind, diff)
		}
	}
	for name := range got {
		if !want[name] {
			t.Errorf("schema %s is no type of the protocol", name)
		}
	}
}

// compare compares the schema of a struct, and recursively the schemas of its fields.
func compare(t *testing.T, schemas map[string]schema, of reflect.Type, seen map[string]bool) {
	t.Helper()
	if seen[of.Name()] {
		return
	}
	seen[of.Name()] = true
	got, found := schemas[of.Name()]
	if !found {
		t.Errorf("there is no schema %s", of.Name())
		return
	}
	fields := map[string]bool{}
	var required []string
	for field := range fieldsOf(of) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		fields[name] = true
		if options == "" {
			required = append(required, name)
		}
		property, found := got.Properties[name]
		if !found {
			t.Errorf("schema %s has no property %s", of.Name(), name)
			continue
		}
		compareType(t, schemas, of.Name()+"."+name, field.Type, property, seen)
	}
	for name := range got.Properties {
		if !fields[name] {
			t.Errorf("schema %s has property %s, and the type has no such field", of.Name(), name)
		}
	}
	slices.Sort(required)
	slices.Sort(got.Required)
	if diff := cmp.Diff(required, got.Required); diff != "" {
		t.Errorf("required fields of %s (-want +got):\n%s", of.Name(), diff)
	}
}

// fieldsOf yields the fields of a struct with those that are inlined.
func fieldsOf(of reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for _, field := range reflect.VisibleFields(of) {
			if !field.Anonymous && !yield(field) {
				return
			}
		}
	}
}

func compareType(t *testing.T, schemas map[string]schema, path string, of reflect.Type, got schema, seen map[string]bool) {
	t.Helper()
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch {
	case of == reflect.TypeFor[metav1.Time]():
		if got.Type != "string" || got.Format != "date-time" {
			t.Errorf("%s is %s %s, want a time", path, got.Type, got.Format)
		}
	case of.Kind() == reflect.Struct:
		if want := "#/components/schemas/" + of.Name(); got.Ref != want {
			t.Errorf("%s refers to %q, want %q", path, got.Ref, want)
		}
		compare(t, schemas, of, seen)
	case of.Kind() == reflect.Slice:
		if got.Type != "array" || got.Items == nil {
			t.Errorf("%s is %s, want a list", path, got.Type)
			return
		}
		compareType(t, schemas, path+"[]", of.Elem(), *got.Items, seen)
	default:
		want := map[reflect.Kind]string{reflect.String: "string", reflect.Bool: "boolean", reflect.Int32: "integer"}[of.Kind()]
		if got.Type != want {
			t.Errorf("%s is %s, want %s", path, got.Type, want)
		}
	}
}

// The document has each path, and the values of each constant.
func TestOpenAPIHasPathsAndValues(t *testing.T) {
	t.Parallel()
	got := read[document](t, openAPI)
	for path, methods := range map[string][]string{
		hooksv1alpha.DiscoveryPath: {"get"}, hooksv1alpha.UpdateInsightsPath: {"get", "post"}, hooksv1alpha.UpdatePlanInsightsPath: {"post"},
	} {
		for _, method := range methods {
			if got.Paths[path][method] == nil {
				t.Errorf("there is no %s %s", method, path)
			}
		}
		if len(got.Paths[path]) != len(methods) {
			t.Errorf("%s has %d methods, want %v", path, len(got.Paths[path]), methods)
		}
	}
	if len(got.Paths) != 3 {
		t.Errorf("there are %d paths, want 3", len(got.Paths))
	}
	schemas := got.Components.Schemas
	for _, values := range []struct {
		schema, property string
		want             []string
	}{
		{"ResponseStatus", "response", []string{string(hooksv1alpha.ResponseSuccess), string(hooksv1alpha.ResponseFailure), string(hooksv1alpha.ResponseWait)}},
		{"Handler", "name", []string{hooksv1alpha.HandlerStatus, hooksv1alpha.HandlerPlan}},
		{"InsightScope", "type", []string{string(updatev1beta1.ScopeControlPlane), string(updatev1beta1.ScopeWorkerPool)}},
		{"InsightImpact", "level", []string{string(updatev1beta1.LevelStatus), string(updatev1beta1.LevelInfo), string(updatev1beta1.LevelWarning), string(updatev1beta1.LevelError), string(updatev1beta1.LevelCritical)}},
	} {
		if diff := cmp.Diff(values.want, schemas[values.schema].Properties[values.property].Enum); diff != "" {
			t.Errorf("%s.%s (-want +got):\n%s", values.schema, values.property, diff)
		}
	}
}

// The bounds of an insight equal the bounds of the UpdateStatus that contains it.
func TestOpenAPIHasTheBoundsOfTheDefinition(t *testing.T) {
	t.Parallel()
	type definition struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema schema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	crd := read[definition](t, "../../../deploy/update-status/crds/config.openshift.io_updatestatuses.yaml")
	insight := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, name := range []string{"status", "controlPlane", "updateInformers", "[]", "insights", "[]"} {
		if name == "[]" {
			insight = *insight.Items
			continue
		}
		insight = insight.Properties[name]
	}
	schemas := read[document](t, openAPI).Components.Schemas
	var walk func(path string, want, got schema)
	walk = func(path string, want, got schema) {
		if got.Ref != "" {
			got = schemas[strings.TrimPrefix(got.Ref, "#/components/schemas/")]
		}
		if got.MaxItems != want.MaxItems || got.MaxLength != want.MaxLength && want.MaxLength != 0 && len(want.Enum) == 0 {
			t.Errorf("%s has at most %d items and %d characters, want %d and %d", path, got.MaxItems, got.MaxLength, want.MaxItems, want.MaxLength)
		}
		for name, property := range got.Properties {
			walk(path+"."+name, want.Properties[name], property)
		}
		if got.Items != nil && want.Items != nil {
			walk(path+"[]", *want.Items, *got.Items)
		}
	}
	walk("Insight", insight, schemas["Insight"])
}
