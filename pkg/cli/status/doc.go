// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status contains the status command. It prints the status published by the Update Status Controller,
// or computes the same status from live reads or a dump. Packages updatestatus and assessment provide the
// verdicts.
package status
