// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package window provides the steps that decide whether an upgrade may start in its maintenance
// window: its time has come, and nothing suspends it.
//
// It reads the objects of managedupgrade.appuio.io and writes nothing. It does not know what the
// upgrade does or when its window ends.
package window
