// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fieldwise simulates forced server-side apply by a single field manager. Fields are merged
// individually, and the manager removes only fields that no one else owns. Lists are atomic.
package fieldwise

import (
	"fmt"
	"slices"
)

// Owned holds the leaf fields that a field manager has applied, by path.
type Owned map[string]leaf

// leaf is a field that is not a map.
type leaf struct {
	path   []string
	value  any
	shared bool // another manager had already set the same value
}

// Apply applies a configuration to an object and removes owned fields that are missing from the
// configuration. It returns the fields that the manager now owns.
func Apply(object, config map[string]any, owned Owned) Owned {
	after := Owned{}
	apply(object, config, nil, owned, after)
	for key, field := range owned {
		if _, kept := after[key]; !kept && !field.shared {
			remove(object, field.path, field.value)
		}
	}
	return after
}

func apply(object, config map[string]any, parent []string, owned, after Owned) {
	for name, value := range config {
		path := append(slices.Clone(parent), name)
		if fields, is := value.(map[string]any); is && len(fields) > 0 {
			child, is := object[name].(map[string]any)
			if !is {
				child = map[string]any{}
				object[name] = child
			}
			apply(child, fields, path, owned, after)
			continue
		}
		key := fmt.Sprint(path)
		existing, exists := object[name]
		former, was := owned[key]
		same := exists && fmt.Sprint(existing) == fmt.Sprint(value)
		after[key] = leaf{path: path, value: value, shared: same && (!was || former.shared || fmt.Sprint(former.value) != fmt.Sprint(value))}
		object[name] = value
	}
}

// remove removes a field if it still has the given value, and then parent maps that are empty. A
// field that another manager has changed belongs to that manager.
func remove(object map[string]any, path []string, value any) {
	name := path[0]
	if len(path) == 1 {
		if fmt.Sprint(object[name]) == fmt.Sprint(value) {
			delete(object, name)
		}
		return
	}
	if child, is := object[name].(map[string]any); is {
		remove(child, path[1:], value)
		if len(child) == 0 {
			delete(object, name)
		}
	}
}
