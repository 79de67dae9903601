// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migrate has the commands that convert the configuration and the objects of other operators.
package migrate
