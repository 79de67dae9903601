// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateplan

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

const (
	from   = "4.14.8"
	target = "4.14.9"
)

// world is a simulated cluster at 4.14.8 to which 4.14.9 is offered, with the controller.
type world struct {
	*simulation.World

	t       *testing.T
	user    client.Client
	program *simulation.Program
	plan    simulation.Plan
	// requests are those to the API server.
	requests []string
	// remote are the update informers of the present process.
	remote *remote
	events []string
	// changes are the changes that were published, with the status before them.
	changes map[string]bool
	alerts  []clusterstate.Alert
	// metricsError is why the requests of pods are unknown; nil means that they are known.
	metricsError error
	// eventError is why no Event can be published once; nil means that one can.
	eventError error
}

// remote simulates the exchange with update informers: what they answer, by informer.
type remote struct {
	answers map[string]*insight.Answer
	asked   []v1alpha.UpdatePlanInsightsRequest
	known   map[types.NamespacedName]bool
	changed chan event.GenericEvent
}

func (r *remote) AskPlan(plan types.NamespacedName, request v1alpha.UpdatePlanInsightsRequest) {
	r.asked, r.known[plan] = append(r.asked, request), true
}

func (r *remote) ForgetPlan(plan types.NamespacedName) { delete(r.known, plan) }

func (r *remote) PlanAnswers(plan types.NamespacedName) ([]insight.Answer, bool) {
	var answers []insight.Answer
	for _, name := range slices.Sorted(maps.Keys(r.answers)) {
		if answer := r.answers[name]; r.known[plan] && answer != nil {
			answers = append(answers, *answer)
		}
	}
	return answers, r.known[plan]
}

// answer lets an informer answer all plans with warnings that have these uids.
func (w *world) answer(informer string, result insight.Result, uids ...string) {
	answer := insight.Answer{Informer: informer, Result: result, At: w.Now()}
	for _, uid := range uids {
		answer.Insights = append(answer.Insights, v1beta1.Insight{
			UID: uid, AcquisitionTime: metav1.NewTime(w.Now()),
			Scope: v1beta1.InsightScope{Type: v1beta1.ScopeControlPlane}, Impact: v1beta1.InsightImpact{Level: v1beta1.LevelWarning, Summary: uid},
		})
	}
	w.remote.answers[informer] = &answer
	select {
	case w.remote.changed <- event.GenericEvent{Object: &v1beta1.UpdateInformer{}}:
	default:
	}
}

// metrics knows of no pods that a drain moves.
type metrics struct{ *world }

func (m metrics) Samples(_ context.Context, query string) ([]checks.Sample, error) {
	if m.metricsError != nil {
		return nil, m.metricsError
	}
	value := 1.0
	if strings.Contains(query, "allocatable") {
		value = 8
	}
	var samples []checks.Sample
	for _, resource := range []string{"cpu", "memory"} {
		for _, node := range []string{"worker-0", "worker-1"} {
			samples = append(samples, checks.Sample{Labels: map[string]string{"node": node, "resource": resource}, Value: value})
		}
	}
	return samples, nil
}

// ActiveAlerts implements informers.Prometheus.
func (w *world) ActiveAlerts(context.Context) ([]clusterstate.Alert, error) { return w.alerts, nil }

// PublishChange implements EventPublisher.
func (w *world) PublishChange(_ context.Context, object client.Object, before any, _, reason, message string) {
	event := fmt.Sprintf("%s %s: %s", object.GetName(), reason, message)
	if change := asJSON(w.t, before) + event; !w.changes[change] {
		w.changes[change], w.events = true, append(w.events, event)
	}
}

// expectEvents compares the reasons of the Events of the plan of the target.
func (w *world) expectEvents(reasons ...string) {
	w.t.Helper()
	var got []string
	for _, event := range w.events {
		_, text, _ := strings.Cut(event, " ")
		reason, _, _ := strings.Cut(text, ":")
		got = append(got, reason)
	}
	if !slices.Equal(got, reasons) {
		w.t.Errorf("the Events are %s, want the reasons %s", strings.Join(w.events, "\n"), reasons)
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// PublishOnce implements EventPublisher.
func (w *world) PublishOnce(_ context.Context, object client.Object, _, reason, message string) error {
	if w.eventError != nil {
		return w.eventError
	}
	w.events = append(w.events, fmt.Sprintf("%s %s: %s", object.GetName(), reason, message))
	return nil
}

const definitionsFolder = "../../../deploy/update-status/crds"

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldWith(t, os.DirFS(definitionsFolder))
}

// newWorldWith returns a world with these CustomResourceDefinitions.
func newWorldWith(t *testing.T, crds fs.FS) *world {
	t.Helper()
	definitions, err := simulation.Definitions(crds)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{World: simulation.New(simulation.Options{MaxBurst: 300, Definitions: definitions}), t: t, changes: map[string]bool{}}
	w.user = w.Client("user")
	w.program = &simulation.Program{Name: "usc", Controllers: func(env simulation.Env) ([]manager.Controller, error) {
		answers := map[string]*insight.Answer{}
		if w.remote != nil {
			answers = w.remote.answers
		}
		w.remote = &remote{answers: answers, known: map[types.NamespacedName]bool{}, changed: make(chan event.GenericEvent, 1)}
		r := &Reconciler{
			Clock: env.Clock, Prometheus: w, Metrics: metrics{w}, LockNamespace: "home",
			Informers: w.remote, Changed: w.remote.changed, Events: w,
		}
		return []manager.Controller{r.Controller()}, nil
	}}
	w.program.Plan = func(request simulation.Request) simulation.Fault {
		if !request.Cached {
			w.requests = append(w.requests, request.String())
		}
		if w.plan != nil {
			return w.plan(request)
		}
		return simulation.Fault{}
	}
	w.program.OnCrash = func() { w.After(time.Minute, w.start) }
	w.must(w.Add(cluster()...))
	w.start()
	return w
}

// cluster returns the objects of a cluster that is ready.
func cluster() []client.Object {
	objects := []client.Object{
		&configv1.ClusterVersion{
			ObjectMeta: metav1.ObjectMeta{Name: "version", Generation: 1, UID: "v"},
			Spec:       configv1.ClusterVersionSpec{ClusterID: "bc75be34-e92d-4745-bb9d-8ec39e877854", Channel: "stable-4.14"},
			Status: configv1.ClusterVersionStatus{
				History:          []configv1.UpdateHistory{{Version: from, Image: "a@0", State: configv1.CompletedUpdate}},
				AvailableUpdates: []configv1.Release{{Version: target, Image: "a@1"}},
				Conditions:       []configv1.ClusterOperatorStatusCondition{{Type: configv1.RetrievedUpdates, Status: configv1.ConditionTrue}},
			},
		},
		operator("dns", configv1.ConditionFalse),
		&mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "worker"}, Spec: mcfgv1.MachineConfigPoolSpec{
			NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "worker"}},
		}},
		&operatorv1.Etcd{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Status: operatorv1.EtcdStatus{StaticPodOperatorStatus: operatorv1.StaticPodOperatorStatus{
			OperatorStatus: operatorv1.OperatorStatus{Conditions: []operatorv1.OperatorCondition{{Type: clusterstate.EtcdMembersAvailable, Status: "True"}}},
		}}},
	}
	for _, name := range []string{"worker-0", "worker-1"} {
		objects = append(objects, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": "worker"}},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		})
	}
	return objects
}

func operator(name string, degraded configv1.ConditionStatus) *configv1.ClusterOperator {
	return &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: configv1.ClusterOperatorStatus{Conditions: []configv1.ClusterOperatorStatusCondition{
		{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue}, {Type: configv1.OperatorDegraded, Status: degraded},
	}}}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) start() {
	w.t.Helper()
	_, err := w.Start(w.program)
	w.must(err)
}

func (w *world) runFor(d time.Duration) {
	w.t.Helper()
	w.must(w.RunFor(d))
}

// informer registers an enabled update informer.
func (w *world) informer(name string) {
	w.t.Helper()
	w.must(w.user.Create(w.t.Context(), &v1beta1.UpdateInformer{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.UpdateInformerSpec{
		ClientConfig: v1beta1.InformerClientConfig{Service: v1beta1.InformerService{Namespace: "a", Name: name, Port: 443}},
	}}))
}

// create creates the plan of a release.
func (w *world) create(release string) {
	w.t.Helper()
	w.must(w.user.Create(w.t.Context(), &v1beta1.UpdatePlan{ObjectMeta: metav1.ObjectMeta{Name: updateplan.Name(release)}, Spec: v1beta1.UpdatePlanSpec{TargetRelease: release}}))
}

func (w *world) get(release string) *v1beta1.UpdatePlan {
	w.t.Helper()
	var plan v1beta1.UpdatePlan
	w.must(w.user.Get(w.t.Context(), client.ObjectKey{Name: updateplan.Name(release)}, &plan))
	return &plan
}

// change changes the plan of the target.
func (w *world) change(change func(*v1beta1.UpdatePlan)) {
	w.t.Helper()
	plan := w.get(target)
	change(plan)
	w.must(w.user.Update(w.t.Context(), plan))
}

// setOperator sets whether the operator dns is degraded.
func (w *world) setOperator(degraded configv1.ConditionStatus) {
	w.t.Helper()
	w.must(w.Set(operator("dns", degraded)))
}

// setVersion changes the ClusterVersion.
func (w *world) setVersion(change func(*configv1.ClusterVersion)) {
	w.t.Helper()
	var version configv1.ClusterVersion
	w.must(w.user.Get(w.t.Context(), clusterstate.VersionKey, &version))
	change(&version)
	w.must(w.Set(&version))
}

// expect checks the reasons of the conditions Complete, Startable, and AcceptanceStale.
func (w *world) expect(complete, startable, stale string) {
	w.t.Helper()
	plan := w.get(target)
	var got []string
	for _, name := range []string{v1beta1.ConditionComplete, v1beta1.ConditionStartable, v1beta1.ConditionAcceptanceStale} {
		c := apimeta.FindStatusCondition(plan.Status.Conditions, name)
		if c == nil {
			w.t.Fatalf("the plan has no condition %s", name)
		}
		got = append(got, c.Reason)
	}
	if want := []string{complete, startable, stale}; !slices.Equal(got, want) {
		w.t.Errorf("the reasons are %v, want %v: %+v", got, want, plan.Status.Conditions)
	}
}
