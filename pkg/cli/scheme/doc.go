// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scheme contains the kinds that the commands read and write.
package scheme
