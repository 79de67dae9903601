// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"io/fs"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Definition is the schema of one version of a CustomResourceDefinition. Like an API server, it
// applies defaults and validates objects against the structural schema, the CEL rules (including
// transition rules), and the list types. It is safe for concurrent use.
type Definition struct {
	kind       schema.GroupVersionKind
	status     bool
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
}

// Definitions reads the CustomResourceDefinitions from the YAML files in a folder. It ignores other
// objects.
func Definitions(files fs.FS) ([]*Definition, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing definitions: %w", err)
	}
	var all []*Definition
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("reading definition: %w", err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(data, &crd); err != nil {
			return nil, fmt.Errorf("decoding %s: %w", name, err)
		}
		if crd.Kind != "CustomResourceDefinition" {
			continue
		}
		for i := range crd.Spec.Versions {
			definition, err := newDefinition(&crd, &crd.Spec.Versions[i])
			if err != nil {
				return nil, fmt.Errorf("compiling %s: %w", name, err)
			}
			all = append(all, definition)
		}
	}
	return all, nil
}

func newDefinition(crd *apiextensionsv1.CustomResourceDefinition, version *apiextensionsv1.CustomResourceDefinitionVersion) (*Definition, error) {
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &props, nil); err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(&props)
	if err != nil {
		return nil, err
	}
	validator, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		return nil, err
	}
	return &Definition{
		kind:       schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind},
		status:     version.Subresources != nil && version.Subresources.Status != nil,
		structural: structural, validator: validator,
		rules: cel.NewValidator(structural, true, celconfig.PerCallLimit),
	}, nil
}

// Kind returns the kind defined by the schema.
func (d *Definition) Kind() schema.GroupVersionKind { return d.kind }

// Admit applies defaults to an object. It returns the error with which an API server would reject
// the object. old is nil for a creation.
func (d *Definition) Admit(old, object client.Object) error {
	content, err := d.content(object)
	if err != nil {
		return err
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(content, d.structural)
	defaulting.Default(content, d.structural)
	pruning.Prune(content, d.structural, true)
	var before map[string]any
	if old != nil {
		if before, err = d.content(old); err != nil {
			return err
		}
		defaulting.PruneNonNullableNullsWithoutDefaults(before, d.structural)
	}
	errs := validation.ValidateCustomResource(nil, content, d.validator)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, d.structural, content)...)
	if len(errs) == 0 {
		var previous any // must be an untyped nil for a creation
		if before != nil {
			previous = before
		}
		errs, _ = d.rules.Validate(context.Background(), nil, d.structural, content, previous, celconfig.RuntimeCELCostBudget)
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(d.kind.GroupKind(), object.GetName(), errs)
	}
	if u, ok := object.(*unstructured.Unstructured); ok {
		u.Object = content
		return nil
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(content, object)
}

func (d *Definition) content(object client.Object) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %s: %w", d.kind.Kind, object.GetName(), err)
	}
	content["apiVersion"], content["kind"] = d.kind.GroupVersion().String(), d.kind.Kind
	return content, nil
}
