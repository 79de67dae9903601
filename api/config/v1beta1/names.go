// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Annotations of the kinds in this group.
const (
	// InjectCAAnnotation on an UpdateInformer names a Secret, as namespace/name, whose key ca.crt contains
	// the CA certificates that verify the certificate of the informer. The Secret must be in the namespace
	// of the Service.
	InjectCAAnnotation = "runtime.cluster.x-k8s.io/inject-ca-from-secret"
	// RefreshAnnotation on an UpdatePlan requests another analysis. The value is a token chosen by the
	// user, such as a date; a new token is a new request.
	RefreshAnnotation = "upgrade.managed.openshift.io/refresh"
	// RefreshInformersAnnotation on an UpdatePlan with a RefreshAnnotation also asks informers to check for
	// updates of their own software.
	RefreshInformersAnnotation = "upgrade.managed.openshift.io/refresh-informers"
	// KeepAnnotation on an UpdatePlan, with any value, prevents it from being pruned.
	KeepAnnotation = "upgrade.managed.openshift.io/keep"
	// ReviewedAnnotation on an UpdatePlan records the UUIDs and levels of the insights that a user has
	// reviewed.
	ReviewedAnnotation = "upgrade.managed.openshift.io/reviewed-insights"
	// BypassAnnotation on OpenShift's ClusterVersion records that a user started an update without
	// pre-checks. Its value is the target release.
	BypassAnnotation = "upgrade.managed.openshift.io/pre-checks-bypassed"
	// AcknowledgedAnnotation on the UpdateStatus is a comma-separated list of the insights in
	// status.afterUpdate that a user has acknowledged. An entry is a UUID, "=", and the completion time of the
	// update, because the same insight may need attention again after the next update.
	AcknowledgedAnnotation = "upgrade.managed.openshift.io/acknowledged"
)

// Names of informers that are part of the Update Status Controller. UpdateInformers cannot use them.
const (
	// StatusControllerInformer reports on the informers themselves.
	StatusControllerInformer = "update-status-controller"
	// BuiltInPrefix is the prefix of the names of all built-in informers.
	BuiltInPrefix = "builtin-"
)

// Condition types of an UpdateInformer.
const (
	// ConditionOnline reports whether the informer works. The informer writes it with a heartbeat by
	// server-side apply.
	ConditionOnline = "Online"
	// ConditionCABundleResolved reports whether the CA certificates of the informer are known.
	ConditionCABundleResolved = "CABundleResolved"
	// ConditionReachable reports whether the informer responds.
	ConditionReachable = "Reachable"
	// ConditionDiscovered reports whether the informer has listed its handlers.
	ConditionDiscovered = "Discovered"
)

// Condition types of a section of an UpdateStatus or an UpdatePlan.
const (
	// ConditionUpdatePending reports whether a part of the section does not match its release yet.
	ConditionUpdatePending = "UpdatePending"
	// ConditionUpdateActive reports whether an update is pending and not paused.
	ConditionUpdateActive = "UpdateActive"
)

// Condition types of an UpdatePlan.
const (
	// ConditionComplete reports whether all informers have responded.
	ConditionComplete = "Complete"
	// ConditionStartable reports whether the update may be started: the analysis is complete, recent, and
	// made for the current release, and all risks are accepted.
	ConditionStartable = "Startable"
	// ConditionAcceptanceStale reports whether accepted risks have changed since they were accepted.
	ConditionAcceptanceStale = "AcceptanceStale"
)

// Reasons of the conditions of an UpdateInformer.
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

// Reasons of the conditions UpdatePending and UpdateActive.
const (
	ReasonClusterVersionNotReconciled = "ClusterVersionNotReconciled"
	ReasonClusterVersionReconciled    = "ClusterVersionReconciled"
	ReasonWorkerDoesNotMatchRelease   = "WorkerDoesNotMatchRelease"
	ReasonWorkersMatchRelease         = "WorkersMatchRelease"
	ReasonCannotObserve               = "CannotObserve"
	ReasonControlPlaneUpdateActive    = "ControlPlaneUpdateActive"
	ReasonWorkersUpdateActive         = "WorkersUpdateActive"
	ReasonWorkersReconciled           = "WorkersReconciled"
	// ReasonPaused indicates a pause without an end time.
	ReasonPaused = "Paused"
	// ReasonAwaitingWindow indicates a pause that ends at a known time.
	ReasonAwaitingWindow = "AwaitingWindow"
)

// Reasons of the conditions of an UpdatePlan.
const (
	ReasonWaitingForInformers = "WaitingForInformers"
	ReasonUnacceptedInsights  = "UnacceptedInsights"
	ReasonAnalysisTooOld      = "AnalysisTooOld"
	ReasonInformerMissing     = "InformerMissing"
	ReasonNotAnUpdate         = "NotAnUpdate"
	ReasonFromReleaseChanged  = "FromReleaseChanged"
	ReasonInsightsChanged     = "InsightsChanged"
)

// Reasons of the insights that the Update Status Controller reports about informers. The uid of such an
// insight has the form reason/informer.
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
