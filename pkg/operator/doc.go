// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operator puts the operator together: the manager with its caches,
// health and metrics, the controllers, and the upgraders that it is given. An
// operator with upgraders of its own is made by calling Run with them.
//
// It decides nothing about upgrades, and it neither reads the environment nor exits.
package operator
