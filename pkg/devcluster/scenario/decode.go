// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// decode reads YAML into a struct. It tells all that is wrong with it at once, each with the path of its field and what
// would be right.
func decode(content []byte, into any) error {
	asJSON, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		return fmt.Errorf("reading YAML: %s", strings.Join(strings.Fields(err.Error()), " ")) // in one line
	}
	var tree any
	if err := json.Unmarshal(asJSON, &tree); err != nil {
		return fmt.Errorf("reading YAML: %w", err)
	}
	if wrong := misfits("", tree, reflect.TypeOf(into).Elem()); len(wrong) > 0 {
		return errors.Join(wrong...)
	}
	return json.Unmarshal(asJSON, into)
}

// misfits says what keeps a value from being of a type.
func misfits(path string, value any, kind reflect.Type) []error {
	for kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	if value == nil {
		return nil // left out
	}
	if _, custom := reflect.New(kind).Interface().(json.Unmarshaler); custom {
		return leaf(path, value, kind)
	}
	switch kind.Kind() {
	case reflect.Struct:
		mapping, is := value.(map[string]any)
		if !is {
			return misfit(path, value, "a mapping with "+list(fields(kind)))
		}
		return structure(path, mapping, kind)
	case reflect.Slice:
		items, is := value.([]any)
		if !is {
			return misfit(path, value, "a list")
		}
		var wrong []error
		for i, item := range items {
			wrong = append(wrong, misfits(fmt.Sprintf("%s[%d]", path, i), item, kind.Elem())...)
		}
		return wrong
	case reflect.Map:
		mapping, is := value.(map[string]any)
		if !is {
			return misfit(path, value, "a mapping")
		}
		var wrong []error
		for _, key := range slices.Sorted(maps.Keys(mapping)) {
			wrong = append(wrong, misfits(child(path, key), mapping[key], kind.Elem())...)
		}
		return wrong
	case reflect.Interface:
		return nil
	default:
		return leaf(path, value, kind)
	}
}

func structure(path string, mapping map[string]any, kind reflect.Type) []error {
	known := fields(kind)
	var wrong []error
	for _, key := range slices.Sorted(maps.Keys(mapping)) {
		field, found := known[key]
		if !found {
			wrong = append(wrong, fmt.Errorf("%s: there is no such field; there are %s", child(path, key), list(known)))
			continue
		}
		wrong = append(wrong, misfits(child(path, key), mapping[key], field)...)
	}
	return wrong
}

func leaf(path string, value any, kind reflect.Type) []error {
	encoded, err := json.Marshal(value)
	if err != nil {
		return []error{fmt.Errorf("%s: %w", path, err)}
	}
	err = json.Unmarshal(encoded, reflect.New(kind).Interface())
	if wrongType := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrongType) {
		return misfit(path, value, words(kind.Kind()))
	}
	if err != nil {
		return []error{fmt.Errorf("%s: %s %w", path, encoded, err)}
	}
	return nil
}

// longestValue is how much of a value is shown with what is wrong with it, in bytes.
const longestValue = 100

func misfit(path string, value any, want string) []error {
	encoded, err := json.Marshal(value)
	if err != nil {
		return []error{fmt.Errorf("%s: %w", path, err)}
	}
	if path == "" {
		path = "the file"
	}
	return []error{fmt.Errorf("%s: is %s, must be %s", path, engine.Clip(string(encoded), longestValue), want)}
}

func words(kind reflect.Kind) string {
	switch kind {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text (numbers and true or false in quotes)"
	case reflect.Float64:
		return "a number"
	default:
		return "a whole number"
	}
}

// fields returns the types of a struct's fields by their JSON names.
func fields(kind reflect.Type) map[string]reflect.Type {
	known := map[string]reflect.Type{}
	for field := range kind.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case field.Anonymous || options == "inline":
			maps.Copy(known, fields(field.Type))
		default:
			known[name] = field.Type
		}
	}
	return known
}

func fieldsOf(value any) map[string]reflect.Type { return fields(reflect.TypeOf(value)) }

func list(known map[string]reflect.Type) string {
	return strings.Join(slices.Sorted(maps.Keys(known)), ", ")
}

func child(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
