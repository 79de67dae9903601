// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operator is the list of the operator's controllers, and what they share: the configuration,
// the notifications, and the upgraders. Command returns an operator with upgraders of one's own.
//
// It decides nothing about upgrades, and it never exits the process.
package operator
