// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package postupgrade provides the step that runs procedures after a cluster has been upgraded.
// Each procedure has its own file and one line in the registry. The configuration selects the
// procedures and their order.
//
// The package only knows the name of the upgrade, and uses it to mark completed work. A procedure
// never fails an upgrade, because the cluster is already upgraded.
package postupgrade
