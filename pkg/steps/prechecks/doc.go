// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prechecks has the steps about the UpdatePlan of a version: they request its analysis, and wait
// until an administrator has accepted each risk that it reports.
//
// The Update Status Controller analyzes plans, and package updateplan has the rules about them. The steps
// accept nothing.
package prechecks
