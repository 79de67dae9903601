// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FieldManager is the field manager of the operator's requests that change fields which other clients also change:
// spec.paused of pools, and the spec of the ClusterVersion. The operator recognizes its own changes by it.
const FieldManager = "managed-upgrade-operator"

// OwnedByOthers reports whether another field manager than the operator owns a field of the spec. If
// none is recorded, as in the cache, that is unknown, and it returns false. The cache has only the
// managers of spec.desiredUpdate, see IsOwnRequest.
func OwnedByOthers(managers []metav1.ManagedFieldsEntry, field string) bool {
	for _, manager := range managers {
		if manager.Manager == FieldManager || manager.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if err := json.Unmarshal(manager.FieldsV1.GetRawBytes(), &fields); err != nil {
			return true
		}
		if _, owns := fields.Spec["f:"+field]; owns {
			return true
		}
	}
	return false
}
