// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// csvPageSize is the page size for ClusterServiceVersions. Each may contain images of several hundred kB.
	csvPageSize = 20
	// labelCopiedFrom labels copies of a ClusterServiceVersion in other namespaces.
	labelCopiedFrom = "olm.copiedFrom"
	// annotationProperties contains the properties of an optional operator from its bundle.
	annotationProperties = "olm.properties"
	// annotationResolvedProperties contains the properties from the catalog at the time of the installation,
	// in the field properties. The Operator Lifecycle Manager uses them.
	annotationResolvedProperties = "operatorframework.io/properties"
	// propertyMaxVersion is the highest OpenShift minor version that an operator supports.
	propertyMaxVersion = "olm.maxOpenShiftVersion"
	// csvSucceeded is the phase of an installed operator.
	csvSucceeded = "Succeeded"
	// malformedProperties replaces a version that cannot be parsed.
	malformedProperties = "malformed"
)

// ClusterServiceVersion holds the facts about an installed optional operator.
type ClusterServiceVersion struct {
	Namespace, Name string
	// Phase is the state of the installation, or empty if not reported.
	Phase           string
	Reason, Message string
	// MaxVersion is the highest OpenShift minor version that the operator supports, such as 4.14, or empty.
	// It is not a version if the operator's properties are malformed.
	MaxVersion string
}

// Succeeded reports whether the operator is completely installed.
func (v ClusterServiceVersion) Succeeded() bool { return v.Phase == csvSucceeded }

// Failed reports whether the installation has failed.
func (v ClusterServiceVersion) Failed() bool { return v.Phase == "Failed" }

// ListClusterServiceVersions lists the optional operators, sorted by namespace and name, without copies in
// other namespaces. A cluster without the Operator Lifecycle Manager has none.
func ListClusterServiceVersions(ctx context.Context, live client.Reader) ([]ClusterServiceVersion, error) {
	original, err := labels.NewRequirement(labelCopiedFrom, selection.DoesNotExist, nil)
	if err != nil {
		return nil, fmt.Errorf("selecting the ClusterServiceVersions: %w", err)
	}
	selector := client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*original)}
	var found []ClusterServiceVersion
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(OLMGroupVersion.WithKind("ClusterServiceVersionList"))
	err = EachItem(ctx, live, &list, csvPageSize, func(csv *unstructured.Unstructured) error {
		found = append(found, clusterServiceVersionOf(csv))
		return nil
	}, selector)
	switch {
	case meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("listing the ClusterServiceVersions: %w", err)
	}
	slices.SortFunc(found, func(a, b ClusterServiceVersion) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return found, nil
}

func clusterServiceVersionOf(object *unstructured.Unstructured) ClusterServiceVersion {
	field := func(name string) string {
		value, _, _ := unstructured.NestedString(object.Object, "status", name)
		return sanitize(value)
	}
	return ClusterServiceVersion{
		Namespace: object.GetNamespace(), Name: object.GetName(), Phase: field("phase"), Reason: field("reason"), Message: field("message"),
		MaxVersion: maxOpenShiftVersion(object.GetAnnotations()),
	}
}

// property is a property of an optional operator.
type property struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// maxOpenShiftVersion returns the highest supported minor version in the properties, or "" if there is none.
// The value is a string or, in older bundles, a number.
func maxOpenShiftVersion(annotations map[string]string) string {
	var resolved struct {
		Properties []property `json:"properties"`
	}
	var bundled []property
	for annotation, into := range map[string]any{annotationResolvedProperties: &resolved, annotationProperties: &bundled} {
		if text := annotations[annotation]; text != "" && json.Unmarshal([]byte(text), into) != nil {
			return malformedProperties
		}
	}
	for _, p := range append(resolved.Properties, bundled...) {
		if p.Type == propertyMaxVersion {
			return strings.Trim(sanitize(string(p.Value)), `"`)
		}
	}
	return ""
}
