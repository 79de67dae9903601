// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"github.com/managed-upgrade/managed-upgrade-operator/api/stored"
)

// UnmarshalJSON leaves out values that do not match the schema: one value stored by another schema must not
// fail the whole list that contains the object.
func (in *UpgradeJob) UnmarshalJSON(data []byte) (err error) {
	type plain UpgradeJob
	in.Leftovers, err = stored.Decode(data, (*plain)(in))
	return err
}

// UnmarshalJSON leaves out values that do not match the schema: one value stored by another schema must not
// fail the whole list that contains the object.
func (in *UpgradeConfig) UnmarshalJSON(data []byte) (err error) {
	type plain UpgradeConfig
	in.Leftovers, err = stored.Decode(data, (*plain)(in))
	return err
}

// UnmarshalJSON leaves out values that do not match the schema: one value stored by another schema must not
// fail the whole list that contains the object.
func (in *UpgradeJobHook) UnmarshalJSON(data []byte) (err error) {
	type plain UpgradeJobHook
	in.Leftovers, err = stored.Decode(data, (*plain)(in))
	return err
}

// UnmarshalJSON leaves out values that do not match the schema: one value stored by another schema must not
// fail the whole list that contains the object.
func (in *UpgradeSuspensionWindow) UnmarshalJSON(data []byte) (err error) {
	type plain UpgradeSuspensionWindow
	in.Leftovers, err = stored.Decode(data, (*plain)(in))
	return err
}

// UnmarshalJSON leaves out values that do not match the schema: one value stored by another schema must not
// fail the whole list that contains the object.
func (in *ClusterVersion) UnmarshalJSON(data []byte) (err error) {
	type plain ClusterVersion
	in.Leftovers, err = stored.Decode(data, (*plain)(in))
	return err
}
