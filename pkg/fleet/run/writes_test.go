// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// works is a client of a cluster with one work, or with none. It counts its writes, which change nothing.
type works struct {
	client.Client
	work   *workv1.ManifestWork
	writes int
}

func (w *works) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if w.work == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "manifestworks"}, key.Name)
	}
	w.work.DeepCopyInto(obj.(*workv1.ManifestWork))
	return nil
}

func (w *works) Create(context.Context, client.Object, ...client.CreateOption) error {
	w.writes++
	return nil
}

func (w *works) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	w.writes++
	return nil
}

// newCluster returns a cluster whose run requests a release, and the work that observes it.
func newCluster(t *testing.T, c client.Client, clock *clocktesting.FakePassiveClock) (*Cluster, *workv1.ManifestWork) {
	t.Helper()
	run := &fleetv1alpha1.ClusterUpgradeRun{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}}
	run.Spec.ManagedClustersUpgrade.UID, run.Spec.Attempt = "u", 1
	run.Spec.ClusterVersion = &fleetv1beta1.ClusterVersionSpec{Version: "4.20.6"}
	work, err := delivery.PreflightWork(run)
	if err != nil {
		t.Fatal(err)
	}
	return &Cluster{Client: c, Run: run, Writes: &Writes{Clock: clock}}, work
}

// Another process changes the work back at once, and the two would take turns without a pause.
func TestDeliver_makes_the_same_change_at_most_once_a_second(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	cluster := &works{}
	c, desired := newCluster(t, cluster, clock)
	desired.Name = delivery.UpgradeName("a") // a preflight is replaced
	cluster.work = desired.DeepCopy()
	cluster.work.ResourceVersion, cluster.work.Annotations[delivery.Annotation] = "1", "1/Other"
	for _, tc := range []struct {
		at     time.Duration
		writes int
	}{{0, 1}, {retryAfter - 1, 1}, {retryAfter, 2}} {
		clock.SetTime(time.Unix(0, 0).Add(tc.at))
		if _, _, err := c.deliver(t.Context(), desired.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		if cluster.writes != tc.writes {
			t.Errorf("%d writes after %s, want %d", cluster.writes, tc.at, tc.writes)
		}
	}
}

// A work that another client has removed says nothing about the agent.
func TestProveAgent_waits_for_its_own_removal(t *testing.T) {
	t.Parallel()
	until := time.Unix(3600, 0)
	for name, removed := range map[string]bool{"by another client": false, "by this process": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := &works{}
			c, desired := newCluster(t, cluster, clocktesting.NewFakePassiveClock(until))
			if removed {
				c.Writes.note(client.ObjectKeyFromObject(desired), nil, text.FormatTime(until))
			}
			proven, err := c.proveAgent(t.Context(), until, true)
			if err != nil || proven != removed || (cluster.writes == 0) != removed {
				t.Errorf("proven: %t after %d writes, %v", proven, cluster.writes, err)
			}
		})
	}
}

// A work may be as large as etcd allows, and many clusters start within two minutes: only the works that the cache may
// lack are kept.
func TestWrites_keep_no_work_that_the_cache_has(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	writes := &Writes{Clock: clock}
	first, second := client.ObjectKey{Name: "first"}, client.ObjectKey{Name: "second"}
	writes.note(first, &workv1.ManifestWork{}, "1/Apply")
	clock.SetTime(clock.Now().Add(cacheTimeout + time.Second))
	writes.note(second, &workv1.ManifestWork{}, "1/Apply")
	if kept := writes.last[first]; kept.work != nil || kept.delivery != "1/Apply" {
		t.Errorf("the first write is %+v, want its delivery alone", kept)
	}
	if writes.last[second].work == nil {
		t.Error("the second work is not kept, although the cache may lack it")
	}
	clock.SetTime(clock.Now().Add(removalTimeout))
	writes.note(second, &workv1.ManifestWork{}, "2/Apply")
	if len(writes.last) != 1 {
		t.Errorf("%d writes are kept, want the last one", len(writes.last))
	}
}
