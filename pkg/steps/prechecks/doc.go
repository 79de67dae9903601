// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prechecks provides the steps for the UpdatePlan of a version. They request its analysis,
// and wait until an administrator has accepted each reported risk.
//
// The Update Status Controller analyzes plans, and package updateplan defines their rules. The
// steps never accept anything.
package prechecks
