// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package approval provides the step that waits until a client other than the operator approves an
// upgrade. The approval is a condition of the UpgradeConfig that the approver writes with its own
// field manager.
//
// The package never approves anything, and does not know who may approve. Permissions decide that.
package approval
