// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeschedule_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
)

// The numbers of idle objects.
const (
	manyObjects = 100 // UpgradeConfigs and UpgradeJobHooks each
	someWindows = 10
	manyJobs    = 500
	fewJobs     = 10
)

// crowd is a cluster with many objects of scheduled maintenance.
type crowd struct {
	*simulation.Harness
	reconcilers map[string]reconcile.Reconciler // by the name of the controller
}

// newCrowd returns a crowd in a settled state.
func newCrowd(tb testing.TB, jobs int) *crowd {
	tb.Helper()
	definitions := simulation.DefinitionsIn(tb, "../../../deploy/crds")
	c := &crowd{Harness: simulation.NewHarness(tb, simulation.WorldOptions{Definitions: definitions, MaxBurst: 100_000})}
	_, err := openshift.NewScript(c.World, "4.4.5", "stable-4.4")
	c.Must(err)
	c.addObjects()
	c.addEndedJobs(jobs)
	c.Run(c.controllers)
	c.RunFor(5 * time.Minute)
	c.Requests = nil
	return c
}

func (c *crowd) controllers(env simulation.Env) ([]manager.Controller, error) {
	all, err := controllers(env, c.Registry)
	if err != nil {
		return nil, err
	}
	c.reconcilers = map[string]reconcile.Reconciler{}
	for i := range all {
		c.reconcilers[all[i].Name] = all[i].Reconciler
	}
	return all, nil
}

// addObjects adds all objects except UpgradeJobs. The next slots are months away.
func (c *crowd) addObjects() {
	c.TB.Helper()
	for i := range manyObjects {
		meta := metav1.ObjectMeta{Namespace: yearNamespace, Name: fmt.Sprintf("object-%03d", i)}
		c.Create(&maintenancev1beta1.UpgradeConfig{ObjectMeta: meta, Spec: maintenancev1beta1.UpgradeConfigSpec{
			Schedule: maintenancev1beta1.UpgradeConfigSchedule{Cron: "0 22 1 1 *"}, SuccessfulJobsHistoryLimit: new(int32(100)),
		}})
		c.Create(&maintenancev1beta1.UpgradeJobHook{ObjectMeta: meta, Spec: maintenancev1beta1.UpgradeJobHookSpec{
			Events:   []maintenancev1beta1.HookEvent{maintenancev1beta1.EventStart},
			Template: maintenancev1beta1.HookJobTemplate{Spec: runtime.RawExtension{Raw: []byte(`{"template": {"spec": {"containers": [{"name": "hook", "image": "example.com/hook"}]}}}`)}},
		}})
		if i < someWindows {
			begin := c.Now().AddDate(0, 0, 7*i)
			c.Create(&maintenancev1beta1.UpgradeSuspensionWindow{ObjectMeta: meta, Spec: maintenancev1beta1.UpgradeSuspensionWindowSpec{
				Start: maintenance.Timestamp(begin), End: maintenance.Timestamp(begin.Add(time.Hour)),
				ConfigSelector: &maintenancev1beta1.LabelSelector{}, JobSelector: &maintenancev1beta1.LabelSelector{},
			}})
		}
	}
}

// addEndedJobs adds UpgradeJobs of the UpgradeConfigs in turn.
func (c *crowd) addEndedJobs(n int) {
	c.TB.Helper()
	configs := simulation.List(c.Harness, &maintenancev1beta1.UpgradeConfigList{})
	for i := range n {
		owner := &configs.Items[i%len(configs.Items)]
		start := c.Now().Add(-time.Duration(i+48) * time.Hour).Truncate(time.Second)
		began, complete := metav1.NewTime(start), metav1.NewTime(start.Add(time.Hour))
		c.Must(c.Add(&maintenancev1beta1.UpgradeJob{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: yearNamespace, Name: fmt.Sprintf("job-%03d", i), Labels: map[string]string{maintenancev1beta1.ConfigLabel: string(owner.UID)},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: maintenancev1beta1.GroupVersion.String(), Kind: "UpgradeConfig", Name: owner.Name, UID: owner.UID, Controller: new(true)}},
			},
			Spec:   maintenancev1beta1.UpgradeJobSpec{StartAfter: maintenance.Timestamp(start), StartBefore: maintenance.Timestamp(start.Add(time.Hour))},
			Status: maintenancev1beta1.UpgradeJobStatus{History: []history.Record{{Attempt: 1, Phase: history.PhaseUpgraded, UpgradeAt: &began, StartTime: &began, CompleteTime: &complete}}},
		}))
	}
}

// reconciled lists the object that each controller reconciles.
var reconciled = map[string]string{
	"upgradeschedule": "object-000", "upgradejob": "job-000", "upgradejobhook": "object-000", "suspensionwindow": "object-000", "hookjob": "job-000",
}

// reconcile lets a controller reconcile its object once.
func (c *crowd) reconcile(controller string) {
	request := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: yearNamespace, Name: reconciled[controller]}}
	_, err := c.reconcilers[controller].Reconcile(c.TB.Context(), request)
	c.Must(err)
}

// BenchmarkReconcile measures a no-op pass of each controller. It fails if a pass makes a request,
// or allocates more than twice as much as with few UpgradeJobs.
func BenchmarkReconcile(b *testing.B) {
	few, many := newCrowd(b, fewJobs), newCrowd(b, manyJobs)
	for controller := range reconciled {
		b.Run(controller, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				many.reconcile(controller)
			}
			b.ReportMetric(testing.AllocsPerRun(1, func() { few.reconcile(controller) }), "allocs/op-few")
		})
	}
	checkCrowd(b, few, many)
}

// With many idle objects, no reconcile makes a request or allocates more than twice as much as with
// few UpgradeJobs.
func TestReconcile_with_many_objects(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector allocates, too")
	}
	few, many := newCrowd(t, fewJobs), newCrowd(t, manyJobs)
	many.RunFor(10 * time.Minute)
	checkCrowd(t, few, many)
}

func checkCrowd(tb testing.TB, few, many *crowd) {
	tb.Helper()
	for controller := range reconciled {
		before := testing.AllocsPerRun(10, func() { few.reconcile(controller) })
		after := testing.AllocsPerRun(10, func() { many.reconcile(controller) })
		tb.Logf("%s: %.0f allocations with %d UpgradeJobs, %.0f with %d", controller, before, fewJobs, after, manyJobs)
		if after > 2*before {
			tb.Errorf("%s allocates %.0f times with %d UpgradeJobs, and %.0f times with %d", controller, before, fewJobs, after, manyJobs)
		}
	}
	if made := append(few.Requests, many.Requests...); len(made) > 0 {
		tb.Errorf("%d requests: %q", len(made), made)
	}
}
