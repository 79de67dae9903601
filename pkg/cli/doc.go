// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli implements kubectl-update, the plugin of oc and kubectl for cluster updates.
//
// It connects to a cluster or to a dump of one, prints what the Update Status Controller has
// published, and computes the same status from live reads if the controller is missing. All verdicts
// come from packages updatestatus and assessment: package cli decides about presentation, exit codes,
// and which source to read.
//
// To add a command, write a method of Program in a file of its own that returns a *cobra.Command, and
// add it to Program.commands. The command calls Program.connect for its Cluster and returns an error
// to print, or an exit of its own by exitWith.
package cli
