// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package updateplan implements the rules for UpdatePlans: how plans are named, which insights count as accepted,
// whether the update may be started, which releases the admission policy allows, and which plans are pruned.
//
// The package is pure: the controller, the CLI, and the runbooks apply the same rules to objects that they have read.
// It does not use clients or write anything.
package updateplan
