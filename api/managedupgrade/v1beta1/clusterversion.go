// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/managed-upgrade/managed-upgrade-operator/api/stored"
)

// ClusterVersionName is the required name of the ClusterVersion.
const ClusterVersionName = "version"

// ClusterVersion defines fields of OpenShift's ClusterVersion (clusterversions.config.openshift.io), and
// the operator keeps it in sync with them. A cluster has at most one, named version.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterversions,shortName=mcv,categories=maintenance
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Channel",type=string,JSONPath=`.status.current.spec.channel`
// +kubebuilder:printcolumn:name="Overlay",type=string,JSONPath=`.status.overlayApplied`
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=="Synced")].status`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Synced")].message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'version'",message="metadata.name must be version: a cluster has one ClusterVersion"
type ClusterVersion struct {
	metav1.TypeMeta `json:",inline"`

	stored.Leftovers `json:"-"`

	// metadata is the standard object's metadata. The name must be version.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec contains the fields to set, and changes to them at given times.
	//
	// +required
	Spec ClusterVersionSpec `json:"spec,omitzero"`

	// status holds what the operator observed and applied.
	//
	// +optional
	Status ClusterVersionStatus `json:"status,omitzero"` //nolint:kubeapilinter // It may be emptied: the operator observes it again.
}

// ClusterVersionSpec contains fields of OpenShift's ClusterVersion.
type ClusterVersionSpec struct {
	// template contains the fields to set, before overlays are applied.
	//
	// +required
	Template ClusterVersionTemplate `json:"template,omitzero"`

	// overlays change the template from given times on. Only the overlay with the latest time in the past
	// applies: it is merged into the template and replaces earlier overlays. If two overlays have the same
	// time, the one listed last applies.
	//
	// +optional
	// +listType=map
	// +listMapKey=from
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=32
	Overlays []ClusterVersionOverlay `json:"overlays,omitempty"`
}

// ClusterVersionTemplate is a template for OpenShift's ClusterVersion.
type ClusterVersionTemplate struct {
	// spec contains fields of the spec of OpenShift's ClusterVersion, for example channel, clusterID, and
	// upstream. Fields of any OpenShift release are accepted. desiredUpdate is ignored, because UpgradeJobs
	// set it. clusterID is applied only if it equals the clusterID of the cluster.
	//
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec runtime.RawExtension `json:"spec,omitzero"` //nolint:kubeapilinter // omitempty has no effect on a struct.
}

// ClusterVersionOverlay changes the template from a given time on.
type ClusterVersionOverlay struct {
	// from is the time (RFC 3339) when the overlay takes effect, for example 2027-03-02T21:00:00Z.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	From Timestamp `json:"from,omitempty"`

	// overlay contains fields that replace fields of the template.
	//
	// +required
	Overlay ClusterVersionTemplate `json:"overlay,omitzero"`
}

// ClusterVersionStatus holds what the operator observed and applied.
//
// +kubebuilder:validation:MinProperties=0
type ClusterVersionStatus struct {
	// conditions are Accepted (whether the spec is valid), Synced (whether OpenShift's ClusterVersion has
	// the fields defined here), Ready, Reconciling, and Stalled. Other conditions are removed.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec reflected in this status.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// current contains the fields in effect: the template merged with the current overlay.
	//
	// +optional
	Current ClusterVersionTemplate `json:"current,omitzero"`

	// overlayApplied is the start time (from) of the overlay in effect. It is absent if no overlay is in
	// effect.
	//
	// +optional
	OverlayApplied *metav1.Time `json:"overlayApplied,omitempty"`

	// notRemoved lists fields that were removed from the spec but are still set in OpenShift's
	// ClusterVersion, because another client also owns them.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	NotRemoved []string `json:"notRemoved,omitempty"`

	// overlays previews the overlays that are not in effect yet, earliest first.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=32
	Overlays []ClusterVersionOverlayPreview `json:"overlays,omitempty"`
}

// ClusterVersionOverlayPreview shows the effect of a future overlay.
type ClusterVersionOverlayPreview struct {
	// from is when the overlay takes effect.
	//
	// +required
	From metav1.Time `json:"from,omitzero"` //nolint:kubeapilinter // omitempty has no effect on a struct.

	// preview contains the fields that will be in effect from then on.
	//
	// +optional
	Preview ClusterVersionTemplate `json:"preview,omitzero"`
}

// ClusterVersionList is a list of ClusterVersions.
//
// +kubebuilder:object:root=true
type ClusterVersionList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the ClusterVersions.
	Items []ClusterVersion `json:"items"`
}
