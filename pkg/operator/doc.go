// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operator is the list of the operator's controllers, and what they share: the configuration,
// the notifications, and the upgraders. Command returns an operator with upgraders of one's own.
//
// It decides nothing about upgrades, and it never exits the process.
//
// Stability: Command and Upgraders stay within a major version. Run, Main, and NewControllers serve this project's programs and
// tests, and may change in every version.
package operator
