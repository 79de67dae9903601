// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MachineConfigKind is the kind whose metadata names the release of a rendered configuration.
var MachineConfigKind = schema.GroupVersionKind{Group: "machineconfiguration.openshift.io", Version: "v1", Kind: "MachineConfig"}

// The annotations of a rendered MachineConfig.
const (
	annotationReleaseVersion = "machineconfiguration.openshift.io/release-image-version"
	annotationController     = "machineconfiguration.openshift.io/generated-by-controller-version"
)

// MachineConfigAnnotations returns the annotations that are read of a MachineConfig.
func MachineConfigAnnotations() []string {
	return []string{annotationReleaseVersion, annotationController}
}

// Rendered is a rendered MachineConfig.
type Rendered struct {
	Name string
	// Version is the version of the release of which the machine config operator has rendered it;
	// empty if it does not name one.
	Version string
	// Controller is the build of the machine config operator that has rendered it.
	Controller string
	// Created is when it was rendered; zero if unknown.
	Created time.Time
}

// configPageSize is the number of MachineConfigs in one page of a list.
const configPageSize = 500

// ListRenderedConfigs lists the metadata of the rendered MachineConfigs, by name.
func ListRenderedConfigs(ctx context.Context, r client.Reader) (map[string]Rendered, error) {
	rendered := map[string]Rendered{}
	list := metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(MachineConfigKind.GroupVersion().WithKind("MachineConfigList"))
	err := EachItem(ctx, r, &list, configPageSize, func(config *metav1.PartialObjectMetadata) error {
		if strings.HasPrefix(config.Name, "rendered-") {
			rendered[config.Name] = Rendered{
				Name: config.Name, Version: sanitize(config.Annotations[annotationReleaseVersion]),
				Controller: sanitize(config.Annotations[annotationController]), Created: config.CreationTimestamp.Time,
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the machine configs: %w", err)
	}
	return rendered, nil
}
