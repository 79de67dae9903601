// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

func TestStoreFindsNoObjectThatOnlyTheCacheHas(t *testing.T) {
	t.Parallel()
	obj := &corev1.ConfigMap{}
	obj.Namespace, obj.Name = "a", "b"
	s := &store[*corev1.ConfigMap]{
		client: simulation.NewFakeClient(t, obj), live: simulation.NewFakeClient(t), clock: clocktesting.NewFakePassiveClock(noon),
		newObj: func() *corev1.ConfigMap { return &corev1.ConfigMap{} },
	}
	if _, found, err := s.load(t.Context(), client.ObjectKeyFromObject(obj)); err != nil || found {
		t.Errorf("found %t, %v", found, err)
	}
}

func TestStoreNoticesARestoredBackupAfterAMinute(t *testing.T) {
	t.Parallel()
	obj := &corev1.ConfigMap{}
	obj.Namespace, obj.Name = "a", "b"
	cluster := simulation.NewFakeClient(t, obj)
	clk := clocktesting.NewFakePassiveClock(noon)
	s := &store[*corev1.ConfigMap]{client: cluster, live: cluster, clock: clk, newObj: func() *corev1.ConfigMap { return &corev1.ConfigMap{} }}
	var restored []string
	s.onRestore = func(_ context.Context, _ *corev1.ConfigMap, version string) { restored = append(restored, version) }
	key := client.ObjectKeyFromObject(obj)
	s.versions.set(key, "999999999") // written before etcd was restored from a backup
	for _, at := range []time.Duration{0, time.Second, time.Minute} {
		clk.SetTime(noon.Add(at))
		if _, _, err := s.load(t.Context(), key); !errors.Is(err, errStaleCache) {
			t.Fatalf("after %s: %v", at, err)
		}
	}
	if _, found, err := s.load(t.Context(), key); err != nil || !found {
		t.Errorf("after a minute: found %t, %v", found, err)
	}
	if len(restored) != 1 || restored[0] != "999999999" {
		t.Errorf("reported: %q", restored)
	}
	s.versions.set(key, "999999999")
	if _, _, err := s.load(t.Context(), key); !errors.Is(err, errStaleCache) {
		t.Errorf("a cache that falls behind again: %v", err)
	}
}
