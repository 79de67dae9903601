// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment_test

import (
	"context"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	simulated "github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/pools"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updatestatus"
)

// looker views one cluster both as an upgrade and as the update status.
type looker struct {
	t       *testing.T
	cluster client.Client
	clock   *clocktesting.FakePassiveClock
	drains  checks.Drains
	step    engine.Step
	section string

	record history.Record
	status updatev1beta1.UpdateStatusStatus
}

// look returns when the step and the section last progressed, relative to the start. Zero stands for no
// progress since the start.
func (l *looker) look() (step, section time.Duration) {
	l.t.Helper()
	save := func(_ context.Context, record history.Record) error {
		l.record = record
		return nil
	}
	e := &engine.Engine{Clock: l.clock, Save: save, Heartbeat: time.Second}
	if _, _, err := e.Pass(l.t.Context(), engine.Runbook{Steps: []engine.Step{l.step}}, l.record, engine.Constraints{}); err != nil {
		l.t.Fatal(err)
	}
	c := l.record.Conditions[0]
	if c.Status != metav1.ConditionFalse || c.CompleteTime != nil {
		l.t.Fatalf("the step does not wait: %+v", c)
	}
	if c.ProgressTime != nil {
		step = c.ProgressTime.Sub(now)
	}
	facts := checks.Gather(l.t.Context(), checks.Update, checks.Readers{Reader: l.cluster, Live: l.cluster, Clock: l.clock})
	l.status = updatestatus.Compute(updatestatus.Input{Facts: facts, Previous: l.status})
	for _, s := range l.status.Assessment.Sections {
		if s.Name == l.section && s.LastChangeTime != nil {
			section = max(0, s.LastChangeTime.Sub(now))
		}
	}
	return step, section
}

// moment is a change of the cluster. It may count as progress.
type moment struct {
	name     string
	after    time.Duration // since the start
	change   func(*looker)
	progress bool
}

// follow makes the changes and checks that both consumers count the same ones as progress.
func (l *looker) follow(moments []moment) {
	l.t.Helper()
	last := time.Duration(0)
	for _, m := range moments {
		l.clock.SetTime(now.Add(m.after))
		if m.change != nil {
			m.change(l)
		}
		if m.progress {
			last = m.after
		}
		if step, section := l.look(); step != last || section != last {
			l.t.Errorf("%s: after %s, the step has last progressed at %s and the section at %s, want %s; %s", m.name, m.after, step, section, last, l.record.Conditions[0].Message)
		}
	}
}

// edit returns a function that changes an object and its status.
func edit[T client.Object](object T, do func(T)) func(*looker) {
	return func(l *looker) {
		l.t.Helper()
		if err := l.cluster.Get(l.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			l.t.Fatal(err)
		}
		do(object)
		if err := l.cluster.Update(l.t.Context(), object.DeepCopyObject().(T)); err != nil {
			l.t.Fatal(err)
		}
		if err := l.cluster.Get(l.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			l.t.Fatal(err)
		}
		do(object)
		if err := l.cluster.Status().Update(l.t.Context(), object); err != nil {
			l.t.Log(err) // the kind has no status subresource
		}
	}
}

const (
	oldConfig, newConfig = "rendered-worker-old", "rendered-worker-new"
	mcd                  = "machineconfiguration.openshift.io/"
)

func newOperator(name, version string, progressing configv1.ConditionStatus) *configv1.ClusterOperator {
	since := at(before(time.Hour))
	return &configv1.ClusterOperator{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: configv1.ClusterOperatorStatus{
			Versions: []configv1.OperandVersion{{Name: "operator", Version: version}},
			Conditions: []configv1.ClusterOperatorStatusCondition{
				{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue, LastTransitionTime: since},
				{Type: configv1.OperatorDegraded, Status: configv1.ConditionFalse, LastTransitionTime: since},
				{Type: configv1.OperatorProgressing, Status: progressing, LastTransitionTime: since},
			},
		},
	}
}

// newLooker returns a cluster whose update to 4.20.6 starts now, either on the control plane or, if that is
// done, on the three nodes of the worker pool.
func newLooker(t *testing.T, section string, others ...client.Object) *looker {
	t.Helper()
	version := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version", Generation: 1}}
	version.Status.ObservedGeneration = 1
	version.Status.Desired = configv1.Release{Version: "4.20.6", Image: "image-6"}
	version.Status.History = []configv1.UpdateHistory{
		{Version: "4.20.6", Image: "image-6", State: configv1.PartialUpdate, StartedTime: at(now)},
		{Version: "4.20.5", Image: "image-5", State: configv1.CompletedUpdate, StartedTime: at(before(100 * time.Hour)), CompletionTime: new(at(before(99 * time.Hour)))},
	}
	version.Status.Conditions = []configv1.ClusterOperatorStatusCondition{
		{Type: configv1.OperatorProgressing, Status: configv1.ConditionTrue, Message: "Working towards 4.20.6: 1 of 2 done", LastTransitionTime: at(now)},
		{Type: "Failing", Status: configv1.ConditionFalse, LastTransitionTime: at(before(time.Hour))},
	}
	objects := append([]client.Object{version}, others...)
	if section != controlPlaneSection {
		version.Status.History[0].State, version.Status.History[0].CompletionTime = configv1.CompletedUpdate, new(at(now))
		version.Status.Conditions[0].Status = configv1.ConditionFalse
	}
	return &looker{
		t: t, cluster: simulated.NewFakeClient(t, objects...), clock: clocktesting.NewFakePassiveClock(now), section: section,
	}
}

const controlPlaneSection = "control plane"

// The step that waits for the nodes and the assessment of their pool must agree on what counts as progress.
func TestConsumers_of_progress_nodes(t *testing.T) {
	t.Parallel()
	pool := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: worker}}
	pool.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"pool": worker}}
	pool.Spec.Configuration.Name = newConfig
	pool.Status.MachineCount = 3
	objects := []client.Object{pool, newOperator("machine-config", "4.20.6", configv1.ConditionFalse)}
	for _, name := range []string{"worker-0", "worker-1", "worker-2"} {
		objects = append(objects, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": worker}, Annotations: map[string]string{
				mcd + "currentConfig": oldConfig, mcd + "desiredConfig": oldConfig, mcd + "state": "Done",
			}},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: at(before(time.Hour))}}},
		})
	}
	for name, release := range map[string]string{oldConfig: "4.20.5", newConfig: "4.20.6"} {
		objects = append(objects, &mcfgv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{
			Name: name, CreationTimestamp: at(now), Annotations: map[string]string{mcd + "release-image-version": release},
		}})
	}
	for _, name := range []string{"api-0", "api-1"} {
		objects = append(objects, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "api", UID: "a", Controller: new(true)}}},
			Spec:       corev1.PodSpec{NodeName: "worker-0"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
		})
	}
	l := newLooker(t, worker, objects...)
	l.drains = checks.Drains{Reader: l.cluster, Live: l.cluster, TimeOut: -1, PDBTimeout: -1, Explanations: &checks.DrainExplanations{}}
	l.step = engine.Step{Name: "AllWorkerNodesUpgraded", Do: pools.WaitUntilUpdated(l.cluster, l.drains), SlowAfter: 2 * time.Hour}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-0"}}
	annotate := func(pairs ...string) func(*looker) {
		return edit(node, func(n *corev1.Node) {
			for i := 0; i < len(pairs); i += 2 {
				n.Annotations[mcd+pairs[i]] = pairs[i+1]
			}
		})
	}
	l.follow([]moment{
		{name: "nothing has begun", after: 0},
		{name: "a drain is requested", after: 6 * time.Minute, progress: true, change: func(l *looker) {
			annotate("desiredConfig", newConfig, "state", "Working", "desiredDrain", "drain-"+newConfig)(l)
			edit(node, func(n *corev1.Node) {
				n.Spec.Unschedulable = true
				n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: new(at(l.clock.Now()))}}
			})(l)
		}},
		{name: "the drain lasts", after: 12 * time.Minute},
		{name: "the drain is a long one, which the message explains", after: 18 * time.Minute},
		{name: "the explanation is read again", after: 24 * time.Minute},
		{name: "a pod is gone", after: 30 * time.Minute, progress: true, change: func(l *looker) {
			if err := l.cluster.Delete(l.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api-0"}}, client.GracePeriodSeconds(0)); err != nil {
				l.t.Fatal(err)
			}
		}},
		{name: "a heartbeat of the kubelet", after: 36 * time.Minute, change: edit(node, func(n *corev1.Node) {
			n.Status.Conditions[0].LastHeartbeatTime = at(now.Add(36 * time.Minute))
		})},
		{name: "the drain is done, and the node reboots", after: 42 * time.Minute, progress: true, change: annotate("appliedDrain", "drain-"+newConfig, "lastAppliedDrain", "drain-"+newConfig, "state", "Rebooting")},
		{name: "the node is done", after: 48 * time.Minute, progress: true, change: func(l *looker) {
			annotate("currentConfig", newConfig, "state", "Done", "desiredDrain", "uncordon-"+newConfig, "lastAppliedDrain", "uncordon-"+newConfig)(l)
			edit(node, func(n *corev1.Node) { n.Spec.Unschedulable, n.Spec.Taints = false, nil })(l)
			edit(pool, func(p *mcfgv1.MachineConfigPool) { p.Status.UpdatedMachineCount = 1 })(l)
		}},
		{name: "nothing happens", after: 60 * time.Minute},
		{name: "nothing happens for long", after: 3 * time.Hour},
	})
	if c := l.record.Conditions[0]; !(clusterstate.Progress{Changed: c.ProgressTime.Time}).IsStuck(2*time.Hour, l.clock.Now()) {
		t.Errorf("the step is not slow: %+v", c)
	}
	if got := l.status.Assessment.State; got != updatev1beta1.StateStuck {
		t.Errorf("the update is %s", got)
	}
}

// The step that waits for the control plane and the assessment of the control plane must agree on what counts
// as progress.
func TestConsumers_of_progress_operators(t *testing.T) {
	t.Parallel()
	dns := newOperator("dns", "4.20.5", configv1.ConditionTrue)
	l := newLooker(t, controlPlaneSection, dns, newOperator("etcd", "4.20.5", configv1.ConditionFalse))
	target := clusterstate.Target{Version: "4.20.6", Image: "image-6"}
	l.step = engine.Step{Name: "ControlPlaneUpgraded", Do: controlplane.WaitUntilUpgraded(l.cluster, l.cluster, target), SlowAfter: time.Hour}
	version := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	condition := func(index int, status configv1.ConditionStatus, message string) func(*looker) {
		return edit(version, func(v *configv1.ClusterVersion) {
			v.Status.Conditions[index].Status, v.Status.Conditions[index].Message = status, message
		})
	}
	l.follow([]moment{
		{name: "nothing has begun", after: 0},
		{name: "an operator reports what it does", after: 5 * time.Minute, progress: true, change: edit(dns, func(o *configv1.ClusterOperator) {
			o.Status.Conditions[2].Message = "1 of 3 pods are updated"
		})},
		{name: "another client requests another release, which the message names", after: 10 * time.Minute, change: edit(version, func(v *configv1.ClusterVersion) {
			v.Spec.DesiredUpdate = &configv1.Update{Version: "4.20.7"}
		})},
		{name: "the request is withdrawn", after: 15 * time.Minute, change: edit(version, func(v *configv1.ClusterVersion) { v.Spec.DesiredUpdate = nil })},
		{name: "the cluster version operator counts on", after: 20 * time.Minute, progress: true, change: condition(0, configv1.ConditionTrue, "Working towards 4.20.6: 2 of 2 done")},
		{name: "the cluster version operator fails, which the message names", after: 25 * time.Minute, change: condition(1, configv1.ConditionTrue, "could not update deployment a/b")},
		{name: "it fails no longer", after: 28 * time.Minute, change: condition(1, configv1.ConditionFalse, "")},
		{name: "an operator is done", after: 30 * time.Minute, progress: true, change: edit(dns, func(o *configv1.ClusterOperator) {
			o.Status.Versions[0].Version = "4.20.6"
			o.Status.Conditions[2] = configv1.ClusterOperatorStatusCondition{Type: configv1.OperatorProgressing, Status: configv1.ConditionFalse, LastTransitionTime: at(now.Add(30 * time.Minute))}
		})},
		{name: "nothing happens", after: 50 * time.Minute},
		{name: "nothing happens for long", after: 2 * time.Hour},
	})
	if c := l.record.Conditions[0]; !(clusterstate.Progress{Changed: c.ProgressTime.Time}).IsStuck(time.Hour, l.clock.Now()) {
		t.Errorf("the step is not slow: %+v", c)
	}
	if got := l.status.Assessment.State; got != updatev1beta1.StateStuck {
		t.Errorf("the update is %s", got)
	}
}
