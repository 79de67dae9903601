// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crds embeds the CustomResourceDefinitions of OpenShift, and of what comes with it, that a dev cluster serves, as
// their owners publish them.
//
// It knows nothing of the objects that are made of them, nor of our own CustomResourceDefinitions.
package crds

import "embed"

// Files are the CustomResourceDefinitions, one in each file.
//
//go:embed *.yaml
var Files embed.FS
