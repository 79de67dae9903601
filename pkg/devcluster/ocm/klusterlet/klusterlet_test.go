// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestObjects(t *testing.T) {
	t.Parallel()
	objects, err := Objects()
	if err != nil {
		t.Fatal(err)
	}
	bindings := map[string]bool{}
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "no value") || strings.Contains(string(text), "name: \"\"") {
			t.Errorf("a value is missing:\n%s", text)
		}
		if strings.HasSuffix(object.GetKind(), "Binding") && strings.Contains(string(text), "name: "+WorkServiceAccount) {
			bindings[object.GetName()] = true
		}
	}
	for _, name := range []string{Aggregate().Name, "open-cluster-management:klusterlet-work:execution-admin", "open-cluster-management:klusterlet-work:agent"} {
		if !bindings[name] {
			t.Errorf("the work agent has no %s, only %v", name, bindings)
		}
	}
}
