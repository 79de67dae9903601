// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Backup is the state of the API server at one point in time.
type Backup struct {
	objects map[schema.GroupVersionResource]map[types.NamespacedName]client.Object
	version uint64
}

// Backup returns the current state of the API server.
func (w *World) Backup() *Backup {
	b := &Backup{objects: map[schema.GroupVersionResource]map[types.NamespacedName]client.Object{}, version: w.store.version}
	for gvr, objects := range w.store.objects {
		b.objects[gvr] = maps.Clone(objects)
	}
	return b
}

// Restore resets the API server to an earlier state, like a restore of etcd: both objects and
// resource versions go back. Caches observe the difference. The actor of these changes is "etcd".
func (w *World) Restore(b *Backup) {
	_ = w.as("etcd", w.now, func() error {
		for _, gvr := range w.store.kinds() {
			w.store.restore(gvr, b.objects[gvr])
		}
		w.store.version = b.version
		return nil
	})
}

// restore replaces all objects of a kind.
func (s *store) restore(gvr schema.GroupVersionResource, to map[types.NamespacedName]client.Object) {
	from := s.objects[gvr]
	s.objects[gvr] = maps.Clone(to)
	if s.objects[gvr] == nil {
		s.objects[gvr] = map[types.NamespacedName]client.Object{}
	}
	all := maps.Clone(from)
	maps.Copy(all, to)
	for _, key := range slices.SortedFunc(maps.Keys(all), compareKeys) {
		if from[key] == to[key] {
			continue
		}
		change := Change{Old: from[key], New: to[key]}
		gvk, err := apiutil.GVKForObject(change.Object(), s.scheme)
		if err != nil {
			s.world.Fail(err)
			return
		}
		change.Kind = gvk
		s.record(gvr, change)
	}
}
