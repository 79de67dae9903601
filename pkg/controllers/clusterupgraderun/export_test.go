// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun

import "github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"

// ChangeTable has the reconciler run the table of another release of the hub.
func (r *Reconciler) ChangeTable(change func(engine.Runbook) engine.Runbook) { r.changeTable = change }
