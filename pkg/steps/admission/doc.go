// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission has the gates before the first step of an upgrade. They decide whether there is anything to
// do, and whether the requested version is an upgrade.
//
// The gates read the cache and change nothing. The lifecycle knows the time of the upgrade; they do not.
package admission
