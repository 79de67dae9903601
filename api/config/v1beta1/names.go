// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// The annotations of the kinds of this group.
const (
	// InjectCAAnnotation on an UpdateInformer names the Secret, as namespace/name, whose key ca.crt contains the
	// authorities that sign the certificate of the informer. The Secret must be in the namespace of the Service.
	InjectCAAnnotation = "runtime.cluster.x-k8s.io/inject-ca-from-secret"
	// RefreshAnnotation on an UpdatePlan requests another analysis. The value is a token that the
	// user chooses, such as a date: another token is another request.
	RefreshAnnotation = "upgrade.managed.openshift.io/refresh"
	// RefreshInformersAnnotation on an UpdatePlan with a RefreshAnnotation also requests that
	// informers check for updates of their own software.
	RefreshInformersAnnotation = "upgrade.managed.openshift.io/refresh-informers"
	// KeepAnnotation on an UpdatePlan prevents that it is pruned, whatever its value.
	KeepAnnotation = "upgrade.managed.openshift.io/keep"
	// ReviewedAnnotation on an UpdatePlan records the insights that a user has reviewed, as their UUIDs
	// with their levels.
	ReviewedAnnotation = "upgrade.managed.openshift.io/reviewed-insights"
	// BypassAnnotation on the ClusterVersion of OpenShift records that a user started an update
	// without pre-checks. Its value names the target release.
	BypassAnnotation = "upgrade.managed.openshift.io/pre-checks-bypassed"
	// AcknowledgedAnnotation on the UpdateStatus lists the UUIDs of insights in status.afterUpdate
	// that a user acknowledged, separated by commas.
	AcknowledgedAnnotation = "upgrade.managed.openshift.io/acknowledged"
)

// The names of informers that are part of the Update Status Controller. No UpdateInformer may have
// them.
const (
	// StatusControllerInformer reports on the informers themselves.
	StatusControllerInformer = "update-status-controller"
	// BuiltInPrefix starts the names of all built-in informers.
	BuiltInPrefix = "builtin-"
)

// The types of the conditions of an UpdateInformer.
const (
	// ConditionOnline reports whether the informer works. The informer writes it, by server-side
	// apply, with a heartbeat.
	ConditionOnline = "Online"
	// ConditionCABundleResolved reports whether the authorities of the informer are known.
	ConditionCABundleResolved = "CABundleResolved"
	// ConditionReachable reports whether the informer answers.
	ConditionReachable = "Reachable"
	// ConditionDiscovered reports whether the informer has listed its handlers.
	ConditionDiscovered = "Discovered"
)

// The types of the conditions of a section of an UpdateStatus or an UpdatePlan.
const (
	// ConditionUpdatePending reports whether a part of the section does not match its release.
	ConditionUpdatePending = "UpdatePending"
	// ConditionUpdateActive reports whether an update is pending and nothing pauses it.
	ConditionUpdateActive = "UpdateActive"
)

// The types of the conditions of an UpdatePlan.
const (
	// ConditionComplete reports whether each informer has answered.
	ConditionComplete = "Complete"
	// ConditionStartable reports whether the update may be started: the analysis is complete,
	// recent, and made for the current release, and each risk is accepted.
	ConditionStartable = "Startable"
	// ConditionAcceptanceStale reports whether risks were accepted that have changed since.
	ConditionAcceptanceStale = "AcceptanceStale"
)

// The reasons of the conditions of an UpdateInformer.
const (
	ReasonAsExpected          = "AsExpected"
	ReasonInformerUpdating    = "InformerUpdating"
	ReasonDegraded            = "Degraded"
	ReasonDisabled            = "Disabled"
	ReasonSecretForbidden     = "SecretForbidden"
	ReasonNoCACertificate     = "NoCACertificate"
	ReasonServiceNotFound     = "ServiceNotFound"
	ReasonServiceNotClusterIP = "ServiceNotClusterIP"
	ReasonTLSFailed           = "TLSFailed"
	ReasonTimeout             = "Timeout"
	ReasonConnectionFailed    = "ConnectionFailed"
	ReasonRequestRejected     = "RequestRejected"
	ReasonTokenRequestFailed  = "TokenRequestFailed"
	ReasonProtocolUnsupported = "ProtocolUnsupported"
	ReasonInvalidResponse     = "InvalidResponse"
)

// The reasons of the conditions UpdatePending and UpdateActive.
const (
	ReasonClusterVersionNotReconciled = "ClusterVersionNotReconciled"
	ReasonClusterVersionReconciled    = "ClusterVersionReconciled"
	ReasonWorkerDoesNotMatchRelease   = "WorkerDoesNotMatchRelease"
	ReasonWorkersMatchRelease         = "WorkersMatchRelease"
	ReasonCannotObserve               = "CannotObserve"
	ReasonControlPlaneUpdateActive    = "ControlPlaneUpdateActive"
	ReasonWorkersUpdateActive         = "WorkersUpdateActive"
	ReasonWorkersReconciled           = "WorkersReconciled"
	// ReasonPaused is a pause without an end.
	ReasonPaused = "Paused"
	// ReasonAwaitingWindow is a pause that ends at a known time.
	ReasonAwaitingWindow = "AwaitingWindow"
)

// The reasons of the conditions of an UpdatePlan.
const (
	ReasonWaitingForInformers = "WaitingForInformers"
	ReasonUnacceptedInsights  = "UnacceptedInsights"
	ReasonAnalysisTooOld      = "AnalysisTooOld"
	ReasonInformerMissing     = "InformerMissing"
	ReasonNotAnUpdate         = "NotAnUpdate"
	ReasonFromReleaseChanged  = "FromReleaseChanged"
	ReasonInsightsChanged     = "InsightsChanged"
)

// The reasons of the insights that the Update Status Controller reports about informers. The uid of
// such an insight is its reason, a slash, and the name of the informer.
const (
	ReasonInformerDegraded    = "InformerDegraded"
	ReasonInformerUnreachable = "InformerUnreachable"
	ReasonInformerWaiting     = "InformerWaiting"
	ReasonInformerFailed      = "InformerFailed"
	ReasonInformerInvalid     = "InformerInvalid"
	ReasonInformerDisabled    = "InformerDisabled"
	ReasonScopeMutated        = "ScopeMutated"
	ReasonUnstableIdentifiers = "UnstableIdentifiers"
	ReasonTruncated           = "Truncated"
)
