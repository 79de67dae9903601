// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/stored"
)

// UnmarshalJSON decodes what decodes: one value that was stored by another schema must not fail the list
// that contains the object.
func (in *ClusterUpgradeRun) UnmarshalJSON(data []byte) (err error) {
	type plain ClusterUpgradeRun
	in.Leftovers, err = stored.Decode(data, (*plain)(in))
	return err
}

// Record returns the record of the last attempt, or the zero Record.
func (in *ClusterUpgradeRun) Record() history.Record {
	if len(in.Status.History) == 0 {
		return history.Record{}
	}
	return in.Status.History[0]
}
