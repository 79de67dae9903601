// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/objects"
)

// copyInto copies a stored object into a target in any form. It omits the field managers unless the
// kind tracks them.
func copyInto(stored, target client.Object, gvk schema.GroupVersionKind) error {
	if err := objects.Copy(stored, target, gvk); err != nil {
		return err
	}
	if !tracksFieldManagers(gvk) {
		target.SetManagedFields(nil)
	}
	return nil
}
