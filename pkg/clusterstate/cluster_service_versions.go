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
	// csvPageSize is the number of ClusterServiceVersions in one page of a list. Each may hold images
	// of several 100 kB.
	csvPageSize = 20
	// labelCopiedFrom marks the copies of a ClusterServiceVersion in other namespaces.
	labelCopiedFrom = "olm.copiedFrom"
	// annotationProperties lists the properties of an optional operator, as its bundle has them.
	annotationProperties = "olm.properties"
	// annotationResolvedProperties has those that the catalog had when the operator was installed, in
	// the field properties. The Operator Lifecycle Manager judges by them.
	annotationResolvedProperties = "operatorframework.io/properties"
	// propertyMaxVersion is the last minor version of OpenShift that an operator supports.
	propertyMaxVersion = "olm.maxOpenShiftVersion"
	// csvSucceeded is the phase of an operator that is installed.
	csvSucceeded = "Succeeded"
	// malformedProperties stands for a version that cannot be read.
	malformedProperties = "malformed"
)

// ClusterServiceVersion holds the facts of an installed optional operator.
type ClusterServiceVersion struct {
	Namespace, Name string
	// Phase is the state of the installation; empty if it is not reported.
	Phase           string
	Reason, Message string
	// MaxVersion is the last minor version of OpenShift that the operator supports, for example 4.14;
	// empty if it names none. It is not a version if the properties of the operator are malformed.
	MaxVersion string
}

// Succeeded reports whether the operator is installed completely.
func (v ClusterServiceVersion) Succeeded() bool { return v.Phase == csvSucceeded }

// Failed reports whether the installation of the operator has failed.
func (v ClusterServiceVersion) Failed() bool { return v.Phase == "Failed" }

// ListClusterServiceVersions lists the optional operators, sorted by namespace and name, without the
// copies in other namespaces. A cluster without the Operator Lifecycle Manager has none.
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

// maxOpenShiftVersion returns the last supported minor version that the properties name; empty means
// none. The value is a string or, in older bundles, a number.
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
