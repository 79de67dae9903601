// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/json"
	"fmt"

	"github.com/cloudevents/sdk-go/v2/event"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
)

// Kinds that the API server does not serve. A scenario can read but not change their objects.
const (
	KindAlert      = "Alert"
	KindSilence    = "Silence"
	KindCloudEvent = "CloudEvent"

	// ExternalAPIVersion is the API version of these kinds.
	ExternalAPIVersion = "devcluster/v1"
)

// MaintenanceAPIVersion is the API version of scheduled maintenance.
const MaintenanceAPIVersion = "managedupgrade.appuio.io/v1beta1"

// maintenanceKinds returns the kinds of scheduled maintenance. Two of them share their names with
// other kinds, so an Object must have an API version to select them.
func maintenanceKinds() []string {
	return []string{"ClusterVersion", "UpgradeConfig", "UpgradeJob", "UpgradeJobHook", "UpgradeSuspensionWindow"}
}

// setMaintenanceDefaults defaults the API version and the namespace of a scheduled maintenance
// object.
func setMaintenanceDefaults(content map[string]any) {
	if content["apiVersion"] == nil {
		content["apiVersion"] = MaintenanceAPIVersion
	}
	if metadata, ok := content["metadata"].(map[string]any); ok && metadata["namespace"] == nil {
		metadata["namespace"] = openshiftsim.OperatorNamespace
	}
}

// kinds maps kinds to their API versions. Objects of these kinds may omit the version.
var kinds = map[string]string{
	"ClusterOperator":     "config.openshift.io/v1",
	"ClusterVersion":      "config.openshift.io/v1",
	"ConfigMap":           "v1",
	"Deployment":          "apps/v1",
	"Event":               "v1",
	"Job":                 "batch/v1",
	"Lease":               "coordination.k8s.io/v1",
	"Machine":             "machine.openshift.io/v1beta1",
	"MachineConfigPool":   "machineconfiguration.openshift.io/v1",
	"MachineSet":          "machine.openshift.io/v1beta1",
	"Node":                "v1",
	"Pod":                 "v1",
	"PodDisruptionBudget": "policy/v1",
	"ResourceQuota":       "v1",
	"UpgradeConfig":       "upgrade.managed.openshift.io/v1alpha1",

	"UpgradeJob":              MaintenanceAPIVersion,
	"UpgradeJobHook":          MaintenanceAPIVersion,
	"UpgradeSuspensionWindow": MaintenanceAPIVersion,

	KindAlert:      ExternalAPIVersion,
	KindSilence:    ExternalAPIVersion,
	KindCloudEvent: ExternalAPIVersion,
}

// GVK returns the group, version, and kind. The version may be omitted for known kinds.
func (o Object) GVK() schema.GroupVersionKind {
	version := o.APIVersion
	if version == "" {
		version = kinds[o.Kind]
	}
	return schema.FromAPIVersionAndKind(version, o.Kind)
}

// IsExternal reports whether the API server does not serve the kind.
func (o Object) IsExternal() bool { return o.GVK().GroupVersion().String() == ExternalAPIVersion }

// NewExternal returns an object of a kind that the API server does not serve. The ID distinguishes
// objects with the same name.
func NewExternal(kind string, content map[string]any, name, id string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(schema.FromAPIVersionAndKind(ExternalAPIVersion, kind))
	object.SetName(name)
	object.SetUID(types.UID(id))
	return object
}

// CloudEventObjects returns received CloudEvents as objects.
func CloudEventObjects(received []event.Event) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for i := range received {
		e, content := &received[i], map[string]any{}
		text, err := json.Marshal(e)
		if err == nil {
			err = json.Unmarshal(text, &content)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the events of the receiver: %w", err)
		}
		objects = append(objects, NewExternal(KindCloudEvent, content, e.ID(), e.Source()+" "+e.ID()))
	}
	return objects, nil
}

// requiresMonitoring reports whether the kind exists only on clusters with monitoring.
func (o Object) requiresMonitoring() bool { return o.Kind == KindAlert || o.Kind == KindSilence }

// Matches reports whether an object of the kind is selected.
func (o Object) Matches(object *unstructured.Unstructured) bool {
	return (o.Namespace == "" || o.Namespace == object.GetNamespace()) && (o.Name == "" || o.Name == object.GetName())
}

// isOurs reports whether the kind belongs to the operator. Its objects are in the operator's
// namespace.
func (o Object) isOurs() bool {
	group := o.GVK().Group
	return group == "upgrade.managed.openshift.io" || group+"/v1beta1" == MaintenanceAPIVersion
}

// reference returns an object to write to. For the operator's kinds, the namespace defaults to the
// operator's.
func (o Object) reference() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(o.GVK())
	object.SetNamespace(o.Namespace)
	if o.Namespace == "" && o.isOurs() {
		object.SetNamespace(openshiftsim.OperatorNamespace)
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
