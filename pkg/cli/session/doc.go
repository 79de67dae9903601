// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package session contains everything that the commands of kubectl-update share: the streams and clock of a run, the
// connection to a cluster or dump, the Command interface, output formats, confirmation of changes, and exit codes.
//
// It does not know any commands. A command is a type that implements Command and has its flags as fields, plus a
// function that returns its *cobra.Command.
package session
