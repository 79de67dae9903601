// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package history

// The types of the conditions that sum up an upgrade in the status of its object.
const (
	// ConditionAccepted reports whether the upgrade may run: its version and type are valid and no
	// other upgrade is in progress.
	ConditionAccepted = "Accepted"
	// ConditionProgressing reports whether a step is running. Its reason names the current step, the
	// step that failed, or why no step runs.
	ConditionProgressing = "Progressing"
	// ConditionSucceeded reports how the upgrade ended. It is absent before.
	ConditionSucceeded = "Succeeded"
	// ConditionSlow reports whether the current step takes longer than it should.
	ConditionSlow = "Slow"
	// ConditionReady reports whether the object is as its spec requests. It is absent before the time of an
	// upgrade.
	ConditionReady = "Ready"
	// ConditionReconciling reports that the object becomes ready without a person. It is absent otherwise.
	ConditionReconciling = "Reconciling"
	// ConditionStalled reports that the object does not continue without a person. It is absent otherwise.
	ConditionStalled = "Stalled"
	// ConditionPaused reports whether the upgrade waits for a time or for a user and has nothing else left to do. It is
	// absent from kinds whose upgrades cannot pause by themselves.
	ConditionPaused = "Paused"
	// ConditionPreCheckPassed reports, some time before the upgrade starts, whether anything would
	// block it. It is absent at other times.
	ConditionPreCheckPassed = "PreCheckPassed"
	// ConditionDegraded reports that the operator uses another configuration than the current one,
	// which is invalid. It is absent otherwise.
	ConditionDegraded = "Degraded"
)
