// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import "github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"

var controlPlaneInformer = Informer{
	Name: NameControlPlane,
	Doc:  "The control plane is being updated, or cannot be.",
	Find: findControlPlane,
}

func findControlPlane(Facts) []checks.Finding { return nil }
