// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli assembles kubectl-update, the plugin of oc and kubectl for cluster updates.
//
// Each package below it contains the commands for one topic: status, plan, upgrade, fleet, migrate, and informer. They
// build on session, which contains everything that commands share. session builds on screen and dump. Command packages
// do not know the root, and status is the only one that other command packages call.
//
// To add a command, write a type that implements session.Command and a function that returns its *cobra.Command in one
// of the packages. Then add the function to commands in program.go.
package cli
