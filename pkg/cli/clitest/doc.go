// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clitest has clusters, objects, and runs for the tests of the commands.
package clitest
