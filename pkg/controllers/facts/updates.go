// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Updates declares how the controllers of the Update Status Controller cache the kinds that provide
// the facts of package informers. All kinds that a CustomResourceDefinition defines are optional: a
// missing kind is reported and does not prevent the start. The ClusterVersion is untyped, because
// its Go type lacks spec.versionManagement.
func Updates() []manager.Kind {
	kinds := []manager.Kind{
		{Object: untyped(configv1.GroupVersion.WithKind("ClusterVersion")), ClusterScoped: true, Optional: true, Name: clusterstate.VersionKey.Name},
		{
			Object: &configv1.ClusterOperator{}, AddToScheme: configv1.Install, ClusterScoped: true, Optional: true,
			Transform: clusterstate.StripClusterOperatorForStatus,
		},
		{Object: &mcfgv1.MachineConfigPool{}, AddToScheme: mcfgv1.Install, ClusterScoped: true, Optional: true, Transform: clusterstate.StripPoolForStatus},
		{Object: metadata(clusterstate.MachineConfigKind), ClusterScoped: true, Optional: true, Transform: stripMachineConfig},
		{Object: &mcfgv1.MachineOSBuild{}, AddToScheme: mcfgv1.Install, ClusterScoped: true, Optional: true, Transform: clusterstate.StripImageBuild},
		{
			Object: &corev1.Node{}, AddToScheme: corev1.AddToScheme, ClusterScoped: true, Transform: clusterstate.StripNodeForStatus,
			Predicates: []predicate.Predicate{nodeChangedPredicate{}},
		},
		{
			Object: &policyv1.PodDisruptionBudget{}, AddToScheme: policyv1.AddToScheme, Transform: clusterstate.StripPDBForStatus,
			Predicates: []predicate.Predicate{pdbChangedPredicate{}},
		},
		{Object: &upgradev1alpha1.UpgradeConfig{}, AddToScheme: upgradev1alpha1.AddToScheme, Optional: true, Transform: stripUpgrade},
		{Object: &maintenancev1beta1.UpgradeJob{}, AddToScheme: maintenancev1beta1.AddToScheme, Optional: true, Transform: StripMaintenance},
		{Object: &maintenancev1beta1.UpgradeConfig{}, AddToScheme: maintenancev1beta1.AddToScheme, Optional: true, Transform: StripMaintenance},
	}
	for _, gvk := range []schema.GroupVersionKind{
		{Group: "machine.openshift.io", Version: "v1beta1", Kind: "MachineSet"},
		{Group: "cluster.x-k8s.io", Version: "v1beta1", Kind: "MachineSet"},
		{Group: "cluster.x-k8s.io", Version: "v1beta1", Kind: "MachineDeployment"},
		{Group: "hypershift.openshift.io", Version: "v1beta1", Kind: "NodePool"},
	} {
		kinds = append(kinds, manager.Kind{Object: untyped(gvk), Optional: true, Transform: stripMachinePool})
	}
	return kinds
}

// UpdateInformers declares how controllers cache the UpdateInformers.
func UpdateInformers() manager.Kind {
	return manager.Kind{Object: &updatev1beta1.UpdateInformer{}, AddToScheme: updatev1beta1.AddToScheme, ClusterScoped: true, Transform: stripInformer}
}

// UpdateStatus declares how controllers cache the UpdateStatus.
func UpdateStatus() manager.Kind {
	return manager.Kind{
		Object: &updatev1beta1.UpdateStatus{}, AddToScheme: updatev1beta1.AddToScheme, ClusterScoped: true, Name: updatev1beta1.UpdateStatusName,
		Transform: stripStatus,
	}
}

// UpdatePlans declares how controllers cache the UpdatePlans.
func UpdatePlans() manager.Kind {
	return manager.Kind{Object: &updatev1beta1.UpdatePlan{}, AddToScheme: updatev1beta1.AddToScheme, ClusterScoped: true}
}

// stripInformer drops unread metadata from an UpdateInformer.
func stripInformer(obj any) (any, error) {
	if object, ok := obj.(*updatev1beta1.UpdateInformer); ok {
		object.ObjectMeta = stripMeta(object.ObjectMeta, updatev1beta1.InjectCAAnnotation, 1<<10)
	}
	return obj, nil
}

// stripStatus drops unread metadata from an UpdateStatus.
func stripStatus(obj any) (any, error) {
	if object, ok := obj.(*updatev1beta1.UpdateStatus); ok {
		object.ObjectMeta = stripMeta(object.ObjectMeta, updatev1beta1.AcknowledgedAnnotation, 16<<10)
	}
	return obj, nil
}

// stripMeta returns the metadata that identifies an object, and one annotation of at most maxBytes
// bytes.
func stripMeta(m metav1.ObjectMeta, annotation string, maxBytes int) metav1.ObjectMeta {
	stripped := metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Generation: m.Generation,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
	}
	if value := m.Annotations[annotation]; value != "" {
		stripped.Annotations = map[string]string{annotation: value[:min(len(value), maxBytes)]}
	}
	return stripped
}

func untyped(gvk schema.GroupVersionKind) client.Object {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	return object
}

func metadata(gvk schema.GroupVersionKind) client.Object {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(gvk)
	return object
}

// stripMachineConfig drops unread fields from a MachineConfig. There are many MachineConfigs, with
// many annotations.
func stripMachineConfig(obj any) (any, error) {
	object, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil
	}
	annotations := map[string]string{}
	for _, key := range clusterstate.MachineConfigAnnotations() {
		if value, found := object.Annotations[key]; found {
			annotations[key] = value
		}
	}
	object.ObjectMeta = metav1.ObjectMeta{
		Name: object.Name, UID: object.UID, ResourceVersion: object.ResourceVersion,
		CreationTimestamp: object.CreationTimestamp, Annotations: annotations,
	}
	return object, nil
}

// stripUpgrade drops unread metadata from an UpgradeConfig.
func stripUpgrade(obj any) (any, error) {
	object, ok := obj.(*upgradev1alpha1.UpgradeConfig)
	if !ok {
		return obj, nil
	}
	requests := upgradeRequests(object)
	object.ObjectMeta = stripMeta(object.ObjectMeta, "", 0)
	object.Annotations = requests
	return object, nil
}

// StripUpgradeConfig drops unread metadata from an UpgradeConfig before it is cached. It keeps the
// annotations of user requests; see maintenance.RequestToken.
func StripUpgradeConfig(obj any) (any, error) {
	object, ok := obj.(*upgradev1alpha1.UpgradeConfig)
	if !ok {
		return obj, nil
	}
	requests, labels := upgradeRequests(object), cachedLabels(object.Labels)
	stripped, err := clusterstate.StripMetadata(object)
	object.Annotations, object.Labels = requests, labels // hooks select it
	return stripped, err
}

// upgradeRequests returns the annotations of an UpgradeConfig that hold user requests.
func upgradeRequests(object *upgradev1alpha1.UpgradeConfig) map[string]string {
	requests := map[string]string{}
	for _, key := range []string{upgradev1alpha1.RetryAnnotation, upgradev1alpha1.RunNowAnnotation} {
		if token := maintenance.RequestToken(object, key); token != "" {
			requests[key] = token
		}
	}
	if reason, paused := object.Annotations[upgradev1alpha1.PauseAnnotation]; paused {
		requests[upgradev1alpha1.PauseAnnotation] = text.Reason(reason)
	}
	if len(requests) == 0 {
		return nil
	}
	return requests
}

// machinePoolFields lists the fields that controllers read from a MachineSet, a MachineDeployment,
// or a NodePool.
var machinePoolFields = [][]string{
	{"apiVersion"},
	{"kind"},
	{"metadata", "namespace"},
	{"metadata", "name"},
	{"metadata", "uid"},
	{"metadata", "resourceVersion"},
	{"metadata", "generation"},
	{"metadata", "ownerReferences"},
	{"spec", "versionManagement"},
	{"spec", "template", "spec", "version"},
	{"status", "version"},
}

// stripMachinePool drops unread fields from a MachineSet, a MachineDeployment, or a NodePool.
func stripMachinePool(obj any) (any, error) {
	object, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	stripped := map[string]any{}
	for _, path := range machinePoolFields {
		value, found, err := unstructured.NestedFieldNoCopy(object.Object, path...)
		if err != nil || !found {
			continue
		}
		if err := unstructured.SetNestedField(stripped, value, path...); err != nil {
			return nil, err
		}
	}
	object.Object = stripped
	return object, nil
}
