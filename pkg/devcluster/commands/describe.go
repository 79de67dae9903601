// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// describeObject prints the name, the spec, and the status of an object like "kubectl describe",
// which derives labels from the names of fields.
func describeObject(out io.Writer, object *unstructured.Unstructured) {
	fmt.Fprintf(out, "Name:         %s\nNamespace:    %s\nAPI Version:  %s\nKind:         %s\n", object.GetName(), object.GetNamespace(), object.GetAPIVersion(), object.GetKind())
	describeFields(out, "", map[string]any{"spec": object.Object["spec"], "status": object.Object["status"]})
}

func describeFields(out io.Writer, indent string, fields map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		describeValue(out, indent, words(name)+":", fields[name])
	}
}

func describeValue(out io.Writer, indent, label string, value any) {
	switch value := value.(type) {
	case map[string]any:
		fmt.Fprintf(out, "%s%s\n", indent, label)
		describeFields(out, indent+"  ", value)
	case []any:
		fmt.Fprintf(out, "%s%s\n", indent, label)
		for _, item := range value {
			if fields, is := item.(map[string]any); is {
				describeFields(out, indent+"  ", fields)
			} else {
				fmt.Fprintf(out, "%s  %v\n", indent, item)
			}
		}
	default:
		fmt.Fprintf(out, "%s%s  %v\n", indent, label, value)
	}
}

// words splits the name of a field into words: "lastTransitionTime" becomes "Last Transition Time",
// and "PDBForceDrainTimeout" becomes "PDB Force Drain Timeout".
func words(name string) string {
	var b strings.Builder
	for i, r := range name {
		switch {
		case i == 0:
			r = unicode.ToUpper(r)
		case unicode.IsUpper(r) && (unicode.IsLower(rune(name[i-1])) || i+1 < len(name) && unicode.IsLower(rune(name[i+1]))):
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return b.String()
}
