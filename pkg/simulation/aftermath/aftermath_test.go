// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package aftermath_test

import (
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/aftermath"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/hooks"
)

const (
	namespace = "operator"
	uid       = "5f0c"
)

// clean is a finished UpgradeJob that has left nothing behind.
type clean struct {
	job      *maintenancev1beta1.UpgradeJob
	lease    *coordinationv1.Lease
	pool     *mcfgv1.MachineConfigPool
	hook     *batchv1.Job
	series   prometheus.Labels // labels of the phase
	paused   prometheus.Labels // labels of the pool that an upgrade has paused; nil if there is no series
	requests int
}

func newClean() *clean {
	then := metav1.NewTime(simulation.Start.Add(-time.Hour))
	return &clean{
		job: &maintenancev1beta1.UpgradeJob{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tonight", UID: uid},
			Status: maintenancev1beta1.UpgradeJobStatus{History: []history.Record{{
				Version: "4.20.6", Attempt: 1, Phase: history.PhaseFailed, Reason: "TimedOut", StartTime: &then, CommenceTime: &then, CompleteTime: &then,
				Conditions: []history.StepCondition{{Type: "LockAcquired", Status: metav1.ConditionTrue, StartTime: &then, CompleteTime: &then}},
			}}},
		},
		lease: &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: lock.Name}},
		pool:  &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "worker"}},
		hook: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "announce", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: maintenancev1beta1.GroupVersion.String(), Kind: "UpgradeJob", Name: "tonight", UID: uid, Controller: new(true),
		}}}},
		series: prometheus.Labels{
			"kind": "UpgradeJob." + maintenancev1beta1.GroupVersion.Group, "namespace": namespace, "name": "tonight", "version": "4.20.6", "phase": "Failed",
		},
		requests: 1,
	}
}

// hold gives the lock to an object.
func (c *clean) hold(kind, name, of string) {
	c.lease.Spec.HolderIdentity = new(strings.Join([]string{maintenancev1beta1.GroupVersion.Group, kind, namespace, name, of}, "/"))
}

// mark marks the pool as paused by an upgrade.
func (c *clean) mark(mark clusterstate.PoolMark) {
	c.pool.Spec.Paused = true
	c.pool.Annotations = map[string]string{clusterstate.AnnotationPausedBy: mark.String()}
}

// check describes what is left behind.
func (c *clean) check(t *testing.T) string {
	t.Helper()
	world := simulation.New(simulation.WorldOptions{})
	for _, object := range []client.Object{c.job, c.lease, c.pool, c.hook} {
		if err := world.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "managed_upgrade_phase", Help: "1.", ConstLabels: c.series})
	registry := prometheus.NewRegistry()
	registry.MustRegister(gauge)
	if c.paused != nil {
		registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "managed_upgrade_pool_paused_timestamp_seconds", Help: "1.", ConstLabels: c.paused}))
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var requests aftermath.Requests
	for range c.requests {
		requests.Request("4.20.6")
	}
	scene := aftermath.Scene{Objects: world.Client("test"), Namespace: namespace, Now: simulation.Start, Series: families, Requests: &requests}
	if err := scene.Check(t.Context()); err != nil {
		return err.Error()
	}
	return ""
}

func TestScene_Check(t *testing.T) {
	t.Parallel()
	delayed := clusterstate.PoolMark{OwnerUID: uid, Attempt: 1, ReleaseAfter: simulation.Start.Add(-2 * time.Hour), ReleaseBefore: simulation.Start.Add(time.Hour)}
	of := func(mark clusterstate.PoolMark, job string) clusterstate.PoolMark { mark.OwnerUID = job; return mark }
	kept := clusterstate.PoolMark{OwnerUID: uid, Attempt: 1, KeptSince: simulation.Start}
	inProgress := func(c *clean) {
		c.job.Status.History[0].CompleteTime = nil
		c.job.Finalizers = []string{maintenancev1beta1.Finalizer}
		c.hold("UpgradeJob", "tonight", uid)
	}
	for name, tc := range map[string]struct {
		leave func(*clean)
		want  string // prefix of the finding
	}{
		"nothing": {leave: func(*clean) {}},
		"an upgrade in progress has all of it": {leave: func(c *clean) {
			inProgress(c)
			c.mark(delayed)
			c.hook.Finalizers = []string{hooks.Finalizer}
		}},
		"an upgrade that waits for the lock": {leave: func(c *clean) {
			inProgress(c)
			c.job.Status.History[0].Conditions[0].Status = metav1.ConditionFalse
			c.lease.Spec.HolderIdentity = nil
		}},
		"lock":                         {func(c *clean) { c.hold("UpgradeJob", "tonight", uid) }, "UpgradeJob operator/tonight (5f0c) has the lock, want no upgrade"},
		"lock of a deleted upgrade":    {func(c *clean) { c.hold("UpgradeJob", "yesterday", "0") }, "UpgradeJob operator/yesterday (0) has the lock, want no upgrade"},
		"lock that was taken away":     {func(c *clean) { inProgress(c); c.lease.Spec.HolderIdentity = nil }, "no upgrade has the lock, want UpgradeJob operator/tonight (5f0c)"},
		"finalizer":                    {func(c *clean) { c.job.Finalizers = []string{maintenancev1beta1.Finalizer} }, "UpgradeJob tonight: that it has a finalizer is true"},
		"finalizer that is missing":    {func(c *clean) { inProgress(c); c.job.Finalizers = nil }, "UpgradeJob tonight: that it has a finalizer is false"},
		"pool":                         {func(c *clean) { c.mark(delayed) }, "pool worker is left with the mark 5f0c/1/"},
		"pool with an invalid mark":    {func(c *clean) { c.mark(delayed); c.pool.Annotations[clusterstate.AnnotationPausedBy] = "5f0c" }, "pool worker is left with the mark 5f0c,"},
		"pool of a deleted upgrade":    {func(c *clean) { c.mark(of(delayed, "0")) }, ""},
		"pool past its release window": {func(c *clean) { m := of(delayed, "0"); m.ReleaseBefore = simulation.Start; c.mark(m) }, "pool worker is left with the mark 0/1/"},
		"pool paused since it failed":  {func(c *clean) { c.mark(kept) }, ""},
		"pool kept without a failure": {func(c *clean) {
			c.mark(kept)
			c.job.Status.History[0].Phase = history.PhaseUpgraded
			c.series["phase"] = "Upgraded"
		}, "pool worker is left with the mark 5f0c/1/never/"},
		"pool that could not be freed": {func(c *clean) { c.mark(delayed); c.job.Status.History[0].Reason = "UnpausingPoolsExpired" }, ""},
		"pool whose hook has aborted":  {func(c *clean) { c.mark(delayed); c.job.Status.History[0].Reason = "HookFailed" }, ""},
		"pool of a hook before the end": {func(c *clean) {
			c.mark(delayed)
			c.job.Status.History[0].Reason = "HookFailed"
			c.job.Status.History[0].CommenceTime = nil
		}, "pool worker is left"},
		"Job of a hook": {func(c *clean) { c.hook.Finalizers = []string{hooks.Finalizer} }, "hook Job announce is left with its finalizer"},
		"Job of another upgrade's hook": {func(c *clean) {
			inProgress(c)
			c.hook.Finalizers = []string{hooks.Finalizer}
			c.hook.OwnerReferences[0].UID = "0"
		}, "hook Job announce is left with its finalizer"},
		"series of a deleted upgrade":  {func(c *clean) { c.series["name"] = "yesterday" }, "managed_upgrade_phasemap["},
		"series of an earlier phase":   {func(c *clean) { c.series["phase"] = "Upgrading" }, "managed_upgrade_phasemap["},
		"series of a deleted schedule": {func(c *clean) { c.series["kind"] = "UpgradeConfig." + maintenancev1beta1.GroupVersion.Group }, "managed_upgrade_phasemap["},
		"series of a paused pool": {leave: func(c *clean) {
			c.mark(of(delayed, "0"))
			c.paused = prometheus.Labels{"pool": "worker", "reason": "Delayed"}
		}},
		"series of a pool that is not paused": {
			func(c *clean) { c.paused = prometheus.Labels{"pool": "worker", "reason": "Delayed"} }, "managed_upgrade_pool_paused_timestamp_secondsmap[",
		},
		"series of a deleted pool": {
			func(c *clean) { c.paused = prometheus.Labels{"pool": "infra", "reason": "Delayed"} }, "managed_upgrade_pool_paused_timestamp_secondsmap[",
		},
		"requests": {func(c *clean) { c.requests = 2 }, "desiredUpdate was set to 4.20.6 2 times in 1 attempts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClean()
			tc.leave(c)
			if got := c.check(t); !strings.HasPrefix(got, tc.want) || tc.want == "" && got != "" {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestRequests_Observe(t *testing.T) {
	t.Parallel()
	version := func(desired ...string) *configv1.ClusterVersion {
		v := &configv1.ClusterVersion{}
		if len(desired) > 0 {
			v.Spec.DesiredUpdate = &configv1.Update{Version: desired[0]}
		}
		return v
	}
	config := &upgradev1alpha1.UpgradeConfig{Status: upgradev1alpha1.UpgradeConfigStatus{History: []history.Record{{Version: "4.20.6", Attempt: 1}}}}
	for name, tc := range map[string]struct {
		observe func(*aftermath.Requests)
		want    string
	}{
		"nothing":                {observe: func(*aftermath.Requests) {}},
		"set without an upgrade": {func(r *aftermath.Requests) { r.Observe(version(), version("4.20.6"), true) }, "desiredUpdate was set to 4.20.6 1 times in 0 attempts"},
		"set by another client":  {func(r *aftermath.Requests) { r.Observe(version(), version("4.20.6"), false) }, ""},
		"installed with it":      {func(r *aftermath.Requests) { r.Observe(nil, version("4.20.6"), true) }, ""},
		"not changed":            {func(r *aftermath.Requests) { r.Observe(version("4.20.6"), version("4.20.6"), true) }, ""},
		"withdrawn": {func(r *aftermath.Requests) {
			r.Observe(version(), version("4.20.6"), true)
			r.Observe(version("4.20.6"), version(), true)
		}, ""},
		"withdrawn by another client": {func(r *aftermath.Requests) {
			r.Observe(version(), version("4.20.6"), true)
			r.Observe(version("4.20.6"), version(), false)
		}, "desiredUpdate was set to 4.20.6 1 times in 0 attempts"},
		"set for one that is deleted": {func(r *aftermath.Requests) {
			r.Observe(version(), version("4.20.6"), true)
			r.Observe(config, nil, false)
		}, ""},
		"set to another version": {func(r *aftermath.Requests) {
			r.Observe(config, nil, false)
			r.Observe(version("4.20.6"), version("4.20.7"), true)
		}, "desiredUpdate was set to 4.20.7 1 times in 0 attempts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests aftermath.Requests
			tc.observe(&requests)
			scene := aftermath.Scene{Objects: simulation.New(simulation.WorldOptions{}).Client("test"), Requests: &requests}
			got := ""
			if err := scene.Check(t.Context()); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
