// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout decides which clusters of a fleet may begin their upgrade now.
//
// Decide is a pure function of the plan, the members, and the time. The hub calls it before it
// admits clusters, and the CLI calls it to print a plan, so both give the same answer. The package
// reads no object, writes nothing, and remembers nothing between two decisions.
package rollout
