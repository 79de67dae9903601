// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
)

// The paths of the protocol. They are case-sensitive.
const (
	// PathPrefix starts each path.
	PathPrefix = "/hooks.config.openshift.io/v1alpha/"
	// DiscoveryPath returns a DiscoveryResponse (GET).
	DiscoveryPath = PathPrefix + "discovery"
	// UpdateInsightsPath answers an UpdateInsightsRequest with an UpdateInsightsResponse (GET with
	// a body, or POST).
	UpdateInsightsPath = PathPrefix + "updateInsights"
	// UpdatePlanInsightsPath answers an UpdatePlanInsightsRequest with an UpdatePlanInsightsResponse
	// (POST).
	UpdatePlanInsightsPath = PathPrefix + "updatePlanInsights"
)

// HooksAPIVersion is the level of the protocol that a DiscoveryResponse lists.
const HooksAPIVersion = "hooks.config.openshift.io/v1alpha"

// The apiVersion and the kinds of requests and responses.
const (
	APIVersion = "config.openshift.io/v1beta1"

	DiscoveryResponseKind          = "DiscoveryResponse"
	UpdateInsightsRequestKind      = "UpdateInsightsRequest"
	UpdateInsightsResponseKind     = "UpdateInsightsResponse"
	UpdatePlanInsightsRequestKind  = "UpdatePlanInsightsRequest"
	UpdatePlanInsightsResponseKind = "UpdatePlanInsightsResponse"
)

// The names of the handlers in a DiscoveryResponse.
const (
	// HandlerStatus answers UpdateInsightsRequests.
	HandlerStatus = "status"
	// HandlerPlan answers UpdatePlanInsightsRequests.
	HandlerPlan = "plan"
)

// AudiencePrefix starts the audience of the token with which the Update Status Controller
// authenticates. The namespace, a dot, and the name of the Service of the informer follow.
const AudiencePrefix = "update-informer."

// Audience returns the audience of the token for the informer behind a Service.
func Audience(namespace, service string) string {
	return AudiencePrefix + namespace + "." + service
}

// DiscoveryResponse lists what an informer has implemented.
type DiscoveryResponse struct {
	metav1.TypeMeta `json:",inline"`

	// Spec describes what the informer has implemented.
	Spec DiscoverySpec `json:"spec"`
}

// DiscoverySpec describes what an informer has implemented.
type DiscoverySpec struct {
	// APIVersions are the levels of the protocol that the informer supports, for example
	// hooks.config.openshift.io/v1alpha.
	APIVersions []string `json:"apiVersions"`

	// Handlers are the requests that the informer answers.
	Handlers []Handler `json:"handlers"`
}

// Handler is a request that an informer answers.
type Handler struct {
	// Name is status, for updates in progress, or plan, for updates that may be started.
	Name string `json:"name"`

	// Methods are the HTTP methods that the handler accepts: GET, POST, or both. Empty means the methods of the
	// protocol.
	Methods []string `json:"methods,omitempty"`

	// TimeoutSeconds is how long an answer may take. 0 means the default of the caller.
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
}

// RequestSpec describes the cluster and the update.
type RequestSpec struct {
	// ClusterID identifies the cluster to remote systems. It authorizes nothing.
	ClusterID string `json:"clusterID,omitempty"`

	// ControlPlaneVersion is the release from which the control plane is updated.
	ControlPlaneVersion string `json:"controlPlaneVersion,omitempty"`

	// TargetControlPlaneVersion is the release to which the control plane is or would be updated.
	TargetControlPlaneVersion string `json:"targetControlPlaneVersion,omitempty"`

	// InformerUpdate suggests that the informer checks for updates of its own software.
	InformerUpdate bool `json:"informerUpdate,omitempty"`
}

// UpdateInsightsRequest requests the insights about an update in progress.
type UpdateInsightsRequest struct {
	metav1.TypeMeta `json:",inline"`

	// Spec describes the cluster and the update.
	Spec RequestSpec `json:"spec"`
}

// UpdatePlanInsightsRequest requests the insights about an update that may be started.
type UpdatePlanInsightsRequest struct {
	metav1.TypeMeta `json:",inline"`

	// Spec describes the cluster and the update.
	Spec RequestSpec `json:"spec"`
}

// Response is how an informer answers a request.
type Response string

const (
	// ResponseSuccess is an answer with all insights of the informer.
	ResponseSuccess Response = "Success"
	// ResponseFailure is an answer of an informer that cannot determine its insights. It should
	// contain an insight that explains why.
	ResponseFailure Response = "Failure"
	// ResponseWait is an answer of an informer that acquires data: the caller tries again after
	// five seconds.
	ResponseWait Response = "Wait"
)

// UpdateInsightsResponse contains the insights about an update in progress.
type UpdateInsightsResponse struct {
	metav1.TypeMeta `json:",inline"`

	// Spec contains the insights.
	Spec ResponseSpec `json:"spec"`

	// Status is how the informer answers.
	Status ResponseStatus `json:"status"`
}

// UpdatePlanInsightsResponse contains the insights about an update that may be started.
type UpdatePlanInsightsResponse struct {
	metav1.TypeMeta `json:",inline"`

	// Spec contains the insights.
	Spec ResponseSpec `json:"spec"`

	// Status is how the informer answers.
	Status ResponseStatus `json:"status"`
}

// ResponseSpec contains the insights of an informer.
type ResponseSpec struct {
	// Insights are all insights of the informer.
	Insights []Insight `json:"insights"`
}

// ResponseStatus is how an informer answers.
type ResponseStatus struct {
	// Response is Success, Failure, or Wait.
	Response Response `json:"response"`

	// Message explains a Failure or a Wait to people.
	Message string `json:"message,omitempty"`
}

// Insight is a finding that an informer reports about an update. It has the fields of an insight in an UpdateStatus
// that informers determine.
type Insight struct {
	// UID identifies the insight among the insights of the informer. It must stay the same between answers.
	UID string `json:"uid"`

	// AcquisitionTime is when the data behind the insight was acquired.
	AcquisitionTime metav1.Time `json:"acquisitionTime,omitzero"`

	// Scope names what the insight is about. It must stay the same for a UID.
	Scope updatev1beta1.InsightScope `json:"scope,omitzero"`

	// Impact is the effect on the update.
	Impact updatev1beta1.InsightImpact `json:"impact,omitzero"`

	// Remediation says how to resolve the insight.
	Remediation updatev1beta1.InsightRemediation `json:"remediation,omitzero"`
}
