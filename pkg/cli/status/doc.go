// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status has the command status. It prints what the Update Status Controller has published, or computes the
// same status from live reads or from a dump. Verdicts come from packages updatestatus and assessment.
package status
