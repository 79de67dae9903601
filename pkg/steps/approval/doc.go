// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package approval has the step that waits until a client other than the operator approves an upgrade: a
// condition of the UpgradeConfig, which the approver writes with a field manager of its own.
//
// It approves nothing, and it does not know who may approve; permissions decide that.
package approval
