// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// machineKind is a kind of object that owns machines. Such objects are read as unstructured data to keep
// spec.versionManagement and to support clusters without the kind.
type machineKind struct {
	gvk schema.GroupVersionKind
	// version is the path of the desired version, or nil if the kind has none.
	version []string
	// rollout reads whether the machines have the desired version. It is nil if the kind does not show this.
	rollout func(*unstructured.Unstructured, *MachinePool)
}

var (
	machineSets        = machineKind{schema.GroupVersionKind{Group: "machine.openshift.io", Version: "v1beta1", Kind: "MachineSet"}, nil, nil}
	clusterMachineSets = machineKind{schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta1", Kind: "MachineSet"}, templateVersion, readReplicas}
	machineDeployments = machineKind{schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta1", Kind: "MachineDeployment"}, templateVersion, readReplicas}
	nodePools          = machineKind{schema.GroupVersionKind{Group: "hypershift.openshift.io", Version: "v1beta1", Kind: "NodePool"}, []string{"status", "version"}, readUpdatingVersion}

	templateVersion = []string{"spec", "template", "spec", "version"}
)

// machinePageSize is the number of objects in one page of a list.
const machinePageSize = 500

func (kind machineKind) read(ctx context.Context, g *gathering) error {
	list := unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.gvk.GroupVersion().WithKind(kind.gvk.Kind + "List"))
	return clusterstate.EachItem(ctx, g.Reader, &list, machinePageSize, func(object *unstructured.Unstructured) error {
		g.facts.MachinePools = append(g.facts.MachinePools, machinePoolOf(object, kind))
		return nil
	}, client.UnsafeDisableDeepCopy)
}

func machinePoolOf(object *unstructured.Unstructured, kind machineKind) MachinePool {
	pool := MachinePool{
		Resource:   Resource{Group: kind.gvk.Group, Kind: kind.gvk.Kind, Namespace: object.GetNamespace(), Name: object.GetName()},
		APIVersion: kind.gvk.GroupVersion().String(), UID: string(object.GetUID()), VersionManagement: versionManagement(object),
	}
	if owner := metav1.GetControllerOf(object); owner != nil && owner.Kind == "MachineDeployment" {
		pool.Deployment = owner.Name
	}
	if kind.version != nil {
		pool.Version, _, _ = unstructured.NestedString(object.Object, kind.version...)
		kind.rollout(object, &pool)
	}
	return pool
}

// readReplicas compares the number of replicas of a Cluster API MachineSet or MachineDeployment with the
// number of up-to-date replicas. The template contains the version of new machines.
func readReplicas(object *unstructured.Unstructured, pool *MachinePool) {
	number := func(path ...string) (int64, bool) {
		n, found, err := unstructured.NestedInt64(object.Object, path...)
		return n, found && err == nil
	}
	wanted, known := number("spec", "replicas")
	existing, _ := number("status", "replicas")
	observed, isObserved := number("status", "observedGeneration")
	upToDate, reported := number("status", "upToDateReplicas")
	if !reported && pool.Resource.Kind == "MachineDeployment" {
		upToDate, reported = number("status", "updatedReplicas")
	}
	switch {
	case !isObserved || observed < object.GetGeneration():
		pool.Unknown = "its controller has not observed it yet"
	case !known:
		pool.Unknown = "it names no number of replicas"
	case max(wanted, existing) == 0:
	case !reported:
		pool.Unknown = "it does not report how many machines are up to date"
	default:
		pool.Updating = upToDate < max(wanted, existing)
	}
}

// readUpdatingVersion reads whether a NodePool is being updated. Its status contains the version that all its
// nodes have reached.
func readUpdatingVersion(object *unstructured.Unstructured, pool *MachinePool) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok && condition["type"] == "UpdatingVersion" && condition["status"] != "False" {
			pool.Updating = true
		}
	}
}

// readMachineConfigImage reads the machine-config operator image that the release has deployed. It is needed
// only while an update changes nothing but the image.
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
