// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package screen lays out text for a terminal: labels, tables, and wrapped lines. It does not know commands
// or objects.
package screen
