// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package strict decodes files written by users: YAML or JSON into a struct. It reports every
// unknown field with its path. Errors end up in conditions and logs, so they are limited in length,
// fit on one line, and do not contain values that may be secret.
//
// It does not know which values are valid. Callers add their own errors to the same list.
package strict

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Limits of the reported errors.
const (
	maxErrors     = 10
	maxValueBytes = 64
	maxTextBytes  = 400
)

// Unmarshal decodes a single YAML or JSON document into the struct that v points to. Fields missing
// from the document keep their values. Lists in the struct must be empty, because a null item would
// keep the value of the item that it replaces. The returned list contains an error for each unknown
// field. A syntax error, a duplicate key, or a value of the wrong type is returned alone.
func Unmarshal(data []byte, v any) (field.ErrorList, error) {
	document, err := onlyDocument(data)
	if err != nil {
		return nil, syntaxError(err)
	}
	asJSON, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, syntaxError(err)
	}
	unknown, err := kjson.UnmarshalStrict(asJSON, v)
	if err != nil {
		return nil, typeError(err)
	}
	var errs field.ErrorList
	for _, err := range unknown {
		path := err.Error()
		if at, ok := errors.AsType[kjson.FieldError](err); ok {
			path = at.FieldPath()
		}
		errs = append(errs, field.Invalid(newPath(path), field.OmitValueType{}, "unknown field"))
	}
	return errs, nil
}

// onlyDocument returns the document of a file with at most one document. Documents that only
// contain comments do not count.
func onlyDocument(data []byte) ([]byte, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var only []byte
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return only, nil
		}
		if err != nil {
			return nil, err
		}
		var content any
		if err := yaml.Unmarshal(document, &content); err == nil && content == nil {
			continue
		}
		if only != nil {
			return nil, errors.New("the file holds more than one document")
		}
		only = document
	}
}

func syntaxError(err error) error {
	message := strings.Join(strings.Fields(err.Error()), " ")
	for _, noise := range []string{"error converting YAML to JSON: ", "unmarshal errors: "} {
		message = strings.ReplaceAll(message, noise, "")
	}
	return errors.New(bound(message, maxTextBytes))
}

// typeError names the field whose value has the wrong type. It does not show the value, because it
// may be a misplaced secret.
func typeError(err error) error {
	mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return syntaxError(err)
	}
	found, _, _ := strings.Cut(mismatch.Value, " ")
	invalid := field.TypeInvalid(newPath(mismatch.Field), plainType(found), "must be "+describe(mismatch.Type))
	if mismatch.Field == "" {
		return errors.New(invalid.ErrorBody())
	}
	return invalid
}

func plainType(jsonType string) string {
	switch jsonType {
	case "array":
		return "list"
	case "object":
		return "mapping"
	case "bool":
		return "boolean"
	}
	return jsonType
}

func describe(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "a mapping"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.String:
		return "a string, in quotes if it could be something else"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	default:
		return "a whole number"
	}
}

// newPath returns the path of a field as named by the decoder. It is sanitized, because its parts
// come from the file.
func newPath(path string) *field.Path {
	quoted := fmt.Sprintf("%q", Sanitize(path))
	return field.NewPath(quoted[1 : len(quoted)-1])
}

// Sanitize prepares a value for an error message: it limits the length and hides the value if it
// may be a URL with a secret.
func Sanitize(value string) string {
	return bound(value, maxValueBytes)
}

func bound(value string, most int) string {
	if strings.ContainsAny(value, "@?#") {
		return "…"
	}
	return text.Truncate(value, most)
}

// Error combines a list of errors into one error on a single line, or returns nil for an empty
// list. It contains the first ten errors and the number of the others.
func Error(list field.ErrorList) error {
	if len(list) == 0 {
		return nil
	}
	var texts []string
	for _, err := range list[:min(len(list), maxErrors)] {
		texts = append(texts, err.Error())
	}
	if more := len(list) - maxErrors; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return errors.New(strings.Join(texts, "; "))
}
