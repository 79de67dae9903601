// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package devtest

import (
	"os"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// Definitions returns the CustomResourceDefinitions of a folder in the order of their files, which
// controller-gen names after the group and the resource.
func Definitions(tb testing.TB, folder string) []*apiextensionsv1.CustomResourceDefinition {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_*.yaml"))
	if err != nil {
		tb.Fatal(err)
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		data, err := os.ReadFile(file) //nolint:gosec // a file of the repository
		if err != nil {
			tb.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, crd); err != nil {
			tb.Fatalf("decoding %s: %v", file, err)
		}
		all = append(all, crd)
	}
	return all
}
