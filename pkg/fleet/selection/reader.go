// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
)

// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=managedclusters;placements;placementdecisions,verbs=list;watch

// Options configure Select.
type Options struct {
	// OwnNamespaceOnly refuses Placements of other namespaces.
	OwnNamespaceOnly bool
	// Now is the time.
	Now time.Time
}

// Select reads the Placements of a ManagedClustersUpgrade and their decisions, and returns the
// selection among all ManagedClusters, which are given by their names. The objects of a cache are not
// copied and must not be changed.
func Select(
	ctx context.Context, reader client.Reader, mcu *fleetv1beta1.ManagedClustersUpgrade,
	clusters map[string]*clusterv1.ManagedCluster, options Options,
) (Selection, error) {
	references := References(mcu)
	for _, reference := range references {
		if options.OwnNamespaceOnly && reference.Namespace != mcu.Namespace {
			return unknown(fleetv1beta1.ReasonPlacementNotAllowed, fmt.Sprintf(
				"Placement %s/%s is in another namespace, which the hub does not allow: use a Placement in namespace %s",
				reference.Namespace, reference.Name, mcu.Namespace)), nil
		}
	}
	var sources []Source
	for _, reference := range references {
		source, err := read(ctx, reader, Source{Namespace: reference.Namespace, Name: reference.Name})
		if err != nil {
			return Selection{}, err
		}
		sources = append(sources, source)
	}
	if mcu.Spec.ClusterSelector != nil {
		source, err := read(ctx, reader, Source{Namespace: mcu.Namespace, Name: PlacementName(mcu), Owned: true})
		if err != nil {
			return Selection{}, err
		}
		sources = append(sources, source)
	}
	selected := Compute(mcu, sources, clusters)
	selected.settle(sources, options.Now)
	return selected, nil
}

// settle marks the selection as unstable while decisions may reflect the earlier spec of a Placement
// that the hub changed.
func (s *Selection) settle(sources []Source, now time.Time) {
	for i := range sources {
		source := &sources[i]
		if !source.Owned || source.Placement == nil || !s.Stable() {
			continue
		}
		value, changed := source.Placement.Annotations[ChangedAnnotation]
		if !changed {
			continue
		}
		at, err := time.Parse(time.RFC3339, value)
		switch until := at.Add(settleTime); {
		case err != nil:
			s.Unstable = fmt.Sprintf("annotation %s of %s is not an RFC 3339 time: remove it", ChangedAnnotation, source.title())
		case now.Before(until):
			s.Unstable = fmt.Sprintf("the spec of %s has changed: its decisions are used from %s", source.title(), until.Format(time.RFC3339))
			s.UnstableUntil = until
		}
	}
}

// References returns the Placements that the spec names, each once, with their namespaces.
func References(mcu *fleetv1beta1.ManagedClustersUpgrade) []fleetv1beta1.PlacementReference {
	var references []fleetv1beta1.PlacementReference
	seen := map[fleetv1beta1.PlacementReference]bool{}
	for _, reference := range mcu.Spec.Placement {
		if reference.Namespace == "" {
			reference.Namespace = mcu.Namespace
		}
		if !seen[reference] {
			seen[reference] = true
			references = append(references, reference)
		}
	}
	return references
}

// read completes a source with its Placement and the decisions of that Placement.
func read(ctx context.Context, reader client.Reader, source Source) (Source, error) {
	placement := &ocmv1beta1.Placement{}
	switch err := reader.Get(ctx, client.ObjectKey{Namespace: source.Namespace, Name: source.Name}, placement); {
	case apierrors.IsNotFound(err):
		return source, nil
	case err != nil:
		return source, fmt.Errorf("reading placement: %w", err)
	}
	source.Placement = placement
	var decisions ocmv1beta1.PlacementDecisionList
	err := reader.List(ctx, &decisions, client.InNamespace(source.Namespace), client.MatchingLabels{ocmv1beta1.PlacementLabel: source.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return source, fmt.Errorf("listing decisions of placement %s/%s: %w", source.Namespace, source.Name, err)
	}
	for i := range decisions.Items {
		// Decisions of an earlier Placement of that name stay until they are collected.
		if owner := metav1.GetControllerOf(&decisions.Items[i]); owner == nil || owner.UID == placement.UID {
			source.Decisions = append(source.Decisions, decisions.Items[i])
		}
	}
	return source, nil
}
