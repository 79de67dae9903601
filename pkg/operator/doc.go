// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operator puts the operator together: the manager with its caches,
// health and metrics, the controllers, and the upgraders that it is given. An
// operator with upgraders of its own is made by calling Command with them.
//
// It decides nothing about upgrades, and it never exits the process.
package operator
