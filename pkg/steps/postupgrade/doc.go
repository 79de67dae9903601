// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package postupgrade has the step that runs procedures once a cluster has been upgraded. Each
// procedure is a file of its own and one line in the registry. Which procedures run, and in which
// order, is configured.
//
// It knows only the name of the upgrade, which marks what was done for it. A procedure never fails
// an upgrade: the cluster is upgraded already.
package postupgrade
