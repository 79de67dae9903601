// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/stored"
)

// UpdateInformer registers a service that contributes insights about updates. The Update Status Controller
// queries it during an update and for each UpdatePlan.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=updateinformers,scope=Cluster,shortName=ui,categories=update
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Enabled",type=boolean,JSONPath=`.spec.enabled`
// +kubebuilder:printcolumn:name="Online",type=string,JSONPath=`.status.conditions[?(@.type=="Online")].status`
// +kubebuilder:printcolumn:name="Reachable",type=string,JSONPath=`.status.conditions[?(@.type=="Reachable")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Reachable")].reason`
// +kubebuilder:printcolumn:name="Answered",type=date,JSONPath=`.status.lastContactTime`
// +kubebuilder:printcolumn:name="Namespace",type=string,priority=1,JSONPath=`.spec.clientConfig.service.namespace`
// +kubebuilder:printcolumn:name="Service",type=string,priority=1,JSONPath=`.spec.clientConfig.service.name`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Reachable")].message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name != 'update-status-controller' && !self.metadata.name.startsWith('builtin-')",message="metadata.name must not be update-status-controller or start with builtin-: the Update Status Controller reports under these names"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name may have at most 63 characters"
type UpdateInformer struct {
	metav1.TypeMeta `json:",inline"`

	stored.Leftovers `json:"-"`

	// metadata is the standard object's metadata.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the service.
	//
	// +required
	Spec UpdateInformerSpec `json:"spec,omitzero"`

	// status reports what the informer and the Update Status Controller observed.
	//
	// +optional
	Status UpdateInformerStatus `json:"status,omitzero"` //nolint:kubeapilinter // It may be emptied: it is observed again.
}

// IsEnabled reports whether the informer is queried.
func (i *UpdateInformer) IsEnabled() bool { return i.Spec.Enabled == nil || *i.Spec.Enabled }

// UpdateInformerSpec defines a service that contributes insights.
type UpdateInformerSpec struct {
	// enabled controls whether the informer is queried. It defaults to true.
	//
	// +optional
	// +default=true
	Enabled *bool `json:"enabled,omitempty"` //nolint:kubeapilinter // The seed prints a boolean.

	// clientConfig defines how to connect to the informer.
	//
	// +required
	ClientConfig InformerClientConfig `json:"clientConfig,omitzero"`
}

// InformerClientConfig defines how to connect to an informer.
type InformerClientConfig struct {
	// service is the Service of the informer. It must have a cluster IP.
	//
	// +required
	Service InformerService `json:"service,omitzero"`

	// caBundle contains the PEM-encoded CA certificates that verify the certificate of the informer. If it
	// is not set, they are read from the Secret named by the annotation
	// runtime.cluster.x-k8s.io/inject-ca-from-secret or, without the annotation, from OpenShift's service
	// CA.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=87384
	// +kubebuilder:validation:XValidation:rule="string(self).contains('-----BEGIN CERTIFICATE-----')",message="must contain certificates in PEM, encoded in base64, for example the output of base64 -w0 ca.crt"
	CABundle []byte `json:"caBundle,omitempty"` //nolint:kubeapilinter // The format byte rejects an empty value.
}

// InformerService identifies a port of a Service.
type InformerService struct {
	// namespace is the namespace of the Service.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a namespace: lower-case letters, digits, and hyphens, for example openshift-machine-api"
	Namespace string `json:"namespace,omitempty"`

	// name is the name of the Service.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a Service, without its namespace: lower-case letters, digits, and hyphens, for example update-informer"
	Name string `json:"name,omitempty"`

	// port is the port of the Service. It defaults to 443.
	//
	// +optional
	// +default=443
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// UpdateInformerStatus reports what the informer and the Update Status Controller observed.
//
// +kubebuilder:validation:MinProperties=0
type UpdateInformerStatus struct {
	// conditions contains Online, written by the informer, and CABundleResolved, Reachable, Discovered,
	// Ready, and Reconciling, written by the Update Status Controller.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=16
	Conditions []InformerCondition `json:"conditions,omitempty"` //nolint:kubeapilinter // Conditions of informers have a heartbeat.

	// handlers lists the requests that the informer implements.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=16
	Handlers []InformerHandler `json:"handlers,omitempty"`

	// lastContactTime is when the informer had last responded at the time of the last status change. A
	// response alone does not update it.
	//
	// +optional
	LastContactTime *metav1.Time `json:"lastContactTime,omitempty"`
}

// InformerHandler is a request that an informer implements.
type InformerHandler struct {
	// name is status, for updates in progress, or plan, for planned updates.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// methods lists the HTTP methods that the handler accepts: GET, POST, or both.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=16
	Methods []string `json:"methods,omitempty"`

	// timeoutSeconds is the maximum response time in seconds. It is absent if the informer does not define
	// it.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
}

// InformerCondition is a condition of an informer.
type InformerCondition struct {
	// type is the type of the condition.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	Type string `json:"type,omitempty"`

	// status is True, False, or Unknown.
	//
	// +required
	// +kubebuilder:validation:Enum="True";"False";Unknown
	Status metav1.ConditionStatus `json:"status,omitempty"`

	// reason is a machine-readable CamelCase reason.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// message is a human-readable explanation of the condition.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`

	// lastHeartbeatTime is when the condition was last confirmed by its writer. The condition Online is
	// stale if it was confirmed more than five minutes ago.
	//
	// +optional
	LastHeartbeatTime *metav1.Time `json:"lastHeartbeatTime,omitempty"`

	// lastTransitionTime is when the status last changed.
	//
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty,omitzero"`
}

// HeartbeatTimeout is the maximum distance between now and the last heartbeat of the condition Online.
const HeartbeatTimeout = 5 * time.Minute

// ConfirmedTime returns when the condition was last confirmed by its writer. Without heartbeats, it returns
// when the status last changed.
func (c *InformerCondition) ConfirmedTime() time.Time {
	if c.LastHeartbeatTime != nil {
		return c.LastHeartbeatTime.Time
	}
	return c.LastTransitionTime.Time
}

// IsStale reports whether the condition Online has not been confirmed recently. A heartbeat far in the
// future does not count.
func (c *InformerCondition) IsStale(now time.Time) bool {
	return now.Sub(c.ConfirmedTime()).Abs() > HeartbeatTimeout
}

// UpdateInformerList is a list of UpdateInformers.
//
// +kubebuilder:object:root=true
type UpdateInformerList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the UpdateInformers.
	Items []UpdateInformer `json:"items"`
}
