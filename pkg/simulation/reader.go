// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/objects"
)

// copyInto fills an object of any form from a stored one, without the field managers of a kind that does
// not track them.
func copyInto(stored, target client.Object, gvk schema.GroupVersionKind) error {
	if err := objects.Copy(stored, target, gvk); err != nil {
		return err
	}
	if !tracksFieldManagers(gvk) {
		target.SetManagedFields(nil)
	}
	return nil
}
