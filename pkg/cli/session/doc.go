// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package session has what all commands of kubectl-update share: the streams and the clock of a run, the connection
// to a cluster or a dump, the form of a command, output formats, consent to changes, and exit codes.
//
// It knows no command. A command is a type with the methods of Command, whose fields are its flags, and a function
// that returns the *cobra.Command for it.
package session
