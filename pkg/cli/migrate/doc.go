// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migrate contains the commands that convert configurations and objects of other operators.
package migrate
