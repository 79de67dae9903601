// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package maintenance has the steps that silence alerts while a part of the
// cluster is upgraded, and the keeper that prolongs the silences meanwhile.
//
// A window is a wish: these alerts, for this attempt. The silences of ours that
// Alertmanager has are compared with it; what lacks is made, what is about to
// lapse is prolonged, what is too many is ended. So whatever a crash has left
// half done is put right by the next look. Silences are leases: nobody has to
// live on to end them.
//
// It knows nothing of the upgrade but whose it is, and that a missing silence is
// never a reason to hold one up.
package silence
