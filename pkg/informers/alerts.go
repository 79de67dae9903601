// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import "github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"

var alertsInformer = Informer{
	Name: NameAlerts,
	Doc:  "Alerts began to fire during the update.",
	Find: findAlerts,
}

func findAlerts(Facts) []checks.Finding { return nil }
