// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"reflect"
	"slices"
	"sync"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
)

// maxSpecs is how many specs are shared. An upgrade has one for each kind and form of its works.
const maxSpecs = 64

// specs are the specs of the works that are cached, the newest last.
var specs struct {
	sync.Mutex
	known []workv1.ManifestWorkSpec
}

// TrimWork drops the managed fields of a ManifestWork, and lets works share what is equal in them: the
// spec, which an upgrade writes for thousands of clusters, and the words of their agents. It is the
// transform of the cache for all controllers of the hub.
func TrimWork(object any) (any, error) {
	work, is := object.(*workv1.ManifestWork)
	if !is {
		return object, nil // the last known state of a deleted object
	}
	work.ManagedFields = nil
	work.Spec = shared(work.Spec)
	shareConditions(work.Status.Conditions)
	for i := range work.Status.ResourceStatus.Manifests {
		manifest := &work.Status.ResourceStatus.Manifests[i]
		shareConditions(manifest.Conditions)
		meta := &manifest.ResourceMeta
		share(&meta.Group, &meta.Version, &meta.Kind, &meta.Resource, &meta.Namespace, &meta.Name)
		values := slices.Clip(manifest.StatusFeedbacks.Values)
		for j := range values {
			share(&values[j].Name)
			if text := values[j].Value.String; text != nil {
				share(text)
			}
		}
		manifest.StatusFeedbacks.Values = values
	}
	return work, nil
}

// shared returns an equal spec that other works have, too.
func shared(spec workv1.ManifestWorkSpec) workv1.ManifestWorkSpec {
	specs.Lock()
	defer specs.Unlock()
	for i := range specs.known {
		if reflect.DeepEqual(specs.known[i], spec) {
			return specs.known[i]
		}
	}
	if len(specs.known) == maxSpecs {
		specs.known = slices.Delete(specs.known, 0, 1)
	}
	specs.known = append(specs.known, spec)
	return spec
}

func shareConditions(conditions []metav1.Condition) {
	for i := range conditions {
		c := &conditions[i]
		share((*string)(&c.Status), &c.Type, &c.Reason, &c.Message)
	}
}

// share replaces strings by equal ones that others have, too.
func share(strings ...*string) {
	for _, s := range strings {
		*s = unique.Make(*s).Value()
	}
}
