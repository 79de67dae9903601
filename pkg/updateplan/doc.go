// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package updateplan has the rules about UpdatePlans: the name of a plan, which insights a person has
// accepted, whether the update may be started, which releases the admission policy lets through, and
// which plans are pruned.
//
// It is pure: the controller, the CLI, and the runbooks apply the same rules to objects that they have
// read. It knows no client and writes nothing.
package updateplan
