// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pause decides what pauses an update of the control plane or of a pool, and until when. It is
// the only answer to that question: conditions and the assessment use it.
//
// The package is pure: it reads no clock and no object. It does not know whether an update is pending.
// An UpgradeSuspensionWindow is no pause: it keeps an upgrade from starting, and until an upgrade starts
// no update is pending.
package pause
