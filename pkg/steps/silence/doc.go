// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package silence provides the steps that silence alerts while a part of the cluster is upgraded,
// and the keep-alive that extends the silences.
//
// A window is the desired state: these alerts are silenced for this attempt. It is compared with
// the operator's silences in Alertmanager. Missing silences are created, silences that would soon
// expire are extended, and surplus ones are ended, so the next call repairs whatever a crash left
// unfinished. Silences are leases: they expire even if the operator is gone.
//
// The package only knows the object that requests the upgrade. A missing silence never holds up an
// upgrade.
package silence
