// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
)

// Paths of the protocol. They are case-sensitive.
const (
	// PathPrefix is the prefix of all paths.
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

// HooksAPIVersion is the protocol version listed in a DiscoveryResponse.
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

// Names of the handlers in a DiscoveryResponse.
const (
	// HandlerStatus answers UpdateInsightsRequests.
	HandlerStatus = "status"
	// HandlerPlan answers UpdatePlanInsightsRequests.
	HandlerPlan = "plan"
)

// AudiencePrefix is the prefix of the audience of the token that authenticates the Update Status
// Controller. It is followed by the namespace, a dot, and the name of the informer's Service.
const AudiencePrefix = "update-informer."

// Audience returns the token audience for the informer behind a Service.
func Audience(namespace, service string) string {
	return AudiencePrefix + namespace + "." + service
}

// DiscoveryResponse lists what an informer implements.
type DiscoveryResponse struct {
	metav1.TypeMeta `json:",inline"`

	// Spec describes what the informer implements.
	Spec DiscoverySpec `json:"spec"`
}

// DiscoverySpec describes what an informer implements.
type DiscoverySpec struct {
	// APIVersions lists the protocol versions that the informer supports, for example
	// hooks.config.openshift.io/v1alpha.
	APIVersions []string `json:"apiVersions"`

	// Handlers lists the requests that the informer answers.
	Handlers []Handler `json:"handlers"`
}

// Handler is a request that an informer answers.
type Handler struct {
	// Name is status, for updates in progress, or plan, for planned updates.
	Name string `json:"name"`

	// Methods lists the HTTP methods that the handler accepts: GET, POST, or both. If it is empty, the
	// handler accepts the methods defined by the protocol.
	Methods []string `json:"methods,omitempty"`

	// TimeoutSeconds is the maximum response time in seconds. 0 selects the default of the caller.
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
}

// RequestSpec describes the cluster and the update.
type RequestSpec struct {
	// ClusterID identifies the cluster to remote systems. It does not authorize anything.
	ClusterID string `json:"clusterID,omitempty"`

	// ControlPlaneVersion is the current release of the control plane.
	ControlPlaneVersion string `json:"controlPlaneVersion,omitempty"`

	// TargetControlPlaneVersion is the target release of the control plane, for an update in progress or a
	// planned update.
	TargetControlPlaneVersion string `json:"targetControlPlaneVersion,omitempty"`

	// InformerUpdate asks the informer to check for updates of its own software.
	InformerUpdate bool `json:"informerUpdate,omitempty"`
}

// UpdateInsightsRequest requests the insights about an update in progress.
type UpdateInsightsRequest struct {
	metav1.TypeMeta `json:",inline"`

	// Spec describes the cluster and the update.
	Spec RequestSpec `json:"spec"`
}

// UpdatePlanInsightsRequest requests the insights about a planned update.
type UpdatePlanInsightsRequest struct {
	metav1.TypeMeta `json:",inline"`

	// Spec describes the cluster and the update.
	Spec RequestSpec `json:"spec"`
}

// Response is the type of a response.
type Response string

const (
	// ResponseSuccess is a response that contains all insights of the informer.
	ResponseSuccess Response = "Success"
	// ResponseFailure is the response of an informer that cannot determine its insights. It should contain
	// an insight that explains why.
	ResponseFailure Response = "Failure"
	// ResponseWait is the response of an informer that is still collecting data. The caller tries again
	// after five seconds.
	ResponseWait Response = "Wait"
)

// UpdateInsightsResponse contains the insights about an update in progress.
type UpdateInsightsResponse struct {
	metav1.TypeMeta `json:",inline"`

	// Spec contains the insights.
	Spec ResponseSpec `json:"spec"`

	// Status contains the type of the response.
	Status ResponseStatus `json:"status"`
}

// UpdatePlanInsightsResponse contains the insights about a planned update.
type UpdatePlanInsightsResponse struct {
	metav1.TypeMeta `json:",inline"`

	// Spec contains the insights.
	Spec ResponseSpec `json:"spec"`

	// Status contains the type of the response.
	Status ResponseStatus `json:"status"`
}

// ResponseSpec contains the insights of an informer.
type ResponseSpec struct {
	// Insights are all insights of the informer.
	Insights []Insight `json:"insights"`
}

// ResponseStatus contains the type of a response.
type ResponseStatus struct {
	// Response is Success, Failure, or Wait.
	Response Response `json:"response"`

	// Message is a human-readable explanation of a Failure or a Wait.
	Message string `json:"message,omitempty"`
}

// Insight is a finding about an update reported by an informer. Its fields are the part of an UpdateStatus
// insight that the informer determines.
type Insight struct {
	// UID identifies the insight within the informer. It must stay the same across responses.
	UID string `json:"uid"`

	// AcquisitionTime is when the data behind the insight was collected.
	AcquisitionTime metav1.Time `json:"acquisitionTime,omitzero"`

	// Scope identifies what the insight is about. It must not change for a given UID.
	Scope updatev1beta1.InsightScope `json:"scope,omitzero"`

	// Impact describes the effect on the update.
	Impact updatev1beta1.InsightImpact `json:"impact,omitzero"`

	// Remediation describes how to resolve the insight.
	Remediation updatev1beta1.InsightRemediation `json:"remediation,omitzero"`
}
