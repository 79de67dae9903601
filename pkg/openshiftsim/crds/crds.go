// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crds embeds the published CustomResourceDefinitions of OpenShift and its components that
// a dev cluster serves. It does not include the CustomResourceDefinitions of this project.
package crds

import (
	"embed"
	"io/fs"
)

// Files are the CustomResourceDefinitions, one per file.
//
//go:embed *.yaml
var Files embed.FS

//go:embed olm/*.yaml
var olm embed.FS

// OLM returns the CustomResourceDefinitions of Operator Lifecycle Manager, one per file. By
// default, a dev cluster does not serve them.
func OLM() (fs.FS, error) { return fs.Sub(olm, "olm") }
