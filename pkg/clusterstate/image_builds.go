// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"context"
	"fmt"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ImageBuild is an OS image build that the nodes of a pool wait for.
type ImageBuild struct {
	Name string
	// Config is the rendered configuration that the image is built for.
	Config string
	// Start is when the build started, or zero if this is unknown.
	Start time.Time
	// Phase identifies the progress reported by the build.
	Phase string
}

// ListImageBuilds returns the unfinished OS image builds by rendered configuration.
func ListImageBuilds(ctx context.Context, r client.Reader) (map[string]ImageBuild, error) {
	var list mcfgv1.MachineOSBuildList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the builds of OS images: %w", err)
	}
	builds := map[string]ImageBuild{}
	for i := range list.Items {
		build, running := imageBuildOf(&list.Items[i])
		if known, found := builds[build.Config]; running && (!found || build.Start.After(known.Start)) {
			builds[build.Config] = build
		}
	}
	return builds, nil
}

// imageBuildOf converts a build and reports whether it is unfinished. A build without conditions has not
// started.
func imageBuildOf(object *mcfgv1.MachineOSBuild) (ImageBuild, bool) {
	build := ImageBuild{Name: object.Name, Config: object.Spec.MachineConfig.Name, Start: object.CreationTimestamp.Time}
	if start := object.Status.BuildStart; start != nil {
		build.Start = start.Time
	}
	for i := range object.Status.Conditions {
		c := &object.Status.Conditions[i]
		if c.Status != metav1.ConditionTrue {
			continue
		}
		switch mcfgv1.BuildProgress(c.Type) {
		case mcfgv1.MachineOSBuildSucceeded, mcfgv1.MachineOSBuildFailed, mcfgv1.MachineOSBuildInterrupted:
			return build, false
		default:
			build.Phase += c.Type + "," + c.Reason + ","
		}
	}
	return build, object.DeletionTimestamp.IsZero()
}

// StripImageBuild removes the unused parts of an OS image build before it is cached.
func StripImageBuild(obj any) (any, error) {
	build, ok := obj.(*mcfgv1.MachineOSBuild)
	if !ok {
		return obj, nil
	}
	stripMetadata(build)
	build.Spec = mcfgv1.MachineOSBuildSpec{MachineConfig: mcfgv1.MachineConfigReference{Name: cachedText(build.Spec.MachineConfig.Name)}}
	conditions := kept(build.Status.Conditions, func(c *metav1.Condition) bool { return c.Status == metav1.ConditionTrue })
	for i := range conditions {
		conditions[i] = metav1.Condition{Type: cachedText(conditions[i].Type), Status: metav1.ConditionTrue, Reason: cachedText(conditions[i].Reason)}
	}
	build.Status = mcfgv1.MachineOSBuildStatus{Conditions: conditions, BuildStart: build.Status.BuildStart}
	return build, nil
}
