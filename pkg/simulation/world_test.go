// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// counter is a controller that counts to a limit in a ConfigMap, one each minute.
type counter struct {
	env   Env
	limit int
	seen  []string
}

func (c *counter) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var object corev1.ConfigMap
	if err := c.env.Client.Get(ctx, request.NamespacedName, &object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	c.seen = append(c.seen, c.env.Clock.Now().Format(time.TimeOnly)+" "+object.Data["count"])
	count := len(object.Data["count"])
	if count >= c.limit {
		return reconcile.Result{}, nil
	}
	before := object.DeepCopy()
	object.Data = map[string]string{"count": strings.Repeat("I", count+1)}
	err := c.env.Client.Patch(ctx, &object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	return reconcile.Result{RequeueAfter: time.Minute}, err
}

// counting returns a program that counts to the limit. Changes of the count cause no reconcile.
func counting(limit int, lives *[]*counter) *Program {
	return &Program{
		Name: "counter",
		Controllers: func(env Env) ([]manager.Controller, error) {
			c := &counter{env: env, limit: limit}
			*lives = append(*lives, c)
			return []manager.Controller{{
				Name: "counter", Reads: []manager.Kind{{Object: &corev1.ConfigMap{}, Requests: manager.Self}}, Reconciler: c,
			}}, nil
		},
	}
}

func configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "count"}}
}

func count(t *testing.T, w *World) string {
	t.Helper()
	object := configMap()
	if err := w.Client("test").Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	return object.Data["count"]
}

func TestServerStampsVirtualTimesAndGenerations(t *testing.T) {
	t.Parallel()
	w := New(WorldOptions{})
	c := w.Client("test")
	pdb := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "budget", Finalizers: []string{"test/stay"}}}
	pdb.Status.DisruptionsAllowed = 7
	if err := c.Create(t.Context(), pdb); err != nil {
		t.Fatal(err)
	}
	if !pdb.CreationTimestamp.Time.Equal(Start.Truncate(time.Second)) || pdb.Generation != 1 || pdb.UID == "" || pdb.Status.DisruptionsAllowed != 0 {
		t.Errorf("created: %+v", pdb)
	}
	w.Advance(time.Hour)
	pdb.Spec.MinAvailable = nil
	pdb.Spec.Selector = &metav1.LabelSelector{}
	if err := c.Update(t.Context(), pdb); err != nil {
		t.Fatal(err)
	}
	version := pdb.ResourceVersion
	if err := c.Update(t.Context(), pdb); err != nil { // changes nothing
		t.Fatal(err)
	}
	if pdb.Generation != 2 || pdb.ResourceVersion != version {
		t.Errorf("generation %d, resource version %s after %s", pdb.Generation, pdb.ResourceVersion, version)
	}
	if err := c.Delete(t.Context(), pdb); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(pdb), pdb); err != nil {
		t.Fatal(err)
	}
	if !pdb.DeletionTimestamp.Time.Equal(Start.Truncate(time.Second).Add(time.Hour)) || pdb.Generation != 3 {
		t.Errorf("deleted at %s, generation %d", pdb.DeletionTimestamp, pdb.Generation)
	}
}

func TestServerValidatesByTheDefinition(t *testing.T) {
	t.Parallel()
	definitions, err := Definitions(os.DirFS("../../deploy/crds"))
	if err != nil {
		t.Fatal(err)
	}
	valid := func() *upgradev1alpha1.UpgradeConfig {
		return &upgradev1alpha1.UpgradeConfig{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "upgrade"},
			Spec: upgradev1alpha1.UpgradeConfigSpec{
				Type: "OSD", UpgradeAt: "2026-03-01T12:10:00Z", PDBForceDrainTimeout: new(int32(60)),
				Desired: upgradev1alpha1.Update{Version: "4.20.6", Channel: "stable-4.20"},
			},
		}
	}
	started := func(cfg *upgradev1alpha1.UpgradeConfig) {
		cfg.Status.History = []history.Record{{Version: "4.20.6", Phase: history.PhaseUpgrading, StartTime: new(metav1.NewTime(Start))}}
	}
	tests := map[string]struct {
		create, status, update func(*upgradev1alpha1.UpgradeConfig)
		invalid                string // part of the error; empty: it is accepted
	}{
		"valid object":           {},
		"missing required field": {create: func(c *upgradev1alpha1.UpgradeConfig) { c.Spec.Desired.Channel = "" }, invalid: "spec.desired.channel"},
		"broken CEL rule":        {create: func(c *upgradev1alpha1.UpgradeConfig) { c.Spec.Desired.Version = "v4" }, invalid: "semantic version"},
		"number out of bounds":   {create: func(c *upgradev1alpha1.UpgradeConfig) { c.Spec.PDBForceDrainTimeout = new(int32(-1)) }, invalid: "0 to 525600"},
		"unknown phase":          {status: func(c *upgradev1alpha1.UpgradeConfig) { started(c); c.Status.History[0].Phase = "Done" }, invalid: "phase"},
		"duplicate key of a list map": {status: func(c *upgradev1alpha1.UpgradeConfig) {
			started(c)
			c.Status.History = append(c.Status.History, c.Status.History[0])
		}, invalid: "Duplicate"},
		"spec changed before a start":  {update: func(c *upgradev1alpha1.UpgradeConfig) { c.Spec.Type = "ARO" }},
		"spec changed after the start": {status: started, update: func(c *upgradev1alpha1.UpgradeConfig) { c.Spec.Type = "ARO" }, invalid: "spec"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := New(WorldOptions{Definitions: definitions})
			c, cfg := w.Client("test"), valid()
			var errs []error
			if test.create != nil {
				test.create(cfg)
			}
			errs = append(errs, c.Create(t.Context(), cfg))
			if test.status != nil {
				test.status(cfg)
				errs = append(errs, c.Status().Update(t.Context(), cfg))
			}
			if test.update != nil {
				test.update(cfg)
				errs = append(errs, c.Update(t.Context(), cfg))
			}
			err := errors.Join(errs...)
			switch {
			case test.invalid == "" && err != nil:
				t.Errorf("it is rejected: %v", err)
			case test.invalid != "" && (err == nil || !strings.Contains(err.Error(), test.invalid)):
				t.Errorf("it is not rejected with %q: %v", test.invalid, err)
			}
		})
	}
}

func TestProgramSurvivesEachFaultOfEachWrite(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fault Fault
		lives int
	}{
		"served":         {fault: Fault{}, lives: 1},
		"refused":        {fault: Fault{Outcome: Refuse}, lives: 1},
		"conflict":       {fault: Fault{Outcome: Conflict}, lives: 1},
		"answer lost":    {fault: Fault{Outcome: LoseAnswer}, lives: 1},
		"crash before":   {fault: Fault{Outcome: CrashBefore}, lives: 2},
		"crash after":    {fault: Fault{Outcome: CrashAfter}, lives: 2},
		"stalled":        {fault: Fault{Outcome: Stall, For: time.Hour}, lives: 1},
		"cache lags far": {fault: Fault{Lag: []string{"ConfigMap"}, LagFor: 10 * time.Minute}, lives: 1},
	}
	for name, test := range tests {
		for write := 1; write <= 3; write++ {
			t.Run(fmt.Sprintf("%s at write %d", name, write), func(t *testing.T) {
				t.Parallel()
				w := New(WorldOptions{})
				var lives []*counter
				program := counting(3, &lives)
				program.Plan = func(r Request) Fault {
					if r.Write == write {
						return test.fault
					}
					return Fault{}
				}
				program.OnCrash = func() {
					w.After(time.Second, func() {
						if _, err := w.Start(program); err != nil {
							w.Fail(err)
						}
					})
				}
				if err := w.Client("test").Create(t.Context(), configMap()); err != nil {
					t.Fatal(err)
				}
				if _, err := w.Start(program); err != nil {
					t.Fatal(err)
				}
				if err := w.RunUntil(3*time.Hour, func() bool { return count(t, w) == "III" && w.Quiet() }); err != nil {
					t.Fatal(err)
				}
				if err := w.RunFor(time.Minute); err != nil { // until the last crash is over
					t.Fatal(err)
				}
				if len(lives) != test.lives {
					t.Errorf("%d lives, want %d", len(lives), test.lives)
				}
			})
		}
	}
}

// TestStalledLeaderWritesAfterItsSuccessor lets a process stall in a write while another one acts.
func TestStalledLeaderWritesAfterItsSuccessor(t *testing.T) {
	t.Parallel()
	var log []string
	w := New(WorldOptions{Log: func(line string) { log = append(log, line) }})
	var lives []*counter
	program := counting(1, &lives)
	program.Plan = Fault{Outcome: Stall, For: time.Minute}.If(func(r Request) bool { return r.Write == 1 })
	if err := w.Client("test").Create(t.Context(), configMap()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := w.Start(program); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.RunFor(2 * time.Minute); err != nil {
		t.Fatal(err)
	}
	if got := count(t, w); got != "I" {
		t.Errorf("the count is %q", got)
	}
	if all := strings.Join(log, "\n"); !strings.Contains(all, "12:01:00.700 counter reconciles default/count: ") {
		t.Errorf("the write that stalled does not conflict:\n%s", all)
	}
}

// TestStalledWriteIsStoredLate lets the only process stall in a write.
func TestStalledWriteIsStoredLate(t *testing.T) {
	t.Parallel()
	w := New(WorldOptions{})
	if err := w.Client("test").Create(t.Context(), configMap()); err != nil {
		t.Fatal(err)
	}
	late := time.Duration(-1)
	w.Observe(func(change Change) { late = change.Time.Sub(change.Sent) })
	var lives []*counter
	program := counting(1, &lives)
	program.Plan = Fault{Outcome: Stall, For: time.Minute}.If(func(r Request) bool { return r.Write == 1 })
	if _, err := w.Start(program); err != nil {
		t.Fatal(err)
	}
	if err := w.RunFor(2 * time.Minute); err != nil {
		t.Fatal(err)
	}
	if late != time.Minute {
		t.Errorf("the write is stored %s after it was sent", late)
	}
}

func TestOneHistoryHasOneLog(t *testing.T) {
	t.Parallel()
	run := func() string {
		var log []string
		w := New(WorldOptions{Log: func(line string) { log = append(log, line) }})
		var lives []*counter
		for i := range 5 {
			object := configMap()
			object.Name = fmt.Sprintf("count-%d", i)
			if err := w.Client("test").Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Start(counting(4, &lives)); err != nil {
			t.Fatal(err)
		}
		if err := w.RunFor(time.Hour); err != nil {
			t.Fatal(err)
		}
		return strings.Join(log, "\n")
	}
	if diff := cmp.Diff(run(), run()); diff != "" {
		t.Error(diff)
	}
}

func TestReadOfAnUndeclaredKindFails(t *testing.T) {
	t.Parallel()
	w := New(WorldOptions{})
	var got error
	program := &Program{Name: "reader", Controllers: func(env Env) ([]manager.Controller, error) {
		return []manager.Controller{{
			Name: "reader", Reads: []manager.Kind{{Object: &corev1.ConfigMap{}, Requests: manager.Self}},
			Reconciler: reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
				got = env.Client.List(ctx, &corev1.SecretList{})
				return reconcile.Result{}, nil
			}),
		}}, nil
	}}
	if _, err := w.Start(program); err != nil {
		t.Fatal(err)
	}
	if err := w.Client("test").Create(t.Context(), configMap()); err != nil {
		t.Fatal(err)
	}
	if err := w.RunFor(time.Second); err != nil {
		t.Fatal(err)
	}
	if got == nil || !strings.Contains(got.Error(), "Secret") {
		t.Errorf("the read ends with %v", got)
	}
}

func TestEvictionRespectsTheBudget(t *testing.T) {
	t.Parallel()
	w := New(WorldOptions{})
	c := w.Client("test")
	if _, err := w.Start(KubeControllerManager()); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": "shop"}
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels}, Spec: corev1.PodSpec{NodeName: "a"},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
		}
	}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"}}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	if err := w.Add(pod("one"), pod("two"), budget); err != nil {
		t.Fatal(err)
	}
	if err := w.RunFor(time.Second); err != nil {
		t.Fatal(err)
	}
	evict := func(name string) error {
		return c.SubResource("eviction").Create(t.Context(), pod(name), &policyv1.Eviction{})
	}
	if err := evict("one"); err != nil {
		t.Fatalf("the first eviction: %v", err)
	}
	if err := evict("two"); !apierrors.IsTooManyRequests(err) {
		t.Errorf("the second eviction: %v", err)
	}
}

// TestEvictionRefusesStaleBudgets evicts in the moment after a budget was relaxed.
func TestEvictionRefusesStaleBudgets(t *testing.T) {
	t.Parallel()
	w := New(WorldOptions{})
	c := w.Client("test")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}, Spec: corev1.PodSpec{NodeName: "a"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop", Generation: 1}}
	budget.Spec.Selector = &metav1.LabelSelector{}
	budget.Status.ObservedGeneration, budget.Status.DisruptionsAllowed = 1, 1
	if err := w.Add(pod, budget); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(budget), budget); err != nil {
		t.Fatal(err)
	}
	budget.Spec.MinAvailable = new(intstr.FromInt32(0))
	if err := c.Update(t.Context(), budget); err != nil {
		t.Fatal(err)
	}
	err := c.SubResource("eviction").Create(t.Context(), pod, &policyv1.Eviction{})
	if seconds, retry := apierrors.SuggestsClientDelay(err); !apierrors.IsTooManyRequests(err) || !retry || seconds != 10 {
		t.Errorf("the eviction: %v, retry after %ds", err, seconds)
	}
	budget.Status.ObservedGeneration = budget.Generation
	if err := c.Status().Update(t.Context(), budget); err != nil {
		t.Fatal(err)
	}
	if err := c.SubResource("eviction").Create(t.Context(), pod, &policyv1.Eviction{}); err != nil {
		t.Errorf("the eviction after the budget was processed: %v", err)
	}
}

// Deadlines must not depend on how fast the machine is.
func TestTimeoutsAreVirtual(t *testing.T) {
	t.Parallel()
	w := New(WorldOptions{})
	ctx, cancel := w.Clock().WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if _, ok := ctx.Deadline(); ok || ctx.Err() != nil {
		t.Errorf("the context ends by the time of the machine: %v", ctx.Err())
	}
	w.Advance(time.Nanosecond)
	if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the context has not ended by virtual time: %v", err)
	}
}
