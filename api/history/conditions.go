// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package history

// Types of the conditions that summarize an upgrade in the status of its object.
const (
	// ConditionAccepted reports whether the upgrade may run: its version and type are valid, and no other
	// upgrade is in progress.
	ConditionAccepted = "Accepted"
	// ConditionProgressing reports whether a step is running. Its reason names the current step, the
	// step that failed, or why no step runs.
	ConditionProgressing = "Progressing"
	// ConditionSucceeded reports how the upgrade ended. It is absent until then.
	ConditionSucceeded = "Succeeded"
	// ConditionSlow reports whether the current step is taking longer than it should.
	ConditionSlow = "Slow"
	// ConditionReady reports whether the object is in the state requested by its spec. It is absent before
	// the upgrade is due.
	ConditionReady = "Ready"
	// ConditionReconciling reports that the object will become ready without user action. It is absent
	// otherwise.
	ConditionReconciling = "Reconciling"
	// ConditionStalled reports that the object needs user action to continue. It is absent otherwise.
	ConditionStalled = "Stalled"
	// ConditionPaused reports whether the upgrade has nothing left to do but wait for a time or for a user.
	// It is absent from kinds whose upgrades cannot pause on their own.
	ConditionPaused = "Paused"
	// ConditionPreCheckPassed reports, shortly before the upgrade starts, whether anything would block it.
	// It is absent at other times.
	ConditionPreCheckPassed = "PreCheckPassed"
	// ConditionDegraded reports that the current configuration of the operator is invalid, and the operator
	// still uses an earlier one. It is absent otherwise.
	ConditionDegraded = "Degraded"
)
