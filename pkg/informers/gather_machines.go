// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"cmp"
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
)

// machineKind is a kind of objects that own machines.
type machineKind struct {
	source Source
	gvk    schema.GroupVersionKind
	// version is the path of the version that the machines are to have; nil means none.
	version []string
}

// machineKinds returns the kinds that own machines. They are read without their Go types, so that
// spec.versionManagement is kept and none of their definitions needs to be installed.
func machineKinds() []machineKind {
	return []machineKind{
		{SourceMachineSets, schema.GroupVersionKind{Group: "machine.openshift.io", Version: "v1beta1", Kind: "MachineSet"}, nil},
		{SourceClusterMachineSets, schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta1", Kind: "MachineSet"}, []string{"spec", "template", "spec", "version"}},
		{SourceMachineDeployments, schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta1", Kind: "MachineDeployment"}, []string{"spec", "template", "spec", "version"}},
		{SourceNodePools, schema.GroupVersionKind{Group: "hypershift.openshift.io", Version: "v1beta1", Kind: "NodePool"}, []string{"status", "version"}},
	}
}

// machinePageSize is the number of objects in one page of a list.
const machinePageSize = 500

func (g *gathering) readMachinePools(ctx context.Context) {
	for _, kind := range machineKinds() {
		g.read(kind.source, func() error {
			page := unstructured.UnstructuredList{}
			for more := true; more; more = page.GetContinue() != "" {
				from := page.GetContinue()
				page = unstructured.UnstructuredList{}
				page.SetGroupVersionKind(kind.gvk.GroupVersion().WithKind(kind.gvk.Kind + "List"))
				if err := g.Reader.List(ctx, &page, client.Limit(machinePageSize), client.Continue(from), client.UnsafeDisableDeepCopy); err != nil {
					return err
				}
				for i := range page.Items {
					g.facts.MachinePools = append(g.facts.MachinePools, machinePoolOf(&page.Items[i], kind))
				}
			}
			return nil
		})
	}
	slices.SortFunc(g.facts.MachinePools, func(a, b MachinePool) int {
		return cmp.Or(
			cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Resource.Kind, b.Resource.Kind),
			cmp.Compare(a.Resource.Namespace, b.Resource.Namespace), cmp.Compare(a.Resource.Name, b.Resource.Name))
	})
}

func machinePoolOf(object *unstructured.Unstructured, kind machineKind) MachinePool {
	pool := MachinePool{
		Resource:   checks.Resource{Group: kind.gvk.Group, Kind: kind.gvk.Kind, Namespace: object.GetNamespace(), Name: object.GetName()},
		APIVersion: kind.gvk.GroupVersion().String(), UID: string(object.GetUID()), VersionManagement: versionManagement(object),
	}
	if owner := metav1.GetControllerOf(object); owner != nil && owner.Kind == "MachineDeployment" {
		pool.Deployment = owner.Name
	}
	if kind.version != nil {
		pool.Version, _, _ = unstructured.NestedString(object.Object, kind.version...)
	}
	return pool
}

// readMachineConfigImage reads which image of the operator machine-config the release has deployed. It
// is needed only while an update changes only the image.
func (g *gathering) readMachineConfigImage(ctx context.Context) {
	if !g.facts.isMigrating() {
		return
	}
	deployment := unstructured.Unstructured{}
	deployment.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	key := client.ObjectKey{Namespace: "openshift-machine-config-operator", Name: "machine-config-operator"}
	if err := g.Live.Get(ctx, key, &deployment); err != nil {
		return
	}
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		container, ok := c.(map[string]any)
		if name, _, _ := unstructured.NestedString(container, "name"); ok && name == "machine-config-operator" {
			g.facts.MachineConfigImage, _, _ = unstructured.NestedString(container, "image")
		}
	}
}
