// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crds embeds the CustomResourceDefinitions of OpenShift and its components that a dev
// cluster serves, as their owners publish them. Those of this project are not among them.
package crds

import "embed"

// Files are the CustomResourceDefinitions, one in each file.
//
//go:embed *.yaml
var Files embed.FS
