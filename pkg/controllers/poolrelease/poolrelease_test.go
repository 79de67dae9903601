// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package poolrelease_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/poolrelease"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
)

const (
	namespace = "managed-upgrade-operator"
	window    = "uid/1/2026-03-01T13:00:00Z/2026-03-01T14:00:00Z" // starts after one hour
	kept      = "uid/1/never/2026-03-01T11:00:00Z"
)

// world is a scripted cluster with the controller and a paused pool named night.
type world struct {
	*simulation.Harness
	cluster *openshift.Script
	log     []string // changes of the pool
}

func newWorld(t *testing.T, mark string, outdated bool) *world {
	t.Helper()
	w := &world{Harness: simulation.NewHarness(t, simulation.WorldOptions{MaxBurst: 50})}
	w.User = w.Client("user")
	var err error
	w.cluster, err = openshift.NewScript(w.World, "4.4.5", "fast-4.4")
	w.Must(err)
	pool := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "night", Generation: 1}}
	openshift.MarkUpdated(pool, "4.4.5")
	pool.Spec.Paused = true
	if mark != "" {
		pool.Annotations = map[string]string{clusterstate.AnnotationPausedBy: mark}
	}
	if outdated {
		pool.Status.UpdatedMachineCount, pool.Status.Conditions[0].Status = 0, corev1.ConditionFalse
	}
	w.Must(w.Add(pool))
	w.Observe(w.observe)
	w.Program.Controllers, w.Program.OnCrash = w.controllers, func() { w.After(10*time.Second, w.Begin) }
	return w
}

func (w *world) controllers(env simulation.Env) ([]manager.Controller, error) {
	pools, err := metrics.NewPools(w.Registry)
	r := &poolrelease.Reconciler{
		Clock: env.Clock, WatchNamespaces: []string{namespace}, Events: &notify.Events{Client: env.Client, Clock: env.Clock}, Metrics: pools,
	}
	return []manager.Controller{r.Controller()}, err
}

func (w *world) observe(change simulation.Change) {
	pool, ok := change.Object().(*mcfgv1.MachineConfigPool)
	before, had := change.Old.(*mcfgv1.MachineConfigPool)
	if !ok || !had || pool.Name != "night" || change.New == nil {
		return
	}
	mark, marked := pool.Annotations[clusterstate.AnnotationPausedBy]
	if before.Spec.Paused == pool.Spec.Paused && before.Annotations[clusterstate.AnnotationPausedBy] == mark {
		return
	}
	w.log = append(w.log, fmt.Sprintf("%s %s: paused %t, marked %t", w.Now().Sub(simulation.Start.Truncate(time.Second)).Truncate(time.Minute), change.Actor, pool.Spec.Paused, marked))
}

// setJob stores an UpgradeJob with this record.
func (w *world) setJob(namespace string, record ...history.Record) {
	job := &maintenancev1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "job", UID: "uid"}, Status: maintenancev1beta1.UpgradeJobStatus{History: record}}
	if simulation.Find(w.Harness, client.ObjectKeyFromObject(job), &maintenancev1beta1.UpgradeJob{}) == nil {
		w.Must(w.Add(job))
		return
	}
	w.Must(w.Set(job))
}

func attempt(number int32, finished bool) history.Record {
	record := history.Record{Version: "4.4.5", Attempt: number, UpgradeAt: &metav1.Time{Time: simulation.Start}, StartTime: &metav1.Time{Time: simulation.Start}}
	if finished {
		record.CompleteTime = &metav1.Time{Time: simulation.Start}
	}
	return record
}

func (w *world) patch(patch string) {
	pool := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "night"}}
	w.Must(w.User.Patch(w.TB.Context(), pool, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// events returns the reasons of the Events about the pool.
func (w *world) events() []string {
	var reasons []string
	for _, event := range simulation.List(w.Harness, &corev1.EventList{}, client.InNamespace(metav1.NamespaceDefault)).Items {
		reasons = append(reasons, event.Type+" "+event.Reason)
	}
	slices.Sort(reasons)
	return reasons
}

// series returns the metrics of pool night, with times in hours since the start.
func (w *world) series() map[string]float64 {
	series := map[string]float64{}
	for _, s := range w.Series() {
		name, value := strings.TrimPrefix(s.Name, "pool_"), s.Value
		if reason := s.Labels["reason"]; reason != "" {
			name, value = name+" "+reason, time.Unix(int64(value), 0).Sub(simulation.Start.Truncate(time.Second)).Hours()
		}
		if slices.Contains(s.Values, "night") {
			series[name] = value
		}
	}
	return series
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	const released = "1h0m0s operator: paused false, marked false"
	for name, tc := range map[string]struct {
		mark     string
		upToDate bool
		setup    func(*world)
		down     time.Duration // before the operator starts
		log      []string
		events   []string
		series   map[string]float64 // after three hours
	}{
		"UpgradeJob is gone": {
			mark: window, log: []string{released}, events: []string{"Normal PoolReleased"}, series: map[string]float64{"updating": 1},
		},
		"UpgradeJob is gone, nothing to update": {
			mark: window, upToDate: true, log: []string{"0s operator: paused false, marked false"}, events: []string{"Normal PoolReleased"}, series: map[string]float64{"updating": 0},
		},
		"UpgradeJob has ended": {
			mark: window, setup: func(w *world) { w.setJob(namespace, attempt(1, true)) },
			log: []string{released}, events: []string{"Normal PoolReleased"}, series: map[string]float64{"updating": 1},
		},
		"UpgradeJob is in progress": {
			mark: window, setup: func(w *world) { w.setJob(namespace, attempt(1, false)) }, series: map[string]float64{"updating": 0, "paused_timestamp_seconds Delayed": 2},
		},
		"UpgradeJob is in progress, nothing to update": {
			mark: window, upToDate: true, setup: func(w *world) { w.setJob(namespace, attempt(1, false)) }, series: map[string]float64{"updating": 0, "paused_timestamp_seconds Delayed": 2},
		},
		"UpgradeJob ends in the window": {
			mark: window, setup: func(w *world) {
				w.setJob(namespace, attempt(1, false))
				w.After(90*time.Minute, func() { w.setJob(namespace, attempt(1, true)) })
			},
			log: []string{"1h30m0s operator: paused false, marked false"}, events: []string{"Normal PoolReleased"}, series: map[string]float64{"updating": 1},
		},
		"UpgradeJob is deleted in the window": {
			mark: window, setup: func(w *world) {
				w.setJob(namespace, attempt(1, false))
				w.After(90*time.Minute, func() {
					_ = w.User.Delete(w.TB.Context(), &maintenancev1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "job"}})
				})
			},
			log: []string{"1h30m0s operator: paused false, marked false"}, events: []string{"Normal PoolReleased"}, series: map[string]float64{"updating": 1},
		},
		"UpgradeJob has lost its record": {
			mark: window, setup: func(w *world) { w.setJob(namespace) }, series: map[string]float64{"updating": 0, "paused_timestamp_seconds Delayed": 2},
		},
		"UpgradeJob is retried": {
			mark: window, setup: func(w *world) { w.setJob(namespace, attempt(2, false), attempt(1, true)) },
			log: []string{released}, events: []string{"Normal PoolReleased"}, series: map[string]float64{"updating": 1},
		},
		"UpgradeJob that the cache does not show": {
			mark: window, setup: func(w *world) {
				w.After(time.Minute, func() {
					w.Process.Lag("UpgradeJob", 24*time.Hour)
					w.setJob(namespace, attempt(1, false))
				})
			}, events: []string{"Warning PoolLeftPaused"}, series: map[string]float64{"updating": 0, "paused_timestamp_seconds Delayed": 2},
		},
		"UpgradeJob is deleted after the commit, which the cache does not show": {
			mark: window, upToDate: true, setup: func(w *world) {
				w.setJob(namespace, attempt(1, false))
				w.After(20*time.Minute, func() {
					w.Process.Lag("ClusterVersion", 24*time.Hour)
					w.cluster.ChangeVersion(func(v *configv1.ClusterVersion) {
						v.Status.History = append([]configv1.UpdateHistory{{Version: "4.4.6", State: configv1.PartialUpdate}}, v.Status.History...)
					})
					_ = w.User.Delete(w.TB.Context(), &maintenancev1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "job"}})
				})
			},
			log: []string{released}, events: []string{"Normal PoolReleased"}, series: map[string]float64{"updating": 0},
		},
		"UpgradeJob in another namespace": {
			mark: window, setup: func(w *world) { w.setJob("other", attempt(1, false)) },
			log: []string{released}, events: []string{"Normal PoolReleased"}, series: map[string]float64{"updating": 1},
		},
		"operator starts in the window": {
			mark: window, down: 119 * time.Minute, log: []string{"1h59m0s operator: paused false, marked false"}, events: []string{"Normal PoolReleased"}, series: map[string]float64{"updating": 1},
		},
		"operator starts after the window": {
			mark: window, down: 2 * time.Hour, events: []string{"Warning PoolLeftPaused"}, series: map[string]float64{"updating": 0, "paused_timestamp_seconds Delayed": 2},
		},
		"paused after a failure":                     {mark: kept, upToDate: true, series: map[string]float64{"updating": 0, "paused_timestamp_seconds Failed": -1}},
		"paused by a user":                           {upToDate: true, series: map[string]float64{"updating": 0}},
		"paused by a user, malformed mark":           {mark: window + "/", upToDate: true, series: map[string]float64{"updating": 0}},
		"paused by a user, whose mark has no window": {mark: "uid/1/2026-03-01T13:00:00Z/2026-03-01T12:00:00Z", series: map[string]float64{"updating": 0}},
		"unpaused by a user, and paused again": {
			mark: window, setup: func(w *world) {
				w.After(30*time.Minute, func() { w.patch(`{"spec":{"paused":false}}`) })
				w.After(31*time.Minute, func() { w.patch(`{"spec":{"paused":true}}`) })
			},
			log: []string{
				"30m0s user: paused false, marked true", "30m0s operator: paused false, marked false", "31m0s user: paused true, marked false",
			},
			series: map[string]float64{"updating": 0},
		},
		"unpaused by a user before the upgrade commences": {
			mark: window, setup: func(w *world) {
				w.setJob(namespace, attempt(1, false))
				w.After(20*time.Minute, func() { w.patch(`{"spec":{"paused":false}}`) })
				w.After(30*time.Minute, func() {
					record := attempt(1, false)
					record.CommenceTime = &metav1.Time{Time: simulation.Start}
					w.setJob(namespace, record)
				})
			},
			log: []string{"20m0s user: paused false, marked true", "30m0s operator: paused false, marked false"}, series: map[string]float64{"updating": 1},
		},
		"unpaused by a user before the upgrade is skipped": {
			mark: window, setup: func(w *world) {
				w.setJob(namespace, attempt(1, false))
				w.After(20*time.Minute, func() { w.patch(`{"spec":{"paused":false}}`) })
				w.After(30*time.Minute, func() { w.setJob(namespace, attempt(1, true)) })
			},
			log: []string{"20m0s user: paused false, marked true", "30m0s operator: paused false, marked false"}, series: map[string]float64{"updating": 1},
		},
		"Events are refused": {
			mark: window, setup: func(w *world) {
				w.Writes = simulation.Fault{Outcome: simulation.Refuse, Err: apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "x", errors.New("quota"))}.If(func(r simulation.Request) bool {
					return r.Kind == "Event"
				})
			},
			log: []string{released}, series: map[string]float64{"updating": 1},
		},
		"pool is deleted": {
			mark: window, setup: func(w *world) {
				w.After(30*time.Minute, func() {
					_ = w.User.Delete(w.TB.Context(), &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "night"}})
				})
			}, series: map[string]float64{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tc.mark, !tc.upToDate)
			if tc.setup != nil {
				tc.setup(w)
			}
			w.After(tc.down, w.Begin)
			w.RunFor(3 * time.Hour)
			if diff := cmp.Diff(tc.log, w.log); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.events, w.events()); diff != "" {
				t.Errorf("Events (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.series, w.series()); diff != "" {
				t.Errorf("metrics (-want +got):\n%s", diff)
			}
		})
	}
}

// The pool is released exactly once, in its window, whichever write fails.
func TestReconcile_with_a_fault_at_every_write(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]simulation.Fault{
		"crash before": {Outcome: simulation.CrashBefore}, "crash after": {Outcome: simulation.CrashAfter},
		"lost answer": {Outcome: simulation.LoseAnswer}, "conflict": {Outcome: simulation.Conflict}, "refused": {Outcome: simulation.Refuse},
		"old cache": {Lag: []string{"MachineConfigPool"}, LagFor: 10 * time.Minute},
	} {
		for n := 1; n <= 2; n++ {
			t.Run(fmt.Sprintf("%s of write %d", name, n), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, window, true)
				w.Writes = func(r simulation.Request) simulation.Fault {
					if r.Write == n {
						return fault
					}
					return simulation.Fault{}
				}
				w.Begin()
				w.RunFor(3 * time.Hour)
				if diff := cmp.Diff([]string{"1h0m0s operator: paused false, marked false"}, w.log); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if diff := cmp.Diff([]string{"Normal PoolReleased"}, w.events()); diff != "" {
					t.Errorf("Events (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// The controller makes no request while a pool waits for its window, or after the window.
func TestReconcile_makes_no_request_while_nothing_happens(t *testing.T) {
	t.Parallel()
	w := newWorld(t, window, true)
	w.Begin()
	w.RunFor(59 * time.Minute)
	if len(w.Requests) > 0 {
		t.Errorf("before the window: %v", w.Requests)
	}
	w.RunFor(5 * time.Minute)
	if want := []string{"list UpgradeJob managed-upgrade-operator/", "list UpgradeConfig managed-upgrade-operator/", "create Event default/", "patch MachineConfigPool /night"}; len(w.Requests) != len(want) {
		t.Errorf("in the window: %v", w.Requests)
	}
	w.Requests = nil
	w.RunFor(24 * time.Hour)
	if len(w.Requests) > 0 {
		t.Errorf("after the release: %v", w.Requests)
	}
}
