// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scenarios embeds the scenario files, which the dev cluster runs as demos and the e2e
// tests run as tests.
//
// It does not interpret them.
package scenarios

import "embed"

// Files are the scenario files, one scenario in each.
//
//go:embed *.yaml
var Files embed.FS
