// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crds embeds the CustomResourceDefinitions published by Open Cluster Management.
package crds

import "embed"

// Files are the CustomResourceDefinitions, one per file: for a hub in the folder hub, for a managed
// cluster in the folder spoke.
//
//go:embed hub/*.yaml spoke/*.yaml
var Files embed.FS
