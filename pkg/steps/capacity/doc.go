// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package capacity has the steps that add nodes for the duration of an upgrade, one for each MachineSet
// of workers, and that remove them again.
//
// No MachineSet is scaled. An extra one is created for each, with one replica, a label of ours, and a
// name that derives from the attempt and from the MachineSet. The desired and the actual MachineSets
// are compared; missing ones are created, surplus ones deleted. So the next call repairs whatever a
// crash has left half done, and the label suffices to remove all of them.
//
// It knows only the object that requests the upgrade. Missing nodes never hold up an upgrade.
package capacity
