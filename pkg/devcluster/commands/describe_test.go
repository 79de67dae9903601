// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestDescribeObject(t *testing.T) {
	t.Parallel()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Upgrade",
		"metadata": map[string]any{"name": "a", "namespace": "b", "generation": int64(1)},
		"spec":     map[string]any{"PDBForceDrainTimeout": int64(60), "upgradeAt": "2026-03-01T12:00:01Z", "names": []any{"x", "y"}},
		"status":   map[string]any{"conditions": []any{map[string]any{"type": "Accepted", "lastTransitionTime": "2026-03-01T12:00:02Z"}}},
	}}
	want := `Name:         a
Namespace:    b
API Version:  example.com/v1
Kind:         Upgrade
Spec:
  PDB Force Drain Timeout:  60
  Names:
    x
    y
  Upgrade At:  2026-03-01T12:00:01Z
Status:
  Conditions:
    Last Transition Time:  2026-03-01T12:00:02Z
    Type:  Accepted
`
	var got strings.Builder
	describeObject(&got, object)
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
