// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package capacity has the steps that add nodes for the time of an upgrade, one
// to each MachineSet of workers, and remove them again.
//
// No MachineSet is scaled. Beside each an extra one is made, with one replica,
// marked as ours, of a name that follows from the attempt and from the one it
// stands beside. What there is gets compared with what there should be; what
// lacks is made, what is too many is deleted. So whatever a crash has left half
// done is put right by the next look, and to remove all of it takes no more than
// the mark.
//
// It knows nothing of the upgrade but whose it is, and that missing nodes are
// never a reason to hold one up.
package capacity
