// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifests applies YAML files to a cluster like "kubectl apply --server-side".
//
// It does not interpret the objects.
package manifests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const fieldOwner = client.FieldOwner("devcluster")

// Client returns a client for objects of any kind, including kinds added later.
func Client(config *rest.Config) (client.Client, error) {
	c, err := client.New(config, client.Options{Scheme: runtime.NewScheme()})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return c, nil
}

// Read returns the objects of all YAML files in a folder in the order of the file names. It skips
// subfolders and kustomizations.
func Read(files fs.FS) ([]*unstructured.Unstructured, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, name := range names {
		if path.Base(name) == "kustomization.yaml" {
			continue
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("reading manifests: %w", err)
		}
		decoded, err := Decode(content)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		objects = append(objects, decoded...)
	}
	return objects, nil
}

// Decode returns the objects in a multi-document YAML text.
func Decode(content []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		switch {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}

// Apply applies the objects, starting with namespaces and CustomResourceDefinitions, and waits
// until the latter are served. Objects of the kinds in skip are omitted. It returns an error for
// any other kind that is not served.
func Apply(ctx context.Context, c client.Client, objects []*unstructured.Unstructured, skip ...string) error {
	sorted := slices.Clone(objects)
	slices.SortStableFunc(sorted, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	definitionsPending := false
	for _, object := range sorted {
		if slices.Contains(skip, object.GetKind()) {
			continue
		}
		if definitionsPending && rank(object) > definition {
			if err := await(ctx, c, sorted); err != nil {
				return err
			}
			definitionsPending = false
		}
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), fieldOwner, client.ForceOwnership); err != nil {
			return fmt.Errorf("applying %s %s: %w", object.GetKind(), client.ObjectKeyFromObject(object), err)
		}
		definitionsPending = definitionsPending || rank(object) == definition
	}
	if definitionsPending {
		return await(ctx, c, sorted)
	}
	return nil
}

const definition = 1

func rank(object *unstructured.Unstructured) int {
	switch object.GetKind() {
	case "Namespace":
		return 0
	case "CustomResourceDefinition":
		return definition
	default:
		return definition + 1
	}
}

// served limits how long await waits for each CustomResourceDefinition.
const served = 2 * time.Minute

// await waits until the CustomResourceDefinitions among the objects are established and discovered.
// Discovery lags behind on a busy machine.
func await(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if rank(object) != definition {
			continue
		}
		err := wait.PollUntilContextTimeout(ctx, 25*time.Millisecond, served, true, func(ctx context.Context) (bool, error) {
			var crd apiextensionsv1.CustomResourceDefinition
			current := object.DeepCopy()
			if err := c.Get(ctx, client.ObjectKeyFromObject(object), current); err != nil {
				return false, err
			}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(current.Object, &crd); err != nil {
				return false, err
			}
			return isDiscovered(c.RESTMapper(), crd)
		})
		if err != nil {
			return fmt.Errorf("waiting until %s is served: %w", object.GetName(), err)
		}
	}
	return nil
}

// isDiscovered reports whether a CustomResourceDefinition is established and the mapper finds all
// of its versions. It asks for each version explicitly, because for a group without a version, the
// mapper keeps the versions that it found first.
func isDiscovered(mapper meta.RESTMapper, crd apiextensionsv1.CustomResourceDefinition) (bool, error) {
	established := slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
	if !established {
		return false, nil
	}
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		_, err := mapper.RESTMapping(schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}, version.Name)
		if meta.IsNoMatchError(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}
