// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission has the gates that decide whether an upgrade can begin, before its first step: whether there is
// anything to do, and whether the requested version is an upgrade.
//
// Its gates read the cache and change nothing. They do not know when the upgrade may begin; the lifecycle does.
package admission
