// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"os"
	"testing"
	"testing/fstest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// OlderDefinitions returns the CustomResourceDefinition in a file without some fields of its status,
// like an API server whose definitions are older than the controller.
func OlderDefinitions(tb testing.TB, file string, fields ...string) []*Definition {
	tb.Helper()
	data, err := os.ReadFile(file) //nolint:gosec // It is a file of the repository.
	if err != nil {
		tb.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &crd); err != nil {
		tb.Fatal(err)
	}
	for i := range crd.Spec.Versions {
		status := crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["status"]
		for _, field := range fields {
			if _, has := status.Properties[field]; !has {
				tb.Fatalf("%s has no field status.%s", file, field)
			}
			delete(status.Properties, field)
		}
	}
	definitions, err := Definitions(fstest.MapFS{"crd.yaml": &fstest.MapFile{Data: []byte(JSON(tb, crd))}})
	if err != nil {
		tb.Fatal(err)
	}
	return definitions
}
