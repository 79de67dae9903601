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

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
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
	if errs := validateType("", tree, reflect.TypeOf(into).Elem()); len(errs) > 0 {
		return errors.Join(errs...)
	}
	return json.Unmarshal(asJSON, into)
}

// validateType says what keeps a value from being of a type.
func validateType(path string, value any, kind reflect.Type) []error {
	for kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	if value == nil {
		return nil // left out
	}
	if _, custom := reflect.New(kind).Interface().(json.Unmarshaler); custom {
		return validateScalar(path, value, kind)
	}
	switch kind.Kind() {
	case reflect.Struct:
		mapping, is := value.(map[string]any)
		if !is {
			return typeError(path, value, "a mapping with "+joinFields(fields(kind)))
		}
		return validateStruct(path, mapping, kind)
	case reflect.Slice:
		items, is := value.([]any)
		if !is {
			return typeError(path, value, "a list")
		}
		var errs []error
		for i, item := range items {
			errs = append(errs, validateType(fmt.Sprintf("%s[%d]", path, i), item, kind.Elem())...)
		}
		return errs
	case reflect.Map:
		mapping, is := value.(map[string]any)
		if !is {
			return typeError(path, value, "a mapping")
		}
		var errs []error
		for _, key := range slices.Sorted(maps.Keys(mapping)) {
			errs = append(errs, validateType(childPath(path, key), mapping[key], kind.Elem())...)
		}
		return errs
	case reflect.Interface:
		return nil
	default:
		return validateScalar(path, value, kind)
	}
}

func validateStruct(path string, mapping map[string]any, kind reflect.Type) []error {
	known := fields(kind)
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(mapping)) {
		field, found := known[key]
		if !found {
			errs = append(errs, fmt.Errorf("%s: there is no such field; there are %s", childPath(path, key), joinFields(known)))
			continue
		}
		errs = append(errs, validateType(childPath(path, key), mapping[key], field)...)
	}
	return errs
}

func validateScalar(path string, value any, kind reflect.Type) []error {
	encoded, err := json.Marshal(value)
	if err != nil {
		return []error{fmt.Errorf("%s: %w", path, err)}
	}
	err = json.Unmarshal(encoded, reflect.New(kind).Interface())
	if wrongType := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrongType) {
		return typeError(path, value, describeKind(kind.Kind()))
	}
	if err != nil {
		return []error{fmt.Errorf("%s: %s %w", path, encoded, err)}
	}
	return nil
}

// maxValueLen is how much of a value is shown with what is wrong with it, in bytes.
const maxValueLen = 100

func typeError(path string, value any, want string) []error {
	encoded, err := json.Marshal(value)
	if err != nil {
		return []error{fmt.Errorf("%s: %w", path, err)}
	}
	if path == "" {
		path = "the file"
	}
	return []error{fmt.Errorf("%s: is %s, must be %s", path, text.Truncate(string(encoded), maxValueLen), want)}
}

func describeKind(kind reflect.Kind) string {
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

func joinFields(known map[string]reflect.Type) string {
	return strings.Join(slices.Sorted(maps.Keys(known)), ", ")
}

func childPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
