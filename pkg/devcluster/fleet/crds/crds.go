// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crds embeds the CustomResourceDefinitions of Open Cluster Management, as its owners publish
// them.
package crds

import "embed"

// Files are the CustomResourceDefinitions, one in each file: for a hub in the folder hub, for a managed cluster in the
// folder spoke.
//
//go:embed hub/*.yaml spoke/*.yaml
var Files embed.FS
