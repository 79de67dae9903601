// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
)

// kinds are those that go without saying their API version.
var kinds = map[string]string{
	"ClusterOperator":     "config.openshift.io/v1",
	"ClusterVersion":      "config.openshift.io/v1",
	"ConfigMap":           "v1",
	"Deployment":          "apps/v1",
	"Event":               "v1",
	"Lease":               "coordination.k8s.io/v1",
	"Machine":             "machine.openshift.io/v1beta1",
	"MachineConfigPool":   "machineconfiguration.openshift.io/v1",
	"MachineSet":          "machine.openshift.io/v1beta1",
	"Node":                "v1",
	"Pod":                 "v1",
	"PodDisruptionBudget": "policy/v1",
	"UpgradeConfig":       "upgrade.managed.openshift.io/v1alpha1",

	kindAlert:      externalAPIVersion,
	kindSilence:    externalAPIVersion,
	kindCloudEvent: externalAPIVersion,
}

func (o Object) gvk() schema.GroupVersionKind {
	version := o.APIVersion
	if version == "" {
		version = kinds[o.Kind]
	}
	return schema.FromAPIVersionAndKind(version, o.Kind)
}

// isExternal says whether those are none of the API server's.
func (o Object) isExternal() bool { return o.gvk().GroupVersion().String() == externalAPIVersion }

// requiresMonitoring says whether those are what only a cluster with monitoring has.
func (o Object) requiresMonitoring() bool { return o.Kind == kindAlert || o.Kind == kindSilence }

// matches says whether an object of the right kind is one of those.
func (o Object) matches(object *unstructured.Unstructured) bool {
	return (o.Namespace == "" || o.Namespace == object.GetNamespace()) && (o.Name == "" || o.Name == object.GetName())
}

// reference returns an object to write to. UpgradeConfigs are in the operator's namespace unless something else is said.
func (o Object) reference() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(o.gvk())
	object.SetNamespace(o.Namespace)
	if o.Namespace == "" && o.Kind == "UpgradeConfig" {
		object.SetNamespace(devcluster.OperatorNamespace)
	}
	object.SetName(o.Name)
	return object
}

func (o Object) String() string {
	text := o.Kind
	if o.Namespace != "" {
		text += " " + o.Namespace + "/" + o.Name
	} else if o.Name != "" {
		text += " " + o.Name
	}
	return text
}
