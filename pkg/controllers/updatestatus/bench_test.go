// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/updatestatus"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

const benchPools = 20

// largeCluster returns a cluster whose nodes are being updated. Of every ten nodes in a pool, four
// are updated and one is in flight; one in twenty is degraded.
func largeCluster(nodes int) []client.Object {
	started := metav1.NewTime(simulation.Start.Add(-2 * time.Hour))
	ended, before := metav1.NewTime(simulation.Start.Add(-time.Hour)), metav1.NewTime(simulation.Start.Add(-1000*time.Hour))
	objects := []client.Object{
		&updatev1beta1.UpdateStatus{ObjectMeta: metav1.ObjectMeta{Name: updatev1beta1.UpdateStatusName}},
		&configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}, Status: configv1.ClusterVersionStatus{History: []configv1.UpdateHistory{
			{State: configv1.CompletedUpdate, StartedTime: started, CompletionTime: &ended, Version: newRelease},
			{State: configv1.CompletedUpdate, StartedTime: before, CompletionTime: &before, Version: oldRelease},
		}}},
	}
	for i := range 33 {
		objects = append(objects, &configv1.ClusterOperator{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("operator-%02d", i)},
			Status:     configv1.ClusterOperatorStatus{Versions: []configv1.OperandVersion{{Name: "operator", Version: newRelease}}},
		})
	}
	for p := range benchPools {
		pool := fmt.Sprintf("pool-%02d", p)
		role := map[string]string{"node-role.kubernetes.io/" + pool: ""}
		config := func(release string) string { return "rendered-" + pool + "-" + release }
		objects = append(objects, &mcfgv1.MachineConfigPool{
			ObjectMeta: metav1.ObjectMeta{Name: pool},
			Spec: mcfgv1.MachineConfigPoolSpec{
				NodeSelector:  &metav1.LabelSelector{MatchLabels: role},
				Configuration: mcfgv1.MachineConfigPoolStatusConfiguration{ObjectReference: corev1.ObjectReference{Name: config(newRelease)}},
			},
		})
		for _, release := range []string{oldRelease, newRelease} {
			objects = append(objects, &mcfgv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{
				Name: config(release), CreationTimestamp: started, Annotations: map[string]string{"machineconfiguration.openshift.io/release-image-version": release},
			}})
		}
		for n := range nodes / benchPools {
			current, desired, state := config(oldRelease), config(oldRelease), "Done"
			switch {
			case n%20 == 0:
				state = "Degraded"
			case n%10 == 1:
				desired, state = config(newRelease), "Working"
			case n%10 > 5:
				current, desired = config(newRelease), config(newRelease)
			}
			objects = append(objects, &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%04d", pool, n), Labels: role, Annotations: map[string]string{
					"machineconfiguration.openshift.io/currentConfig": current, "machineconfiguration.openshift.io/desiredConfig": desired,
					"machineconfiguration.openshift.io/state": state,
				}},
				Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
			})
		}
	}
	return objects
}

// sharing returns a client whose lists share the objects, as in a cache. It replaces the simulated
// client, whose copies would be measured, too.
func sharing(tb testing.TB, objects []client.Object) client.WithWatch {
	tb.Helper()
	lists := map[reflect.Type]client.ObjectList{}
	return interceptor.NewClient(simulation.NewFakeClient(tb, objects...), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			known := lists[reflect.TypeOf(list)]
			if _, changes := list.(*updatev1beta1.UpdateStatusList); known == nil || changes {
				if err := c.List(ctx, list, opts...); err != nil || changes {
					return err
				}
				copied, ok := list.DeepCopyObject().(client.ObjectList)
				if !ok {
					return fmt.Errorf("%T is no list", list)
				}
				if lists[reflect.TypeOf(list)] = copied; meta.LenList(list) == 0 {
					delete(lists, reflect.TypeOf(list)) // a list without its own type may be of any kind
				}
				return nil
			}
			// Copy the elements, but share what they point to.
			reflect.ValueOf(list).Elem().FieldByName("Items").Set(reflect.AppendSlice(
				reflect.Zero(reflect.ValueOf(list).Elem().FieldByName("Items").Type()), reflect.ValueOf(known).Elem().FieldByName("Items")))
			return nil
		},
	})
}

// passes returns a function that makes a no-op pass over the largeCluster, its client, and the size
// of the last write.
func passes(tb testing.TB, nodes int) (pass func(), c client.Client, written *int) {
	tb.Helper()
	clock := clocktesting.NewFakePassiveClock(simulation.Start)
	shared := sharing(tb, largeCluster(nodes))
	written = new(int)
	r := &updatestatus.Reconciler{
		Client: shared, Live: shared, Clock: clock, Answers: func() []insight.Answer { return nil },
		Events: &world{changes: map[string]bool{}}, Metrics: sizes{written},
	}
	reconcileOnce := func() {
		if _, err := r.Reconcile(tb.Context(), reconcile.Request{}); err != nil {
			tb.Fatal(err)
		}
	}
	reconcileOnce()
	clock.SetTime(clock.Now().Add(time.Minute))
	reconcileOnce() // continues from what the first pass published
	return func() {
		clock.SetTime(clock.Now().Add(2 * time.Second))
		reconcileOnce()
		if clock.Since(simulation.Start) > 100*time.Second { // before the status is written again as a heartbeat
			clock.SetTime(simulation.Start.Add(62 * time.Second))
		}
	}, shared, written
}

// Limits for a pass over 2,000 nodes.
const (
	maxPass   = 50 * time.Millisecond
	maxGrowth = 12 // relative to a pass over 200 nodes
)

// BenchmarkPass measures a whole pass during an update of nodes that makes no progress: gathering,
// the built-in informers, the assessment, and the comparison with the published status.
func BenchmarkPass(b *testing.B) {
	b.Logf("Method: a pass that writes nothing, of a cluster with %d pools and 33 operators; of 20 nodes, 8 are updated, 2 in flight, and 1 is degraded. "+
		"Lists share the objects, as those of a cache do. The time is that of the clock; best-ms is the processor time of the thread a pass, the best of ten times twenty passes, "+
		"which other work on the machine hardly changes. Limits: %s, %d times a pass of 200 nodes, and %d KiB for the object.", benchPools, maxPass, maxGrowth, largestObject>>10)
	var best []time.Duration
	for _, nodes := range []int{200, 2000} {
		b.Run(fmt.Sprintf("%d_nodes", nodes), func(b *testing.B) {
			pass, c, written := passes(b, nodes)
			first := *written
			b.ReportAllocs()
			for b.Loop() {
				pass()
			}
			b.ReportMetric(float64(first), "bytes_written")
			var status updatev1beta1.UpdateStatus
			if err := c.Get(b.Context(), client.ObjectKey{Name: updatev1beta1.UpdateStatusName}, &status); err != nil {
				b.Fatal(err)
			}
			size := sizeOf(b, &status)
			b.ReportMetric(float64(size), "bytes_of_the_object")
			if size > largestObject {
				b.Errorf("the object has %d bytes, limit %d", size, largestObject)
			}
			fastest := simulation.FastestPass(b, 20, pass)
			b.ReportMetric(float64(fastest.Microseconds())/1000, "best-ms")
			best = append(best, fastest)
		})
	}
	checkFigures(b, best)
}

// checkFigures compares the CPU times of passes over 200 and 2,000 nodes with the limits.
func checkFigures(tb testing.TB, best []time.Duration) {
	tb.Helper()
	if len(best) < 2 {
		return // only a part of the benchmark has run
	}
	small, large := best[0], best[len(best)-1]
	if large > maxPass || large > maxGrowth*small {
		tb.Errorf("a pass of 2,000 nodes takes %s of processor time, limit %s, and one of 200 nodes %s: %.1f times that, limit %d",
			large, maxPass, small, float64(large)/float64(small), maxGrowth)
	}
}

// sizes records the size of the last write.
type sizes struct{ size *int }

func (sizes) SetStatus(updatev1beta1.UpdateStatusStatus) {}
func (sizes) SetStatusTime(time.Time)                    {}
func (sizes) SetPlans([]metrics.PlanSnapshot)            {}
func (s sizes) ObserveStatusWrite(bytes int)             { *s.size = bytes }
