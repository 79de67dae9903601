// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pools_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/pools"
)

// version is a cluster that runs 4.4.6.
func version() client.Object {
	v := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	v.Status.History = []configv1.UpdateHistory{{Version: "4.4.6", State: configv1.CompletedUpdate}}
	return v
}

// operator is the machine config operator at a version.
func operator(version string, progressing configv1.ConditionStatus) client.Object {
	o := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: "machine-config"}}
	if version != "" {
		o.Status.Versions = []configv1.OperandVersion{{Name: "operator", Version: version}}
	}
	o.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{Type: "Progressing", Status: progressing, Message: "Working towards 4.4.6"}}
	return o
}

// pool is one of six machines, all updated, with changes.
func pool(name string, changes ...func(*mcfgv1.MachineConfigPool)) client.Object {
	p := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 4}}
	p.Spec.Configuration.Name = "rendered-" + name + "-2"
	p.Status = mcfgv1.MachineConfigPoolStatus{
		ObservedGeneration: 4, MachineCount: 6, UpdatedMachineCount: 6,
		Conditions: []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolUpdated, Status: corev1.ConditionTrue}},
	}
	p.Status.Configuration.Name = p.Spec.Configuration.Name
	for _, change := range changes {
		change(p)
	}
	return p
}

func updating(p *mcfgv1.MachineConfigPool) {
	p.Status.Configuration.Name = "rendered-" + p.Name + "-1"
	p.Status.UpdatedMachineCount = 3
	p.Status.Conditions[0].Status = corev1.ConditionFalse
}

func paused(p *mcfgv1.MachineConfigPool) { p.Spec.Paused = true }

func degraded(p *mcfgv1.MachineConfigPool) {
	p.Status.Conditions = append(p.Status.Conditions, mcfgv1.MachineConfigPoolCondition{
		Type: mcfgv1.MachineConfigPoolDegraded, Status: corev1.ConditionTrue, Message: "node x is stuck",
	})
}

// node is one that was told to take a configuration.
func node(name, current, desired, state, reason string) client.Object {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
		"machineconfiguration.openshift.io/currentConfig": current,
		"machineconfiguration.openshift.io/desiredConfig": desired,
		"machineconfiguration.openshift.io/state":         state,
		"machineconfiguration.openshift.io/reason":        reason,
	}}}
}

func reader(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{configv1.Install, mcfgv1.Install, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
}

func TestUpdated(t *testing.T) {
	t.Parallel()
	here := func(objects ...client.Object) []client.Object {
		return append(objects, version(), operator("4.4.6", "False"))
	}
	cases := map[string]struct {
		objects []client.Object
		want    engine.Result
	}{
		"all are updated": {
			here(pool("master"), pool("worker")),
			engine.Done("all 2 machine config pools are updated"),
		},
		"one is being updated, and its nodes say how": {
			here(pool("master"), pool("worker", updating),
				node("w-1", "rendered-worker-2", "rendered-worker-2", "Done", ""),
				node("w-2", "rendered-worker-1", "rendered-worker-2", "Working", ""),
				node("w-3", "rendered-worker-1", "rendered-worker-2", "Degraded", "cannot evict\n pod web-0"),
				node("w-4", "rendered-worker-1", "rendered-worker-1", "Done", ""),
				node("m-1", "rendered-master-1", "rendered-master-2", "Working", "")),
			engine.Wait("PoolsUpdating", "machine config pools updating: worker (3 of 6 machines; nodes w-2 Working, w-3 Degraded: cannot evict pod web-0)"),
		},
		"a degraded one is named first": {
			here(pool("infra", updating), pool("worker", updating, degraded), pool("zone", paused)),
			engine.Wait("PoolDegraded", "machine config pools degraded: worker (3 of 6 machines; node x is stuck); "+
				"machine config pools paused: zone (6 of 6 machines); machine config pools updating: infra (3 of 6 machines)"),
		},
		"one that is degraded although its machines are updated is not done": {
			here(pool("worker", degraded)),
			engine.Wait("PoolDegraded", "machine config pools degraded: worker (6 of 6 machines; node x is stuck)"),
		},
		"a paused one may have been passed over": {
			here(pool("worker", paused)),
			engine.Wait("PoolPaused", "machine config pools paused: worker (6 of 6 machines)"),
		},
		"one has not noticed yet that there is something to do": {
			here(pool("worker", func(p *mcfgv1.MachineConfigPool) { p.Generation = 5 })),
			engine.Wait("PoolsUpdating", "machine config pools updating: worker (6 of 6 machines)"),
		},
		"one says that it is updated, of the configuration before": {
			here(pool("worker", func(p *mcfgv1.MachineConfigPool) { p.Spec.Configuration.Name = "rendered-worker-3" })),
			engine.Wait("PoolsUpdating", "machine config pools updating: worker (6 of 6 machines)"),
		},
		"one says nothing": {
			here(pool("worker", func(p *mcfgv1.MachineConfigPool) { p.Status = mcfgv1.MachineConfigPoolStatus{} })),
			engine.Wait("PoolsUpdating", "machine config pools updating: worker (0 of 0 machines)"),
		},
		"the machine config operator is at the release before": {
			[]client.Object{pool("worker"), version(), operator("4.4.5", "False")},
			engine.Wait("PoolsUpdating", `the machine config operator is at "4.4.5", not at 4.4.6 yet`),
		},
		"the machine config operator does not say where it is": {
			[]client.Object{pool("worker"), version(), operator("", "False")},
			engine.Wait("PoolsUpdating", `the machine config operator is at "", not at 4.4.6 yet`),
		},
		"nobody says where anything is": {
			[]client.Object{pool("worker"), &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}, operator("", "False")},
			engine.Wait("PoolsUpdating", `the machine config operator is at "", not at an unnamed release yet`),
		},
		"the machine config operator is at work": {
			[]client.Object{pool("worker"), version(), operator("4.4.6", "True")},
			engine.Wait("PoolsUpdating", "the machine config operator is at work: Working towards 4.4.6"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := reader(t, interceptor.Funcs{}, tc.objects...)
			got, err := pools.Updated(r)(t.Context(), engine.Run{})
			if err != nil || got != tc.want {
				t.Errorf("got %s, %v; (-want +got):\n%s", got.Reason(), err, cmp.Diff(tc.want.Message(), got.Message()))
			}
			all, err := pools.AllUpdated(r)(t.Context())
			if err != nil || all != tc.want.Passed() {
				t.Errorf("all updated: got %t, %v", all, err)
			}
		})
	}
}

func TestMessagesStayReadable(t *testing.T) {
	t.Parallel()
	objects := []client.Object{version(), operator("4.4.6", "False"), pool("worker", updating)}
	for _, name := range []string{"w-5", "w-4", "w-3", "w-2", "w-1"} {
		objects = append(objects, node(name, "rendered-worker-1", "rendered-worker-2", "Working", strings.Repeat("busy ", 10_000)))
	}
	got, err := pools.Updated(reader(t, interceptor.Funcs{}, objects...))(t.Context(), engine.Run{})
	if err != nil || len(got.Message()) > 2000 || !strings.Contains(got.Message(), "and 2 more") {
		t.Errorf("got %d bytes, %v: %s", len(got.Message()), err, got.Message())
	}
}

func TestPoolsThatCannotBeReadAreAnError(t *testing.T) {
	t.Parallel()
	broken := errors.New("the connection was refused")
	for name, fails := range map[string]func(any) bool{
		"the cluster version":             func(o any) bool { _, is := o.(*configv1.ClusterVersion); return is },
		"cluster operator machine-config": func(o any) bool { _, is := o.(*configv1.ClusterOperator); return is },
		"the machine config pools":        func(o any) bool { _, is := o.(*mcfgv1.MachineConfigPoolList); return is },
		"the nodes":                       func(o any) bool { _, is := o.(*corev1.NodeList); return is },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := reader(t, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
					if fails(object) {
						return broken
					}
					return c.Get(ctx, key, object, opts...)
				},
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if fails(list) {
						return broken
					}
					return c.List(ctx, list, opts...)
				},
			}, version(), operator("4.4.6", "False"), pool("worker", updating))
			result, err := pools.Updated(r)(t.Context(), engine.Run{})
			if !errors.Is(err, broken) || !strings.Contains(err.Error(), name) {
				t.Errorf("got %v, %v", result, err)
			}
			if all, err := pools.AllUpdated(r)(t.Context()); all || name != "the nodes" && !errors.Is(err, broken) {
				t.Errorf("all updated: got %t, %v", all, err)
			}
		})
	}
}
