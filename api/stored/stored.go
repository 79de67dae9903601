// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stored decodes objects from the API server regardless of the schema they were stored with. The
// CustomResourceDefinition may have been replaced since then, or another program may have used the same
// group and version for other types. Without this package, one value that cannot be decoded would fail the
// whole list that contains its object, and with it every controller that watches the kind.
package stored

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	kjson "sigs.k8s.io/json"
)

const (
	// maxProblems is the maximum number of problems kept per object.
	maxProblems = 16
	// maxValue is the maximum length of a quoted value, in bytes.
	maxValue = 64
	// maxNamed is the maximum number of problems in a message.
	maxNamed = 3
)

// Problem is a value that was left out because it does not match the type of its field.
type Problem struct {
	// Field is the path of the field, for example spec.start.
	Field string
	// Value is the value as JSON, truncated.
	Value string
	// Want describes the valid values of the field.
	Want string
}

// String returns the problem as a sentence.
func (p Problem) String() string { return fmt.Sprintf("%s: %s is not %s", p.Field, p.Value, p.Want) }

// Leftovers lists the values of an object that were left out when it was decoded. They are neither encoded
// nor stored.
type Leftovers struct {
	// Undecoded contains at most maxProblems values.
	Undecoded []Problem `json:"-"`
}

// DeepCopyInto copies the leftovers.
func (l *Leftovers) DeepCopyInto(out *Leftovers) { out.Undecoded = slices.Clone(l.Undecoded) }

// LeftOut returns the values that were left out.
func (l *Leftovers) LeftOut() []Problem { return l.Undecoded }

// SpecProblem returns a message about the values left out of the spec, or an empty string. Until they are
// corrected, the spec is not the spec its author wrote. Values left out of the status do not matter,
// because the status is observed again.
func (l *Leftovers) SpecProblem() string {
	var all []string
	for _, problem := range l.Undecoded {
		if contains("spec", problem.Field) {
			all = append(all, problem.String())
		}
	}
	more := len(all) - maxNamed
	if more <= 0 {
		return strings.Join(all, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(all[:maxNamed], "; "), more)
}

// Decode decodes an object into a pointer to a struct without methods. It leaves out values that do not
// match the type of their field, and returns them.
func Decode(data []byte, into any) (Leftovers, error) {
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, into); err == nil {
		return Leftovers{}, nil
	}
	var raw any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &raw); err != nil {
		return Leftovers{}, fmt.Errorf("decoding an object: %w", err)
	}
	target := reflect.ValueOf(into).Elem()
	var p pruner
	pruned, _ := p.prune(raw, target.Type(), "")
	data, err := json.Marshal(pruned)
	if err != nil {
		return Leftovers{}, fmt.Errorf("encoding an object: %w", err)
	}
	target.SetZero()
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, into); err != nil {
		return Leftovers{}, fmt.Errorf("decoding an object: %w", err)
	}
	return Leftovers{p.problems}, nil
}

// IsIncomplete reports whether the field, a part of it, or an object that contains it was left out.
func (l *Leftovers) IsIncomplete(field string) bool {
	return slices.ContainsFunc(l.Undecoded, func(p Problem) bool {
		return contains(field, p.Field) || contains(p.Field, field)
	})
}

// contains reports whether the path inner is equal to outer or below it.
func contains(outer, inner string) bool {
	rest, ok := strings.CutPrefix(inner, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// DecodeStrict decodes an object written by a user into a pointer to its type. Unlike json.Unmarshal, it
// returns an error if a value does not match the type of its field, or if a field does not exist.
func DecodeStrict(data []byte, into interface{ LeftOut() []Problem }) error {
	var raw any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &raw); err != nil {
		return fmt.Errorf("decoding an object: %w", err)
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, into); err != nil {
		return fmt.Errorf("decoding an object: %w", err)
	}
	var problems []string
	for _, problem := range into.LeftOut() {
		problems = append(problems, problem.String())
	}
	for _, field := range Unknown(raw, into) {
		problems = append(problems, fmt.Sprintf("unknown field %q", field))
	}
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	return nil
}

// Unknown returns the paths of the fields of a decoded JSON value that do not exist in the type of into.
func Unknown(value, into any) []string {
	var unknown []string
	walkUnknown(value, reflect.TypeOf(into), "", func(_ map[string]any, _, path string) { unknown = append(unknown, path) })
	return unknown
}

// DropUnknown removes the fields that Unknown returns from a value, except for fields with the given names,
// and returns their paths.
func DropUnknown(value, into any, except ...string) []string {
	var dropped []string
	walkUnknown(value, reflect.TypeOf(into), "", func(in map[string]any, name, path string) {
		if !slices.Contains(except, name) {
			delete(in, name)
			dropped = append(dropped, path)
		}
	})
	return dropped
}

// walkUnknown calls a function for each field that does not exist in its struct.
func walkUnknown(value any, t reflect.Type, path string, found func(in map[string]any, name, path string)) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch fields, items := asObject(value), asList(value); {
	case path != "" && reflect.PointerTo(t).Implements(unmarshaler): // it decides itself
	case t.Kind() == reflect.Struct:
		types := fieldTypes(t)
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			field := strings.TrimPrefix(path+"."+name, ".")
			if types[name] == nil {
				found(fields, name, field)
				continue
			}
			walkUnknown(fields[name], types[name], field, found)
		}
	case t.Kind() == reflect.Map:
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			walkUnknown(fields[name], t.Elem(), path+"."+name, found)
		}
	case t.Kind() == reflect.Slice:
		for i, item := range items {
			walkUnknown(item, t.Elem(), path+"["+strconv.Itoa(i)+"]", found)
		}
	}
}

func asObject(value any) map[string]any {
	fields, _ := value.(map[string]any)
	return fields
}

func asList(value any) []any {
	items, _ := value.([]any)
	return items
}

// pruner removes values that do not decode.
type pruner struct{ problems []Problem }

// prune returns the part of a value that decodes into a type, and whether any part does.
func (p *pruner) prune(value any, t reflect.Type, path string) (any, bool) {
	if value == nil {
		return nil, true // null decodes into every type
	}
	if decodes(value, t) {
		return value, true
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	fields, isObject := value.(map[string]any)
	items, isList := value.([]any)
	switch {
	case reflect.PointerTo(t).Implements(unmarshaler): // it decodes as a whole, or not at all
	case t.Kind() == reflect.Struct && isObject:
		types := fieldTypes(t)
		return p.pruneFields(fields, path, func(name string) reflect.Type { return types[name] })
	case t.Kind() == reflect.Map && isObject:
		return p.pruneFields(fields, path, func(string) reflect.Type { return t.Elem() })
	case t.Kind() == reflect.Slice && isList:
		var kept []any
		for i, item := range items {
			if part, ok := p.prune(item, t.Elem(), path+"["+strconv.Itoa(i)+"]"); ok {
				kept = append(kept, part)
			}
		}
		return kept, true
	}
	p.report(value, t, path)
	return nil, false
}

// pruneFields prunes the fields of an object in alphabetical order. Unknown fields have no type and are
// skipped, as decoding ignores them.
func (p *pruner) pruneFields(fields map[string]any, path string, typeOf func(name string) reflect.Type) (any, bool) {
	kept := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		t := typeOf(name)
		if t == nil {
			continue
		}
		if part, ok := p.prune(fields[name], t, strings.TrimPrefix(path+"."+name, ".")); ok {
			kept[name] = part
		}
	}
	return kept, true
}

func (p *pruner) report(value any, t reflect.Type, path string) {
	if len(p.problems) == maxProblems {
		return
	}
	text := "a value that cannot be shown"
	if encoded, err := json.Marshal(value); err == nil {
		text = strings.ToValidUTF8(string(encoded[:min(len(encoded), maxValue)]), "")
		if len(encoded) > maxValue {
			text += "…"
		}
	}
	p.problems = append(p.problems, Problem{Field: path, Value: text, Want: describe(t)})
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// decodes reports whether a value decodes into a type.
func decodes(value any, t reflect.Type) bool {
	data, err := json.Marshal(value)
	return err == nil && kjson.UnmarshalCaseSensitivePreserveInts(data, reflect.New(t).Interface()) == nil
}

// fieldTypes returns the types of the fields of a struct by JSON name, including the fields of inlined
// structs.
func fieldTypes(t reflect.Type) map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name != "":
			types[name] = field.Type
		case field.Anonymous && field.Type.Kind() == reflect.Struct:
			maps.Copy(types, fieldTypes(field.Type))
		}
	}
	return types
}

// describe returns a human-readable description of the values of a type.
func describe(t reflect.Type) string {
	switch {
	case t.Name() == "Time":
		return "a time as in RFC 3339"
	case reflect.PointerTo(t).Implements(unmarshaler):
		return "a valid " + t.Name()
	}
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	default:
		return "a number in range"
	}
}
