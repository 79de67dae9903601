// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package capacity provides the steps that add nodes for the duration of an upgrade, one for each
// MachineSet of workers, and that remove them again.
//
// MachineSets are not scaled. An extra MachineSet is created for each, with one replica, a label of
// this operator, and a name derived from the attempt and the MachineSet. The desired and the actual
// MachineSets are compared: missing ones are created, and surplus ones are deleted. So the next
// call repairs whatever a crash left unfinished, and the label is enough to remove all of them.
//
// The package only knows the object that requests the upgrade. Missing nodes never hold up an
// upgrade.
package capacity
