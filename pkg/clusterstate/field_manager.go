// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FieldManager is the operator's field manager for fields that other clients also change: spec.paused of
// pools and the spec of the ClusterVersion. The operator uses it to recognize its own changes.
const FieldManager = "managed-upgrade-operator"

// OwnedByOthers reports whether another field manager owns a field of the spec. It returns false if no
// managers are recorded, as in the cache, because the owner is unknown then. The cache keeps only the
// managers of spec.desiredUpdate. See IsOwnRequest.
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
