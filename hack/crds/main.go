// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The crds program completes CustomResourceDefinitions written by controller-gen where the schema
// of a field differs from the schema of its Go type. controller-gen has no marker for this.
//
// Usage: crds FILE...
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// rfc3339 matches the times that Go can decode, with only valid days for each month. It replaces
// the format date-time: with that format, the API server also accepts lower-case t and z, and even
// a list, and a single such object would stop every informer of its kind.
const rfc3339 = `^([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))` +
	`|([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)` +
	`T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`

func main() {
	for _, path := range os.Args[1:] {
		if err := completeFile(path); err != nil {
			fmt.Fprintln(os.Stderr, "crds:", err)
			os.Exit(1)
		}
	}
}

func completeFile(path string) error {
	data, err := os.ReadFile(path) //nolint:gosec // The caller names the files.
	if err != nil {
		return fmt.Errorf("reading definition: %w", err)
	}
	completed, err := complete(data)
	if err != nil {
		return fmt.Errorf("completing %s: %w", path, err)
	}
	return os.WriteFile(path, completed, 0o644) //nolint:gosec // Definitions are public.
}

// maxPoolLabels is the maximum number of labels in a selector of machine config pools.
const maxPoolLabels = 16

// complete adds a pattern for all times, the limits for labels of machine config pools, and, for
// UpgradeJob and ClusterUpgradeRun, the history of that kind.
func complete(data []byte) ([]byte, error) {
	var crd map[string]any
	if err := yaml.Unmarshal(data, &crd); err != nil {
		return nil, err
	}
	versions, err := field[[]any](crd, "spec", "versions")
	if err != nil {
		return nil, err
	}
	kind, err := field[string](crd, "spec", "names", "kind")
	if err != nil {
		return nil, err
	}
	for i, version := range versions {
		replaceTimeFormat(version)
		limitPoolLabels(version)
		completeRecord := historyOf[kind]
		if completeRecord == nil {
			continue
		}
		record, err := field[map[string]any](version, "schema", "openAPIV3Schema", "properties", "status", "properties", "history", "items")
		if err != nil {
			return nil, fmt.Errorf("version %d: %w", i, err)
		}
		if err := completeRecord(record); err != nil {
			return nil, fmt.Errorf("version %d: %w", i, err)
		}
	}
	completed, err := yaml.Marshal(crd)
	return append([]byte("---\n"), completed...), err
}

func replaceTimeFormat(node any) {
	switch node := node.(type) {
	case map[string]any:
		if node["format"] == "date-time" {
			delete(node, "format")
			node["pattern"] = rfc3339
		}
		for _, value := range node {
			replaceTimeFormat(value)
		}
	case []any:
		for _, value := range node {
			replaceTimeFormat(value)
		}
	}
}

// limitPoolLabels limits the number of labels where a label selector is also accepted.
func limitPoolLabels(node any) {
	switch node := node.(type) {
	case map[string]any:
		if labels, ok := node["matchLabels"].(map[string]any); ok && labels["x-kubernetes-preserve-unknown-fields"] == true {
			labels["minProperties"], labels["maxProperties"] = 1, maxPoolLabels
		}
		for _, value := range node {
			limitPoolLabels(value)
		}
	case []any:
		for _, value := range node {
			limitPoolLabels(value)
		}
	}
}

// historyOf completes the history records of a kind.
var historyOf = map[string]func(record map[string]any) error{
	"UpgradeJob":        completeJobHistory,
	"ClusterUpgradeRun": keyByAttempt,
}

// keyByAttempt makes the attempt the key of records instead of the version. An upgrade of operators
// only, or a job that only runs hooks, has no version.
func keyByAttempt(record map[string]any) error {
	record["required"] = []any{"attempt"}
	return nil
}

// completeJobHistory makes the attempt the key of records and adds the phases specific to
// UpgradeJobs.
func completeJobHistory(record map[string]any) error {
	if err := keyByAttempt(record); err != nil {
		return err
	}
	for _, path := range [][]string{
		{"properties", "phase"},
		{"properties", "previousAttempts", "items", "properties", "phase"},
	} {
		phase, err := field[map[string]any](record, path...)
		if err != nil {
			return err
		}
		known, err := field[[]any](phase, "enum")
		if err != nil {
			return err
		}
		phase["enum"] = append(known, "Skipped")
	}
	return nil
}

// field returns the value at a path.
func field[T any](node any, path ...string) (T, error) {
	for _, name := range path {
		object, _ := node.(map[string]any)
		node = object[name]
	}
	value, ok := node.(T)
	if !ok {
		return value, fmt.Errorf("%v is %T, want %T", path, node, value)
	}
	return value, nil
}
