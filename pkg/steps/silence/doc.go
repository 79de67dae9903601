// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package silence has the steps that silence alerts while a part of the cluster is upgraded, and the
// keep-alive that extends the silences.
//
// A window is the desired state: these alerts, for this attempt. It is compared with the silences in
// Alertmanager that the operator has created: missing ones are created, those about to lapse are
// extended, surplus ones are ended. So the next call repairs whatever a crash has left half done.
// Silences are leases: they end even if the operator is gone.
//
// It knows only the object that requests the upgrade. A missing silence never holds up an upgrade.
package silence
