// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pause decides whether and until when an update of the control plane or a pool is paused.
// It is the only source of this information, for conditions and for the assessment.
//
// The package is pure: it reads no clock and no objects. It does not know whether an update is
// pending. An UpgradeSuspensionWindow is not a pause: it prevents an upgrade from starting, and no
// update is pending before an upgrade starts.
package pause
