// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli puts kubectl-update together, the plugin of oc and kubectl for cluster updates.
//
// Each package below it has the commands about one thing: status, plan, upgrade, fleet, migrate, and informer. They
// are based on session, which has what all commands share; session is based on screen and dump. No command package
// knows the root, and status is the only one that others call.
//
// To add a command, write a type in one of the packages with the methods of session.Command and a function that
// returns its *cobra.Command, and add that to commands in program.go.
package cli
