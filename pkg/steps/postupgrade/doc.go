// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package procedures has the step that does what is left to do once a cluster
// has been upgraded. Each procedure is a file of its own and one line in the
// table; which of them are carried out, and in which order, is configured.
//
// It knows nothing of the upgrade but by which name to mark what was done for
// it. A procedure never fails an upgrade: the cluster is upgraded already.
package postupgrade
