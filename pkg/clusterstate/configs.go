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

// MachineConfigKind is the kind of rendered configurations, whose metadata names their release.
var MachineConfigKind = schema.GroupVersionKind{Group: "machineconfiguration.openshift.io", Version: "v1", Kind: "MachineConfig"}

// Annotations of a rendered MachineConfig.
const (
	annotationReleaseVersion = "machineconfiguration.openshift.io/release-image-version"
	annotationController     = "machineconfiguration.openshift.io/generated-by-controller-version"
)

// MachineConfigAnnotations returns the annotations of a MachineConfig that this package reads.
func MachineConfigAnnotations() []string {
	return []string{annotationReleaseVersion, annotationController}
}

// Rendered is a rendered MachineConfig.
type Rendered struct {
	Name string
	// Version is the release version that the machine config operator rendered it for, or empty if not
	// specified.
	Version string
	// Controller is the build of the machine config operator that rendered it.
	Controller string
	// Created is when it was rendered, or zero if this is unknown.
	Created time.Time
}

// configPageSize is the page size for MachineConfigs.
const configPageSize = 500

// ListRenderedConfigs returns the rendered MachineConfigs by name, reading only metadata.
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
