// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import "github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"

var nodesInformer = Informer{
	Name: NameNodes,
	Doc:  "Nodes are being updated, or cannot be.",
	Find: findNodes,
}

func findNodes(Facts) []checks.Finding { return nil }
