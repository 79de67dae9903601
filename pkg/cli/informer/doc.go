// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package informer has the commands about update informers: the list of them, and the check of one from outside.
package informer
