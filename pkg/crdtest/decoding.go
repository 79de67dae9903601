// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crdtest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/yaml"

	"github.com/managed-upgrade/managed-upgrade-operator/api/stored"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// Decoding describes how objects of a kind are decoded. An object that the schema accepts but that
// cannot be decoded would stop the informers of all objects of its kind.
type Decoding struct {
	// Definition is the definition of the kind; Validator is the same definition in the test kit.
	Definition *apiextensionsv1.CustomResourceDefinition
	Validator  *simulation.Definition
	// Decoder decodes the kind (see StrictDecoder).
	Decoder runtime.Decoder
	// Convert converts the value of a field whose type is a string with a meaning, such as a duration.
	// It returns nil for any other value.
	Convert func(value any) error
}

// StrictDecoder returns a decoder for the kinds of a scheme that rejects unknown fields.
func StrictDecoder(tb testing.TB, kinds ...func(*runtime.Scheme) error) runtime.Decoder {
	tb.Helper()
	scheme := runtime.NewScheme()
	for _, add := range kinds {
		if err := add(scheme); err != nil {
			tb.Fatal(err)
		}
	}
	return strictDecoder{serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()}
}

// strictDecoder is a decoder that reports data lost in decoding.
type strictDecoder struct{ runtime.Decoder }

// Decode decodes an object.
func (d strictDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object, kind, err := d.Decoder.Decode(data, defaults, into)
	if err != nil {
		return object, kind, err
	}
	ours, ok := object.DeepCopyObject().(interface{ LeftOut() []stored.Problem })
	if !ok {
		return object, kind, nil
	}
	asJSON, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, nil, err
	}
	return object, kind, stored.DecodeStrict(asJSON, ours)
}

// Check generates objects and reports those that the schema accepts but that lose data in decoding
// or contain a value that cannot be converted. It also fails if the schema accepts too few of the
// objects.
func (d Decoding) Check(t *testing.T, g *Generator, objects int) {
	t.Helper()
	accepted := 0
	for range objects {
		if d.Try(t, g) {
			accepted++
		}
	}
	t.Logf("%d of %d objects are accepted", accepted, objects)
	if accepted < objects/20 {
		t.Errorf("only %d of %d objects are accepted: the test decodes little", accepted, objects)
	}
}

// Try runs the check on a single object and reports whether the schema accepts it.
func (d Decoding) Try(t *testing.T, g *Generator) bool {
	t.Helper()
	version := d.Definition.Spec.Versions[0]
	content := map[string]any{
		"apiVersion": d.Definition.Spec.Group + "/" + version.Name, "kind": d.Definition.Spec.Names.Kind,
		"metadata": map[string]any{"name": "version", "namespace": "default"},
	}
	for _, part := range []string{"spec", "status"} {
		schema := version.Schema.OpenAPIV3Schema.Properties[part]
		content[part] = g.Value(part, &schema)
	}
	data, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		t.Fatalf("decoding %s: %v", data, err)
	}
	if d.Validator.Admit(nil, object) != nil {
		return false
	}
	d.compare(t, object)
	return true
}

func (d Decoding) compare(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	stored, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	typed, _, err := d.Decoder.Decode(stored, nil, nil)
	if err != nil {
		t.Fatalf("the schema accepts what does not decode: %v\n%s", err, stored)
	}
	d.convert(t, reflect.ValueOf(typed))
	encoded, err := json.Marshal(typed)
	if err != nil {
		t.Fatal(err)
	}
	var before, after map[string]any
	for from, data := range map[*map[string]any][]byte{&before: stored, &after: encoded} {
		if err := json.Unmarshal(data, from); err != nil {
			t.Fatal(err)
		}
	}
	for _, part := range []string{"spec", "status"} {
		checkContains(t, part, after[part], WithoutEmpty(before[part]))
	}
}

// convert calls Convert for each value in a value.
func (d Decoding) convert(t *testing.T, value reflect.Value) {
	t.Helper()
	if !value.IsValid() || !value.CanInterface() {
		return
	}
	if err := d.Convert(value.Interface()); err != nil {
		t.Errorf("the schema accepts %v, which does not convert: %v", value, err)
	}
	switch value.Kind() {
	case reflect.Pointer, reflect.Interface:
		d.convert(t, value.Elem())
	case reflect.Slice:
		for i := range value.Len() {
			d.convert(t, value.Index(i))
		}
	case reflect.Struct:
		for _, field := range value.Fields() {
			d.convert(t, field)
		}
	default: // a value without parts
	}
}

// checkContains reports lost values. Types of other projects may add zero values.
func checkContains(t *testing.T, path string, whole, part any) {
	t.Helper()
	switch part := part.(type) {
	case nil:
	case map[string]any:
		object, _ := whole.(map[string]any)
		for name, value := range part {
			checkContains(t, path+"."+name, object[name], value)
		}
	case []any:
		list, _ := whole.([]any)
		if len(list) != len(part) {
			t.Errorf("%s has %d items, want %d", path, len(list), len(part))
			return
		}
		for i := range part {
			checkContains(t, fmt.Sprint(path, "[", i, "]"), list[i], part[i])
		}
	case string:
		if got, _ := whole.(string); got != part && !isTime(part) {
			t.Errorf("%s is %v, want %v", path, whole, part)
		}
	case float64:
		if got, _ := whole.(float64); got != part {
			t.Errorf("%s is %v, want %v", path, whole, part)
		}
	default:
		if whole != part {
			t.Errorf("%s is %v, want %v", path, whole, part)
		}
	}
}

// isTime reports whether a string is a time. Times are encoded in UTC with a resolution of seconds.
func isTime(text string) bool {
	_, err := time.Parse(time.RFC3339Nano, text)
	return err == nil
}

// WithoutEmpty removes empty lists, maps, and strings and false booleans from a decoded JSON value,
// since decoding may drop them. It returns the value, or nil if nothing is left.
func WithoutEmpty(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, part := range value {
			if value[name] = WithoutEmpty(part); value[name] == nil {
				delete(value, name)
			}
		}
		if len(value) == 0 {
			return nil
		}
	case []any:
		for i := range value {
			value[i] = WithoutEmpty(value[i])
		}
		if len(value) == 0 {
			return nil
		}
	case string:
		if value == "" {
			return nil
		}
	case bool:
		if !value {
			return nil
		}
	}
	return value
}
