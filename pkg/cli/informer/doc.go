// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package informer contains the commands for update informers: listing them, and checking one from the
// outside.
package informer
