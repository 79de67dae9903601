// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operator wires the operator's controllers with their shared dependencies: the
// configuration, the notifications, and the upgraders. Command returns an operator with custom
// upgraders.
//
// It makes no decisions about upgrades, and it never exits the process.
//
// Stability: Command and Upgraders are stable within a major version. Run, Main, and NewControllers
// are for this project's programs and tests and may change in any version.
package operator
