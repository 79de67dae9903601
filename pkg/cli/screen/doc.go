// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package screen lays out text for a terminal: labels, tables, and lines that fit its width. It knows no command
// and no object.
package screen
