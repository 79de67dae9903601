// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/managed-upgrade/managed-upgrade-operator/api/stored"
)

// ClusterVersionName is the name of the only ClusterVersion.
const ClusterVersionName = "version"

// ClusterVersion defines the parameters of the ClusterVersion of OpenShift
// (clusterversions.config.openshift.io), which the operator keeps in sync with it. There is at most
// one in a cluster, named version.
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

	// spec contains the parameters, and changes of them at given times.
	//
	// +required
	Spec ClusterVersionSpec `json:"spec,omitzero"`

	// status holds what the operator observed and applied.
	//
	// +optional
	Status ClusterVersionStatus `json:"status,omitzero"` //nolint:kubeapilinter // It may be emptied: the operator observes it again.
}

// ClusterVersionSpec contains the parameters of the ClusterVersion of OpenShift.
type ClusterVersionSpec struct {
	// template contains the parameters that apply if no overlay is due.
	//
	// +required
	Template ClusterVersionTemplate `json:"template,omitzero"`

	// overlays change the template from given times on. The overlay with the latest time that has
	// passed applies; it is merged into the template, and replaces the overlays before it. Of two
	// with the same time, the one further down applies.
	//
	// +optional
	// +listType=map
	// +listMapKey=from
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=32
	Overlays []ClusterVersionOverlay `json:"overlays,omitempty"`
}

// ClusterVersionTemplate is a template of the ClusterVersion of OpenShift.
type ClusterVersionTemplate struct {
	// spec contains fields of the spec of the ClusterVersion of OpenShift, of whatever release, for example channel,
	// clusterID, and upstream. The field desiredUpdate is ignored: UpgradeJobs set it. A clusterID that differs from
	// the cluster's is not applied.
	//
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec runtime.RawExtension `json:"spec,omitzero"` //nolint:kubeapilinter // omitempty has no effect on a struct.
}

// ClusterVersionOverlay is a change of the template from a given time on.
type ClusterVersionOverlay struct {
	// from is the time from which the overlay applies (RFC 3339), for example 2027-03-02T21:00:00Z.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	From Timestamp `json:"from,omitempty"`

	// overlay contains the fields that replace fields of the template.
	//
	// +required
	Overlay ClusterVersionTemplate `json:"overlay,omitzero"`
}

// ClusterVersionStatus holds what the operator observed and applied.
//
// +kubebuilder:validation:MinProperties=0
type ClusterVersionStatus struct {
	// conditions are Accepted, which reports whether the spec is valid, Synced, which reports
	// whether the ClusterVersion of OpenShift has these parameters, Ready, Reconciling, and Stalled.
	// Other conditions are removed.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec that this status reflects.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// current contains the parameters in effect: the template with the overlay that applies.
	//
	// +optional
	Current ClusterVersionTemplate `json:"current,omitzero"`

	// overlayApplied is the time (from) of the overlay in effect. It is absent if none is.
	//
	// +optional
	OverlayApplied *metav1.Time `json:"overlayApplied,omitempty"`

	// notRemoved lists the fields that the parameters no longer contain and that the ClusterVersion of OpenShift still
	// has, because another client also owns them.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	NotRemoved []string `json:"notRemoved,omitempty"`

	// overlays previews the overlays that are not due yet, the next one first.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=32
	Overlays []ClusterVersionOverlayPreview `json:"overlays,omitempty"`
}

// ClusterVersionOverlayPreview is the effect of an overlay that is not due yet.
type ClusterVersionOverlayPreview struct {
	// from is the time from which the overlay applies.
	//
	// +required
	From metav1.Time `json:"from,omitzero"` //nolint:kubeapilinter // omitempty has no effect on a struct.

	// preview contains the parameters that are in effect then.
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
