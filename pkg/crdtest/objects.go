// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crdtest

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Sample returns the object in a file as decoded from JSON, with integers as int64. It has no
// status, since the API server ignores it.
func Sample(tb testing.TB, file string) *unstructured.Unstructured {
	tb.Helper()
	data, err := os.ReadFile(file) //nolint:gosec // a file of the repository
	if err != nil {
		tb.Fatal(err)
	}
	if data, err = yaml.YAMLToJSON(data); err != nil {
		tb.Fatalf("decoding %s: %v", file, err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		tb.Fatalf("decoding %s: %v", file, err)
	}
	delete(object.Object, "status")
	return object
}

// SetField sets the field at a path such as "spec.windows.0.cron"; nil removes it. Numbers in the
// path are list indexes. Missing parents are created.
func SetField(tb testing.TB, object map[string]any, path string, value any) {
	tb.Helper()
	setField(tb, object, strings.Split(path, "."), runtime.DeepCopyJSONValue(value))
}

func setField(tb testing.TB, node any, path []string, value any) {
	tb.Helper()
	if list, ok := node.([]any); ok {
		i, err := strconv.Atoi(path[0])
		if err != nil || i >= len(list) {
			tb.Fatalf("no item %s in %v", path[0], list)
		}
		if len(path) > 1 {
			setField(tb, list[i], path[1:], value)
			return
		}
		list[i] = value
		return
	}
	object, ok := node.(map[string]any)
	switch {
	case !ok:
		tb.Fatalf("no field %s in %v", path[0], node)
	case len(path) > 1:
		if object[path[0]] == nil {
			object[path[0]] = map[string]any{}
		}
		setField(tb, object[path[0]], path[1:], value)
	case value == nil:
		delete(object, path[0])
	default:
		object[path[0]] = value
	}
}
