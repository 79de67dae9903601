// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterversion

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

const (
	home      = "managed-upgrade-operator"
	clusterID = "bc75be34-e92d-4745-bb9d-8ec39e877854"
)

// world is a simulated API server with a ClusterVersion of OpenShift and the controller.
type world struct {
	*simulation.World

	t        *testing.T
	user     client.Client
	program  *simulation.Program
	plan     simulation.Plan
	registry *prometheus.Registry
	requests []string
}

// newWorld returns a world in which the controller has started.
func newWorld(t *testing.T, namespaces ...string) *world {
	t.Helper()
	w := &world{World: simulation.New(simulation.Options{}), t: t, registry: prometheus.NewPedanticRegistry()}
	w.user = w.Client("user")
	counted, err := metrics.NewClusterVersions(w.registry)
	w.must(err)
	if len(namespaces) == 0 {
		namespaces = []string{home}
	}
	w.program = &simulation.Program{Name: "operator", Controllers: func(env simulation.Env) ([]manager.Controller, error) {
		r := &Reconciler{
			Clock: env.Clock, Namespace: home, WatchNamespaces: namespaces,
			Events: &notify.Events{Client: env.Client, Clock: env.Clock}, Metrics: counted,
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
	w.must(w.Add(&configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "version", Generation: 1, UID: "openshift"},
		Spec:       configv1.ClusterVersionSpec{ClusterID: clusterID, Channel: "stable-4.10", DesiredUpdate: &configv1.Update{Version: "4.10.3"}},
		Status:     configv1.ClusterVersionStatus{History: []configv1.UpdateHistory{{Version: "4.10.3", State: configv1.CompletedUpdate}}},
	}))
	w.start()
	return w
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

// raw returns a template with the fields.
func raw(t *testing.T, fields map[string]any) v1beta1.ClusterVersionTemplate {
	t.Helper()
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return v1beta1.ClusterVersionTemplate{Spec: runtime.RawExtension{Raw: text}}
}

// create creates the ClusterVersion with a template.
func (w *world) create(template map[string]any, overlays ...v1beta1.ClusterVersionOverlay) {
	w.t.Helper()
	w.must(w.user.Create(w.t.Context(), &v1beta1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "version"},
		Spec:       v1beta1.ClusterVersionSpec{Template: raw(w.t, template), Overlays: overlays},
	}))
}

// overlay returns an overlay from a time after the start of the world.
func (w *world) overlay(after time.Duration, fields map[string]any) v1beta1.ClusterVersionOverlay {
	from := simulation.Start.Add(after).UTC().Format(time.RFC3339)
	return v1beta1.ClusterVersionOverlay{From: v1beta1.Timestamp(from), Overlay: raw(w.t, fields)}
}

// object returns the ClusterVersion.
func (w *world) object() *v1beta1.ClusterVersion {
	w.t.Helper()
	var object v1beta1.ClusterVersion
	w.must(w.user.Get(w.t.Context(), client.ObjectKey{Namespace: home, Name: "version"}, &object))
	return &object
}

// edit changes the ClusterVersion.
func (w *world) edit(template map[string]any) {
	w.t.Helper()
	object := w.object()
	object.Spec.Template = raw(w.t, template)
	w.must(w.user.Update(w.t.Context(), object))
}

// condition returns status and reason of a condition.
func (w *world) condition(name string) string {
	w.t.Helper()
	c := apimeta.FindStatusCondition(w.object().Status.Conditions, name)
	if c == nil {
		return "none"
	}
	return fmt.Sprintf("%s %s", c.Status, c.Reason)
}

func (w *world) message(name string) string {
	w.t.Helper()
	if c := apimeta.FindStatusCondition(w.object().Status.Conditions, name); c != nil {
		return c.Message
	}
	return ""
}

// openShift returns OpenShift's object.
func (w *world) openShift() *configv1.ClusterVersion {
	w.t.Helper()
	var version configv1.ClusterVersion
	w.must(w.user.Get(w.t.Context(), clusterstate.VersionKey, &version))
	return &version
}

// change changes the spec of OpenShift's object in the name of another client.
func (w *world) change(do func(*configv1.ClusterVersionSpec)) {
	w.t.Helper()
	version := w.openShift()
	do(&version.Spec)
	w.must(w.Client("kubectl").Update(w.t.Context(), version))
}

func setChannel(channel string) func(*configv1.ClusterVersionSpec) {
	return func(spec *configv1.ClusterVersionSpec) { spec.Channel = channel }
}

// setLock sets the holder of the upgrade lock; nil means none.
func (w *world) setLock(holder *string) {
	w.t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: lock.Name}}
	key := client.ObjectKeyFromObject(lease)
	if err := w.user.Get(w.t.Context(), key, lease); err != nil {
		lease.Spec.HolderIdentity = holder
		w.must(w.user.Create(w.t.Context(), lease))
		return
	}
	lease.Spec.HolderIdentity = holder
	w.must(w.user.Update(w.t.Context(), lease))
}

// events returns the reasons and messages of the Events, sorted by time.
func (w *world) events() []string {
	w.t.Helper()
	var list corev1.EventList
	w.must(w.user.List(w.t.Context(), &list))
	slices.SortFunc(list.Items, func(a, b corev1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	var texts []string
	for i := range list.Items {
		texts = append(texts, list.Items[i].Reason+": "+list.Items[i].Message)
	}
	return texts
}

// drifts returns the value of the counter of corrections of all fields.
func (w *world) drifts() int {
	w.t.Helper()
	return w.metric("managed_upgrade_clusterversion_drift_total")
}

// metric returns the sum of the series of a metric; -1 means that there are none.
func (w *world) metric(name string) int {
	w.t.Helper()
	families, err := w.registry.Gather()
	w.must(err)
	sum := -1.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		sum = 0
		for _, m := range family.GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return int(sum)
}
