// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gate has the step that waits for the cluster to be healthy. What
// healthy means is a list of small checks, each in a file of its own.
//
// It knows no upgrade: not its target, nor whether it has begun. It is passed
// only by what it has found out: a check that cannot find out is an error.
package health
