// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scenarios embeds the scenario files: the stories that the dev cluster plays for people and that the e2e tests
// are made of.
//
// It knows nothing of what is in them.
package scenarios

import "embed"

// Files are the scenarios, one in each file.
//
//go:embed *.yaml
var Files embed.FS
