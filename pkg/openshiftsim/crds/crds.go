// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crds embeds the CustomResourceDefinitions of OpenShift and its components that a dev
// cluster serves, as their owners publish them. The CustomResourceDefinitions of this project are
// not included.
package crds

import (
	"embed"
	"io/fs"
)

// Files are the CustomResourceDefinitions, one in each file.
//
//go:embed *.yaml
var Files embed.FS

//go:embed olm/*.yaml
var olm embed.FS

// OLM returns the CustomResourceDefinitions of the Operator Lifecycle Manager, one in each file. A dev
// cluster does not serve them by default.
func OLM() (fs.FS, error) { return fs.Sub(olm, "olm") }
