// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
)

// fakeCluster is a cluster whose reads are counted and may be denied.
type fakeCluster struct {
	*Cluster

	requests []string
	// err returns the error of a read of a kind; nil means that it succeeds.
	err func(kind string) error
}

// newFakeCluster returns a cluster at 4.20.6 with one node and one pool of each role, and copies of objects: the fake client
// writes to those it is given, and parallel tests share theirs.
func newFakeCluster(tb testing.TB, objects ...client.Object) *fakeCluster {
	tb.Helper()
	f := &fakeCluster{err: func(string) error { return nil }}
	base := fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(healthyObjects()...)
	for _, object := range objects {
		base.WithObjects(object.DeepCopyObject().(client.Object))
	}
	f.Cluster = &Cluster{Clock: fixedClock(now)}
	f.Client = base.WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			gvk, err := c.GroupVersionKindFor(object)
			if err != nil {
				return err
			}
			f.requests = append(f.requests, "get "+gvk.Kind)
			if err := f.err(gvk.Kind); err != nil {
				return err
			}
			return c.Get(ctx, key, object, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			gvk, err := c.GroupVersionKindFor(list)
			if err != nil {
				return err
			}
			kind := strings.TrimSuffix(gvk.Kind, "List")
			f.requests = append(f.requests, "list "+kind)
			if err := f.err(kind); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
	f.Reader = f.Client
	return f
}

// healthyObjects returns the objects of a cluster that is not being updated.
func healthyObjects() []client.Object {
	installed := at("2026-11-14 03:12")
	objects := []client.Object{
		&configv1.ClusterVersion{
			ObjectMeta: metav1.ObjectMeta{Name: "version"},
			Status: configv1.ClusterVersionStatus{
				Desired: configv1.Release{Version: "4.20.6", Image: "image-4.20.6"},
				History: []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: "4.20.6", Image: "image-4.20.6", StartedTime: installed, CompletionTime: &installed}},
				Conditions: []configv1.ClusterOperatorStatusCondition{
					{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue, LastTransitionTime: installed},
					{Type: configv1.OperatorProgressing, Status: configv1.ConditionFalse, LastTransitionTime: installed},
					{Type: "Failing", Status: configv1.ConditionFalse, LastTransitionTime: installed},
				},
			},
		},
	}
	for _, name := range []string{"network", "machine-config"} {
		objects = append(objects, &configv1.ClusterOperator{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: configv1.ClusterOperatorStatus{
				Versions: []configv1.OperandVersion{{Name: "operator", Version: "4.20.6"}, {Name: "operator-image", Version: "image-4.20.6"}},
				Conditions: []configv1.ClusterOperatorStatusCondition{
					{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue},
					{Type: configv1.OperatorDegraded, Status: configv1.ConditionFalse},
					{Type: configv1.OperatorProgressing, Status: configv1.ConditionFalse},
				},
			},
		})
	}
	for _, role := range []string{"master", "worker"} {
		objects = append(objects, healthyNode(role+"-0", role), healthyPool(role), renderedConfig(role))
	}
	return objects
}

func healthyNode(name, role string) *corev1.Node {
	rendered := "rendered-" + role + "-1"
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"node-role.kubernetes.io/" + role: ""},
			Annotations: map[string]string{
				"machineconfiguration.openshift.io/currentConfig": rendered, "machineconfiguration.openshift.io/desiredConfig": rendered,
				"machineconfiguration.openshift.io/state": "Done",
			},
		},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

func healthyPool(name string) *mcfgv1.MachineConfigPool {
	configuration := mcfgv1.MachineConfigPoolStatusConfiguration{ObjectReference: corev1.ObjectReference{Name: "rendered-" + name + "-1"}}
	return &mcfgv1.MachineConfigPool{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: mcfgv1.MachineConfigPoolSpec{
			NodeSelector:  &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/" + name: ""}},
			Configuration: configuration,
		},
		Status: mcfgv1.MachineConfigPoolStatus{
			Configuration: configuration, MachineCount: 1, UpdatedMachineCount: 1, ReadyMachineCount: 1,
			Conditions: []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolUpdated, Status: corev1.ConditionTrue}},
		},
	}
}

func renderedConfig(role string) *mcfgv1.MachineConfig {
	return &mcfgv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{
		Name: "rendered-" + role + "-1",
		Annotations: map[string]string{
			"machineconfiguration.openshift.io/release-image-version":           "4.20.6",
			"machineconfiguration.openshift.io/generated-by-controller-version": "x",
		},
	}}
}

// lease returns the Lease of the Update Status Controller, renewed that long ago.
func lease(age time.Duration) client.Object {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: controllerNamespace, Name: controllerLease},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: now.Add(-age)}},
	}
}

// updateStatus returns what the controller has published.
func updateStatus(c screenCase) *updatev1beta1.UpdateStatus {
	active := metav1.Condition{Type: updatev1beta1.ConditionUpdateActive, Status: metav1.ConditionFalse, Reason: "x"}
	if c.assessment.State == updatev1beta1.StateProgressing {
		active.Status = metav1.ConditionTrue
	}
	pending := metav1.Condition{Type: updatev1beta1.ConditionUpdatePending, Status: metav1.ConditionTrue, Reason: "x"}
	if c.assessment.State == updatev1beta1.StateIdle {
		pending.Status = metav1.ConditionFalse
	}
	return &updatev1beta1.UpdateStatus{
		ObjectMeta: metav1.ObjectMeta{Name: updatev1beta1.UpdateStatusName},
		Status: updatev1beta1.UpdateStatusStatus{
			ControlPlane: &updatev1beta1.ControlPlaneStatus{Section: updatev1beta1.Section{Conditions: []metav1.Condition{active, pending}}},
			Assessment:   &c.assessment, ObservedTime: c.observed,
		},
	}
}

// runStatus runs "status" on a cluster.
func runStatus(tb testing.TB, cluster *Cluster, o statusOptions, format string) result {
	tb.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	p := New(Environment{Program: "/usr/bin/oc-update", Clock: clocktesting.NewFakeClock(cluster.Clock.Now()), Streams: streams, Terminal: &Terminal{}})
	o.format = outputFlags(&cobra.Command{})
	*o.format.flags.OutputFormat = format
	o.namespace = controllerNamespace
	err := p.report(tb.Context(), cluster, &o)
	if exit, ok := errors.AsType[*exitError](err); err != nil && (!ok || exit.err != nil) {
		fmt.Fprintln(errOut, p.explain(err))
	}
	return result{exitCode(err), out.String(), errOut.String()}
}

func notFound() error { return apierrors.NewNotFound(schema.GroupResource{}, "x") }

func forbidden() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("no"))
}

func unavailable() error { return apierrors.NewServiceUnavailable("overloaded") }

func TestStatus_of_the_controller_takes_three_requests(t *testing.T) {
	t.Parallel()
	cluster := newFakeCluster(t, updateStatus(idleScreen()), lease(4*time.Second))
	got := runStatus(t, cluster.Cluster, statusOptions{}, "")
	golden(t, "screens/idle-80.txt", got.out, false)
	if got.code != ExitDone || got.errOut != "" {
		t.Errorf("exit code %d, error %q", got.code, got.errOut)
	}
	if want := []string{"get UpdateStatus", "get Lease", "get ClusterVersion"}; !cmp.Equal(want, cluster.requests) {
		t.Errorf("requests %q, want %q", cluster.requests, want)
	}
}

// The status of an update that was requested, and that the Cluster Version Operator has not accepted yet,
// counts. That of an update that was accepted does not, if the ClusterVersion is not about it.
func TestStatus_of_a_requested_update(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		started *metav1.Time
		from    string
		counts  bool
	}{
		"requested":          {nil, "4.20.6", true},
		"started":            {ago(time.Minute), "4.20.6", false},
		"from other release": {nil, "4.20.5", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requested := progressingScreen() // the ClusterVersion is at 4.20.6
			requested.assessment.FromRelease, requested.assessment.Release, requested.assessment.StartedTime = tc.from, "4.20.7", tc.started
			p, err := published(t.Context(), newFakeCluster(t, updateStatus(requested), lease(0)), controllerNamespace, now)
			if err != nil || (p.stale == nil) != tc.counts {
				t.Errorf("stale: %+v, error %v, counts: %t", p.stale, err, tc.counts)
			}
		})
	}
}

// A status that may be outdated is not printed: the cluster is read instead, and the controller is
// missing.
func TestStatus_that_is_outdated_does_not_count(t *testing.T) {
	t.Parallel()
	old := progressingScreen()
	old.assessment.Release = "4.20.6"
	old.observed = ago(4 * time.Minute)
	paused := waitingScreen()
	paused.assessment.Release, paused.observed = "4.20.6", old.observed
	unassessed := updateStatus(idleScreen())
	unassessed.Status.Assessment = nil
	other := idleScreen()
	other.assessment.Release = "4.20.5"
	tests := map[string]struct {
		objects []client.Object
		err     func(kind string) error
		want    string
	}{
		"Lease is 61 seconds old":           {[]client.Object{updateStatus(idleScreen()), lease(61 * time.Second)}, nil, "no sign of life for 61s"},
		"no Lease":                          {[]client.Object{updateStatus(idleScreen())}, nil, "no sign of life"},
		"Lease is forbidden":                {[]client.Object{updateStatus(idleScreen()), lease(0)}, errorOf("Lease", forbidden()), "you are not allowed to read it"},
		"active and observed 4 minutes ago": {[]client.Object{updateStatus(old), lease(0)}, nil, "it has not confirmed its status for 4m"},
		"paused and observed 4 minutes ago": {[]client.Object{updateStatus(paused), lease(0)}, nil, "it has not confirmed its status for 4m"},
		"no assessment":                     {[]client.Object{unassessed, lease(0)}, nil, "no assessment"},
		"no status yet":                     {[]client.Object{lease(0)}, nil, "not published a status yet"},
		"about another release":             {[]client.Object{updateStatus(other), lease(0)}, nil, "about release 4.20.5"},
		"UpdateStatus is forbidden":         {[]client.Object{updateStatus(idleScreen()), lease(0)}, errorOf("UpdateStatus", forbidden()), "you are not allowed to read it"},
		"UpdateStatus is unavailable":       {[]client.Object{updateStatus(idleScreen()), lease(0)}, errorOf("UpdateStatus", unavailable()), "overloaded"},
		"ClusterVersion is forbidden":       {[]client.Object{updateStatus(idleScreen()), lease(0)}, errorOf("ClusterVersion", forbidden()), "cannot be compared"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := newFakeCluster(t, test.objects...)
			if test.err != nil {
				cluster.err = test.err
			}
			got := runStatus(t, cluster.Cluster, statusOptions{}, "")
			if unwrapped := strings.Join(strings.Fields(got.out), " "); !strings.Contains(unwrapped, "Update Status Controller: ") || !strings.Contains(unwrapped, test.want) {
				t.Errorf("the screen does not report %q of the controller:\n%s", test.want, got.out)
			}
			if strings.Contains(got.out, "Live") || got.errOut != "" {
				t.Errorf("error %q, screen:\n%s", got.errOut, got.out)
			}
		})
	}
}

func errorOf(kind string, err error) func(string) error {
	return func(of string) error {
		if of == kind {
			return err
		}
		return nil
	}
}

func TestStatus_without_the_controller(t *testing.T) {
	t.Parallel()
	noKinds := func(kind string) error {
		if strings.HasPrefix(kind, "Update") {
			return noMatch(kind)
		}
		return nil
	}
	tests := map[string]struct {
		err  func(string) error
		code ExitCode
		want []string
	}{
		"all is read":             {nil, ExitDone, []string{"UP TO DATE 4.20.6 since 2026-11-14 03:12 UTC (8d).", "Read just now; Update Status Controller is not installed."}},
		"nodes are forbidden":     {errorOf("Node", forbidden()), ExitUnknown, []string{"UNKNOWN", "nodes: you are not allowed to list them"}},
		"operators are forbidden": {errorOf("ClusterOperator", forbidden()), ExitUnknown, []string{"UNKNOWN", "operators: you are not allowed to list them"}},
		"pools are unavailable":   {errorOf("MachineConfigPool", unavailable()), ExitUnknown, []string{"UNKNOWN", "pools: overloaded"}},
		"no ClusterVersion":       {errorOf("ClusterVersion", notFound()), ExitUnknown, []string{"UNKNOWN", "ClusterVersion:"}},
		"no ClusterVersion kind":  {errorOf("ClusterVersion", noMatch("ClusterVersion")), ExitUnknown, []string{"UNKNOWN", "ClusterVersion:"}},
		"budgets are forbidden":   {errorOf("PodDisruptionBudget", forbidden()), ExitDone, []string{"UP TO DATE", "disruption budgets: you are not allowed to list them"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := newFakeCluster(t)
			cluster.err = func(kind string) error {
				if err := noKinds(kind); err != nil || test.err == nil {
					return err
				}
				return test.err(kind)
			}
			got := runStatus(t, cluster.Cluster, statusOptions{}, "")
			if got.code != test.code {
				t.Errorf("exit code %d, want %d:\n%s", got.code, test.code, got.out)
			}
			for _, want := range test.want {
				if !strings.Contains(strings.Join(strings.Fields(got.out), " "), want) {
					t.Errorf("the screen lacks %q:\n%s", want, got.out)
				}
			}
			if lists := countLists(cluster.requests); lists > maxLists {
				t.Errorf("%d lists, want at most %d: %q", lists, maxLists, cluster.requests)
			}
		})
	}
}

// noMatch returns the error of a kind that the API server does not serve.
func noMatch(kind string) error {
	return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: updatev1beta1.GroupVersion.Group, Kind: kind}}
}

func TestStatus_fails_if_the_cluster_cannot_be_reached(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"no connection": errors.New("connection refused"), "unauthorized": apierrors.NewUnauthorized("x")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := newFakeCluster(t)
			cluster.err = func(string) error { return err }
			if got := runStatus(t, cluster.Cluster, statusOptions{}, ""); got.code != ExitFailed || got.out != "" || len(cluster.requests) != 1 {
				t.Errorf("exit code %d after %q, want 1 after one request:\n%s", got.code, cluster.requests, got.out)
			}
		})
	}
}

func TestVerdicts_have_exit_codes(t *testing.T) {
	t.Parallel()
	for state, want := range map[updatev1beta1.AssessmentState]ExitCode{
		updatev1beta1.StateIdle: ExitDone, updatev1beta1.StateProgressing: ExitProgressing, updatev1beta1.StateWaiting: ExitWaiting,
		updatev1beta1.StateStuck: ExitActionRequired, updatev1beta1.StateUnknown: ExitUnknown, "Other": ExitUnknown,
	} {
		object := &updatev1beta1.UpdateStatus{Status: updatev1beta1.UpdateStatusStatus{Assessment: &updatev1beta1.Assessment{State: state}}}
		if got := verdict(snapshot{object: object}); got != want {
			t.Errorf("state %s: exit code %d, want %d", state, got, want)
		}
	}
	paused := &updatev1beta1.UpdateStatus{Status: updatev1beta1.UpdateStatusStatus{Assessment: &updatev1beta1.Assessment{State: updatev1beta1.StateWaiting, ActionRequired: true}}}
	if got := verdict(snapshot{object: paused}); got != ExitActionRequired {
		t.Errorf("a wait that a person ends: exit code %d, want %d", got, ExitActionRequired)
	}
	if got := verdict(snapshot{object: &updatev1beta1.UpdateStatus{}}); got != ExitUnknown {
		t.Errorf("no assessment: exit code %d, want %d", got, ExitUnknown)
	}
}

func TestStatus_prints_the_object(t *testing.T) {
	t.Parallel()
	cluster := newFakeCluster(t, updateStatus(stuckDrainScreen()), lease(0))
	cluster.err = errorOf("ClusterVersion", nil)
	got := runStatus(t, cluster.Cluster, statusOptions{}, "json")
	var object updatev1beta1.UpdateStatus
	if err := json.Unmarshal([]byte(got.out), &object); err != nil {
		t.Fatal(err)
	}
	if object.Kind != "UpdateStatus" || object.APIVersion != "config.openshift.io/v1beta1" || object.Status.Assessment.State != updatev1beta1.StateStuck || got.code != ExitActionRequired {
		t.Errorf("exit code %d, object:\n%s", got.code, got.out)
	}
	if got := runStatus(t, cluster.Cluster, statusOptions{}, "name"); got.out != "updatestatus.config.openshift.io/cluster\n" {
		t.Errorf("name %q", got.out)
	}
}

func TestStatus_waits_for_informers(t *testing.T) {
	t.Parallel()
	waiting := progressingScreen()
	waiting.assessment.Release = "4.20.6"
	waiting.assessment.Sources[5] = updatev1beta1.Source{Name: "informer mco-update-informer", Message: "no answer"}
	for wait, want := range map[time.Duration]int{0: 1, 12 * time.Second: 4} {
		t.Run(wait.String(), func(t *testing.T) {
			t.Parallel()
			cluster := newFakeCluster(t, updateStatus(waiting), lease(0))
			clock := clocktesting.NewFakeClock(now)
			p := New(Environment{Clock: clock, Terminal: &Terminal{}, Streams: genericiooptions.NewTestIOStreamsDiscard()})
			done := make(chan error)
			go func() {
				_, err := p.await(t.Context(), cluster.Cluster, &statusOptions{wait: wait, namespace: controllerNamespace})
				done <- err
			}()
			for {
				select {
				case err := <-done:
					if reads := strings.Count(strings.Join(cluster.requests, ","), "UpdateStatus"); err != nil || reads != want {
						t.Errorf("error %v, %d reads, want %d", err, reads, want)
					}
					return
				default:
					if clock.HasWaiters() {
						clock.Step(pollInterval)
					}
				}
			}
		})
	}
}

// The command that is printed about the controller names the namespace that the user gave.
func TestStatus_names_the_namespace_of_the_controller(t *testing.T) {
	t.Parallel()
	cluster := newFakeCluster(t)
	cluster.err = func(kind string) error {
		if kind == "Node" {
			return unavailable()
		}
		return nil
	}
	s, err := cluster.readStatus(t.Context(), "upgrades", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"oc -n upgrades get pods"}
	if remedy := s.object.Status.Assessment.Remedy; remedy == nil || !cmp.Equal(want, remedy.Commands) {
		t.Errorf("remedy %+v, want %q", remedy, want)
	}
}
