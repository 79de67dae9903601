// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scheme has the kinds of objects that the commands read and write.
package scheme
