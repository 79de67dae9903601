// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"io/fs"
	"testing/fstest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// OlderDefinition returns the CustomResourceDefinition in a file without some fields of its status,
// like an API server whose definitions are older than the controller.
func OlderDefinition(files fs.FS, file string, fields ...string) (fs.FS, error) {
	data, err := fs.ReadFile(files, file)
	if err != nil {
		return nil, fmt.Errorf("reading definition: %w", err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &crd); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", file, err)
	}
	for i := range crd.Spec.Versions {
		status := crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["status"]
		for _, field := range fields {
			if _, has := status.Properties[field]; !has {
				return nil, fmt.Errorf("%s has no field status.%s", file, field)
			}
			delete(status.Properties, field)
		}
	}
	if data, err = yaml.Marshal(crd); err != nil {
		return nil, fmt.Errorf("encoding %s: %w", file, err)
	}
	return fstest.MapFS{file: &fstest.MapFile{Data: data}}, nil
}
