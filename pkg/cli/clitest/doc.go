// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clitest provides clusters, objects, and helpers for running commands in tests.
package clitest
