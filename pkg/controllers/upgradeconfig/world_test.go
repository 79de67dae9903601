// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/runbooks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/capacity"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/externaldeps"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/silence"
)

// noon is when every world begins; not at a whole second, for a real clock never is.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 700_000_000, time.UTC)

// operatorNamespace is where the lock is.
const operatorNamespace = "managed-upgrade-operator"

// world is all that there is around a Reconciler: an API server, a cache that
// follows it, a clock, others who act on the cluster, and a work queue. Looks
// are taken when an object has changed and when a look has asked for the next
// one, never otherwise.
type world struct {
	t       testing.TB
	clock   *testingclock.FakePassiveClock
	api     client.WithWatch
	cluster script

	reconciler *Reconciler // of this life of the process
	registry   *prometheus.Registry
	snapshot   Snapshot
	processes  int

	// plan decides what becomes of the operator's n-th write, from 1; nil means that all are applied.
	plan func(n int, what string) answer
	// latency is how long each write takes.
	latency time.Duration
	// frozen are the kinds of which the cache hears nothing.
	frozen map[string]bool
	// readError decides whether the operator can read an object; nil means that it can.
	readError func(kind string) error

	cache   map[string]map[client.ObjectKey]client.Object // by kind
	dirty   map[string]bool                               // kinds of which something was written
	deleted map[client.ObjectKey]metav1.Time              // when, by the clock of this world

	ready      []client.ObjectKey
	due        map[client.ObjectKey]time.Time
	failures   map[client.ObjectKey]int
	scheduled  []scheduledEvent
	reconciles int
	errors     []error // that looks have ended with
	burst      int     // looks since the clock moved

	specChanged bool // the spec of the ClusterVersion has changed: it has another generation

	writes            []string // that the operator has tried
	requests          []string // that the operator has made
	requestedVersions []string // what the operator has asked the cluster version operator for, "" to withdraw it
	completions       map[string]int
}

type scheduledEvent struct {
	at time.Time
	do func()
}

// answer is what becomes of a write.
type answer int

const (
	applied answer = iota
	refused
	conflicting
	invalid
	answeredWithError // although it was applied
	crashBefore
	crashAfter
)

// crash is what a crashing process panics with.
type crash struct{}

var errCrashed = errors.New("crashed")

// kinds are what the operator reads from its cache.
var kinds = map[string]func() client.ObjectList{
	kindOf(&v1alpha1.UpgradeConfig{}):   func() client.ObjectList { return &v1alpha1.UpgradeConfigList{} },
	kindOf(&configv1.ClusterVersion{}):  func() client.ObjectList { return &configv1.ClusterVersionList{} },
	kindOf(&configv1.ClusterOperator{}): func() client.ObjectList { return &configv1.ClusterOperatorList{} },
	kindOf(&mcfgv1.MachineConfigPool{}): func() client.ObjectList { return &mcfgv1.MachineConfigPoolList{} },
	kindOf(&corev1.Node{}):              func() client.ObjectList { return &corev1.NodeList{} },
	kindOf(&coordinationv1.Lease{}):     func() client.ObjectList { return &coordinationv1.LeaseList{} },
}

// kindOf is the name of an object's or a list's kind.
func kindOf(obj any) string {
	name := reflect.TypeOf(obj).String()
	return strings.TrimSuffix(name[strings.LastIndex(name, ".")+1:], "List")
}

// testScheme is for one world alone: its API server adds the kinds that it
// meets for the first time.
func testScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		v1alpha1.AddToScheme, corev1.AddToScheme, coordinationv1.AddToScheme, configv1.Install, mcfgv1.Install, policyv1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{
		t: t, clock: testingclock.NewFakePassiveClock(noon), cluster: healthy(),
		frozen: map[string]bool{}, dirty: map[string]bool{}, deleted: map[client.ObjectKey]metav1.Time{},
		cache: map[string]map[client.ObjectKey]client.Object{}, completions: map[string]int{},
	}
	scheme := testScheme()
	w.api = fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(scheme)).
		WithObjectTracker(clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())).
		WithStatusSubresource(&v1alpha1.UpgradeConfig{}).
		WithObjects(clusterObjects()...).Build()
	for _, obj := range objects {
		w.create(obj)
	}
	w.restart()
	return w
}

// restart begins another life of the process: with an empty memory and a cache
// that holds what there is.
func (w *world) restart() {
	w.processes++
	c := interceptor.NewClient(w.api, interceptor.Funcs{
		Get: w.cachedGet, List: w.cachedList,
		Create: func(ctx context.Context, api client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return w.write(ctx, "create "+kindOf(obj), obj, func() error { return api.Create(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, api client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return w.write(ctx, "patch "+kindOf(obj), obj, func() error { return api.Patch(ctx, obj, patch, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, api client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return w.write(ctx, "patch "+kindOf(obj)+"/"+sub, obj, func() error { return api.SubResource(sub).Patch(ctx, obj, patch, opts...) })
		},
	})
	w.registry = prometheus.NewPedanticRegistry()
	upgradeMetrics, err := metrics.NewUpgrades(w.registry)
	if err != nil {
		w.t.Fatal(err)
	}
	events := &notify.Events{Client: c, Clock: w.clock, OnFailure: upgradeMetrics.IncEventFailures}
	needed, err := externaldeps.New(externaldeps.Options{Timeout: time.Second})
	if err != nil {
		w.t.Fatal(err)
	}
	live := interceptor.NewClient(w.api, interceptor.Funcs{Get: w.liveGet})
	deps := runbooks.Deps{
		Client: c, Live: live, Notifier: events, Sources: &checks.Sources{AlertsDisabled: true}, Dependencies: needed,
		Silencer: &silence.Silencer{}, ExtraNodes: &capacity.ExtraNodes{Client: c, Live: live}, Config: config.Default(),
	}
	w.snapshot = Snapshot{
		Upgraders: map[string]ClusterUpgrader{"OSD": watched{w: w, upgrader: runbooks.OSD{Deps: deps}}},
		Config:    config.Default(),
	}
	w.reconciler = &Reconciler{
		Client: c, Live: live, Clock: w.clock, Namespace: operatorNamespace,
		Config: func() Snapshot { return w.snapshot }, Notifier: notify.MultiPublisher{Events: events}, Metrics: upgradeMetrics,
	}
	w.reconciler.init()
	w.ready, w.due, w.failures = nil, map[client.ObjectKey]time.Time{}, map[client.ObjectKey]int{}
	clear(w.cache)
	for kind := range kinds {
		w.dirty[kind] = true
	}
	w.frozen = map[string]bool{}
}

// watched is an upgrader whose steps must not be called once the API server
// holds that they are over.
type watched struct {
	w        *world
	upgrader ClusterUpgrader
}

func (u watched) Runbook(cfg *v1alpha1.UpgradeConfig) engine.Runbook {
	book := u.upgrader.Runbook(cfg)
	for _, steps := range [][]engine.Step{book.Steps, book.Cleanup} {
		for i := range steps {
			do, name := steps[i].Do, steps[i].Name
			steps[i].Do = func(ctx context.Context, run engine.Run) (engine.Result, error) {
				attempt := cfg.Status.History[0]
				stored, ok := u.w.stored(ctx, upgradeConfigKind, client.ObjectKeyFromObject(cfg)).(*v1alpha1.UpgradeConfig)
				if ok {
					if c := find(stored.Status.History, attempt.Version, attempt.Attempt, name); c != nil && c.CompleteTime != nil {
						u.w.t.Errorf("the step %s is over and is called again", name)
					}
				}
				return do(ctx, run)
			}
		}
	}
	return book
}

// write is a write of the operator.
func (w *world) write(ctx context.Context, what string, obj client.Object, do func() error) error {
	w.writes = append(w.writes, what)
	w.requests = append(w.requests, what)
	fate := applied
	if w.plan != nil {
		fate = w.plan(len(w.writes), what)
	}
	kind, key := kindOf(obj), client.ObjectKeyFromObject(obj)
	switch fate {
	case refused:
		return apierrors.NewInternalError(errors.New("refused by this test"))
	case conflicting:
		return apierrors.NewConflict(schema.GroupResource{Resource: kind}, key.Name, errors.New("by this test"))
	case invalid:
		return apierrors.NewInvalid(schema.GroupKind{Kind: kind}, key.Name, field.ErrorList{field.Invalid(field.NewPath("status"), "x", "by this test")})
	case crashBefore:
		panic(crash{})
	case applied, answeredWithError, crashAfter:
	}
	before := w.stored(ctx, kind, key)
	w.clock.SetTime(w.clock.Now().Add(w.latency))
	err := do()
	w.dirty[kind] = true
	if err == nil {
		w.inspect(before, w.stored(ctx, kind, key))
	}
	switch fate {
	case answeredWithError:
		return apierrors.NewTimeoutError("answered so by this test", 1)
	case crashAfter:
		panic(crash{})
	case applied, refused, conflicting, invalid, crashBefore:
	}
	return err
}

// stored is what the API server holds, or nil.
func (w *world) stored(ctx context.Context, kind string, key client.ObjectKey) client.Object {
	var obj client.Object
	switch kind {
	case kindOf(&v1alpha1.UpgradeConfig{}):
		obj = &v1alpha1.UpgradeConfig{}
	case kindOf(&configv1.ClusterVersion{}):
		obj = &configv1.ClusterVersion{}
	default:
		return nil
	}
	if err := w.api.Get(ctx, key, obj); err != nil {
		return nil
	}
	return obj
}

// inspect checks what holds of every write, and plays what the API server does of itself.
func (w *world) inspect(before, after client.Object) {
	switch after := after.(type) {
	case *configv1.ClusterVersion:
		was, is := before.(*configv1.ClusterVersion).Spec, after.Spec
		if reflect.DeepEqual(was, is) {
			return
		}
		if !reflect.DeepEqual(was.DesiredUpdate, is.DesiredUpdate) {
			requested := ""
			if is.DesiredUpdate != nil {
				requested = is.DesiredUpdate.Version
			}
			w.requestedVersions = append(w.requestedVersions, requested)
		}
		w.specChanged = true
	case *v1alpha1.UpgradeConfig:
		was, is := before.(*v1alpha1.UpgradeConfig).Status.History, after.Status.History
		if len(is) > maxHistory {
			w.t.Errorf("the history has %d elements", len(is))
		}
		for _, h := range is {
			i := slices.IndexFunc(was, func(old history.Record) bool { return old.Version == h.Version && old.Attempt == h.Attempt })
			if i >= 0 && isFinished(was[i]) && !reflect.DeepEqual(was[i], h) {
				w.t.Errorf("the attempt was over and is written again:\n%+v\n%+v", was[i], h)
			}
			for _, c := range h.Conditions {
				old := find(was, h.Version, h.Attempt, c.Type)
				switch {
				case old != nil && old.CompleteTime != nil && !reflect.DeepEqual(*old, c):
					w.t.Errorf("the step %s was over and is written again:\n%+v\n%+v", c.Type, *old, c)
				case c.CompleteTime != nil && (old == nil || old.CompleteTime == nil):
					w.completions[fmt.Sprintf("%s/%s %d %s", after.Namespace, h.Version, h.Attempt, c.Type)]++
				}
			}
		}
	}
}

func (w *world) cachedGet(_ context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	kind := kindOf(obj)
	if w.readError != nil {
		if err := w.readError(kind); err != nil {
			return err
		}
	}
	cached, ok := w.cache[kind][key]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, key.Name)
	}
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(cached.DeepCopyObject()).Elem())
	return nil
}

func (w *world) cachedList(_ context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	kind := kindOf(list)
	selector := (&client.ListOptions{}).ApplyOptions(opts).LabelSelector
	if w.readError != nil {
		if err := w.readError(kind); err != nil {
			return err
		}
	}
	var items []runtime.Object
	for _, key := range sorted(w.cache[kind]) {
		if cached := w.cache[kind][key]; selector == nil || selector.Matches(labels.Set(cached.GetLabels())) {
			items = append(items, cached.DeepCopyObject())
		}
	}
	return apimeta.SetList(list, items)
}

func (w *world) liveGet(ctx context.Context, api client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	w.requests = append(w.requests, "get "+kindOf(obj))
	err := api.Get(ctx, key, obj, opts...)
	w.setDeletionTime(obj)
	return err
}

// setDeletionTime puts the time of this world in the place of the real one.
func (w *world) setDeletionTime(obj client.Object) {
	if at, ok := w.deleted[client.ObjectKeyFromObject(obj)]; ok && obj.GetDeletionTimestamp() != nil {
		obj.SetDeletionTimestamp(&at)
	}
}

// sync lets the cache hear of what has changed, and queues whom it concerns.
func (w *world) sync() {
	others := false
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		if !w.dirty[kind] || w.frozen[kind] {
			continue
		}
		w.dirty[kind] = false
		all := kinds[kind]()
		if err := w.api.List(w.t.Context(), all); err != nil {
			w.t.Fatal(err)
		}
		items, err := apimeta.ExtractList(all)
		if err != nil {
			w.t.Fatal(err)
		}
		now := map[client.ObjectKey]client.Object{}
		for _, item := range items {
			obj := item.(client.Object)
			w.setDeletionTime(obj)
			now[client.ObjectKeyFromObject(obj)] = obj
		}
		changed := w.changedKeys(w.cache[kind], now)
		w.cache[kind] = now
		if kind != kindOf(&v1alpha1.UpgradeConfig{}) {
			others = others || len(changed) > 0
			continue
		}
		w.queue(changed...)
	}
	if others {
		for _, request := range w.reconciler.active(w.t.Context(), nil) {
			w.queue(request.NamespacedName)
		}
	}
}

func (w *world) changedKeys(before, after map[client.ObjectKey]client.Object) []client.ObjectKey {
	var keys []client.ObjectKey
	for key, obj := range after {
		if old, ok := before[key]; !ok || old.GetResourceVersion() != obj.GetResourceVersion() {
			keys = append(keys, key)
		}
	}
	for key := range before {
		if _, ok := after[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, byName)
	return keys
}

func sorted[V any](all map[client.ObjectKey]V) []client.ObjectKey {
	return slices.SortedFunc(maps.Keys(all), byName)
}

func byName(a, b client.ObjectKey) int { return strings.Compare(a.String(), b.String()) }

func (w *world) queue(keys ...client.ObjectKey) {
	for _, key := range keys {
		if !slices.Contains(w.ready, key) {
			w.ready = append(w.ready, key)
		}
	}
}

// after lets something happen by itself.
func (w *world) after(d time.Duration, do func()) {
	w.scheduled = append(w.scheduled, scheduledEvent{at: w.clock.Now().Add(d), do: do})
}

// runFor lets that much time pass.
func (w *world) runFor(d time.Duration) {
	w.t.Helper()
	end := w.clock.Now().Add(d)
	elapsed := false
	w.after(d, func() { elapsed = true })
	w.runUntil(func() bool { return elapsed && !w.clock.Now().Before(end) })
}

// runUntil plays until it is so; it must come to be so within a week.
func (w *world) runUntil(done func() bool) {
	w.t.Helper()
	for limit := w.clock.Now().Add(7 * 24 * time.Hour); w.clock.Now().Before(limit); {
		w.cluster.reconcile(w)
		w.sync()
		switch {
		case done():
			return
		case len(w.ready) > 0:
			w.processNextItem()
		case !w.advance():
			w.t.Fatalf("nobody will ever look again; %s", w.describe())
		}
	}
	w.t.Fatalf("it did not come to be so in a week; %s", w.describe())
}

// processNextItem takes the look whose turn it is, and does with the answer what a work queue does.
func (w *world) processNextItem() {
	w.t.Helper()
	key := w.ready[0]
	w.ready = w.ready[1:]
	w.reconciles++
	if w.burst++; w.burst > 60 {
		w.t.Fatalf("%d looks at once; %s; the last requests were %q", w.burst, w.describe(), w.requests[max(0, len(w.requests)-8):])
	}
	result, err := w.reconcile(key)
	switch {
	case errors.Is(err, errCrashed):
		w.restart()
		return
	case err != nil:
		w.failures[key]++
		w.errors = append(w.errors, err)
		w.addAfter(key, min(200*time.Millisecond<<min(w.failures[key]-1, 20), time.Minute))
		return
	case result.RequeueAfter < 0 || result.RequeueAfter > maxRequeue:
		w.t.Errorf("asked to look again in %s", result.RequeueAfter)
	case result.RequeueAfter > 0:
		w.addAfter(key, result.RequeueAfter)
	}
	w.failures[key] = 0
}

func (w *world) addAfter(key client.ObjectKey, in time.Duration) {
	at := w.clock.Now().Add(in)
	if before, ok := w.due[key]; !ok || at.Before(before) {
		w.due[key] = at
	}
}

func (w *world) reconcile(key client.ObjectKey) (result reconcile.Result, err error) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case crash{}:
			err = errCrashed
		default:
			panic(p)
		}
	}()
	ctx := ctrl.LoggerInto(w.t.Context(), logr.Discard())
	return w.reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: key})
}

// advance moves the clock to the next time at which something happens.
func (w *world) advance() bool {
	var next time.Time
	sooner := func(at time.Time) {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	for _, at := range w.due {
		sooner(at)
	}
	for _, h := range w.scheduled {
		sooner(h.at)
	}
	if next.IsZero() {
		return false
	}
	if next.After(w.clock.Now()) {
		w.clock.SetTime(next)
		w.burst = 0
	}
	for _, key := range sorted(w.due) {
		if !w.due[key].After(w.clock.Now()) {
			delete(w.due, key)
			w.queue(key)
		}
	}
	happened := w.scheduled
	w.scheduled = nil
	for _, h := range happened {
		if h.at.After(w.clock.Now()) {
			w.scheduled = append(w.scheduled, h)
			continue
		}
		h.do()
	}
	return true
}

// jump moves the clock, and with it nothing else: timers go on as they were.
func (w *world) jump(d time.Duration) {
	w.clock.SetTime(w.clock.Now().Add(d))
	for key, at := range w.due {
		w.due[key] = at.Add(d)
	}
	for i := range w.scheduled {
		w.scheduled[i].at = w.scheduled[i].at.Add(d)
	}
}

// create lets somebody create an object.
func (w *world) create(obj client.Object) {
	w.t.Helper()
	obj.SetUID(types.UID(fmt.Sprintf("%s-%s-%d", obj.GetNamespace(), obj.GetName(), w.reconciles)))
	obj.SetGeneration(1)
	if err := w.api.Create(w.t.Context(), obj); err != nil {
		w.t.Fatal(err)
	}
	w.dirty[kindOf(obj)] = true
}

// edit lets somebody change an object that was just read.
func (w *world) edit(obj client.Object, change func()) {
	w.t.Helper()
	change()
	if err := w.api.Update(w.t.Context(), obj); err != nil {
		w.t.Fatal(err)
	}
	w.dirty[kindOf(obj)] = true
}

// get is an UpgradeConfig as the API server holds it.
func (w *world) get(key client.ObjectKey) *v1alpha1.UpgradeConfig {
	w.t.Helper()
	var cfg v1alpha1.UpgradeConfig
	if err := w.api.Get(w.t.Context(), key, &cfg); err != nil {
		w.t.Fatal(err)
	}
	return &cfg
}

// updateSpec lets somebody change the spec.
func (w *world) updateSpec(key client.ObjectKey, change func(*v1alpha1.UpgradeConfigSpec)) {
	w.t.Helper()
	cfg := w.get(key)
	w.edit(cfg, func() {
		change(&cfg.Spec)
		cfg.Generation++
	})
}

// clearStatus lets somebody wipe the status.
func (w *world) clearStatus(key client.ObjectKey) {
	w.t.Helper()
	clear(w.completions)
	cfg := w.get(key)
	cfg.Status = v1alpha1.UpgradeConfigStatus{}
	if err := w.api.Status().Update(w.t.Context(), cfg); err != nil {
		w.t.Fatal(err)
	}
	w.dirty[kindOf(cfg)] = true
}

// remove lets somebody delete an UpgradeConfig.
func (w *world) remove(key client.ObjectKey) {
	w.t.Helper()
	cfg := w.get(key)
	w.deleted[key] = *toMetaTime(w.clock.Now())
	if len(cfg.Finalizers) > 0 {
		w.edit(cfg, func() { cfg.Generation++ })
	}
	if err := w.api.Delete(w.t.Context(), cfg); err != nil {
		w.t.Fatal(err)
	}
	w.dirty[kindOf(cfg)] = true
}

func (w *world) exists(key client.ObjectKey) bool {
	err := w.api.Get(w.t.Context(), key, &v1alpha1.UpgradeConfig{})
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	return err == nil
}

// holder is who holds the lock; empty if nobody does.
func (w *world) holder() string {
	var lease coordinationv1.Lease
	err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: lock.Name}, &lease)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// events counts the Events with that reason.
func (w *world) events(reason string) int {
	var list corev1.EventList
	if err := w.api.List(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	n := 0
	for i := range list.Items {
		if list.Items[i].Reason == reason {
			n++
		}
	}
	return n
}

func (w *world) describe() string {
	var list v1alpha1.UpgradeConfigList
	if err := w.api.List(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "it is %s, the lock is held by %q", w.clock.Now().Sub(noon), w.holder())
	for i := range list.Items {
		cfg := &list.Items[i]
		fmt.Fprintf(&text, "\n%s/%s, finalizers %v, deleted %v", cfg.Namespace, cfg.Name, cfg.Finalizers, cfg.DeletionTimestamp)
		for _, c := range cfg.Status.Conditions {
			fmt.Fprintf(&text, "\n  %s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
		for _, h := range cfg.Status.History {
			fmt.Fprintf(&text, "\n  %s %s, attempt %d", h.Version, h.Phase, h.Attempt)
			for _, c := range h.Conditions {
				fmt.Fprintf(&text, "\n    %s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
			}
		}
	}
	return text.String()
}

// getLease returns the Lease of the lock.
func (w *world) getLease() *coordinationv1.Lease {
	w.t.Helper()
	var lease coordinationv1.Lease
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: lock.Name}, &lease); err != nil {
		w.t.Fatal(err)
	}
	return &lease
}

// setLockHolder gives the lock to somebody, whoever has it; to nobody if the holder is zero.
func (w *world) setLockHolder(holder lock.Holder) {
	w.t.Helper()
	key := client.ObjectKey{Namespace: operatorNamespace, Name: lock.Name}
	var lease coordinationv1.Lease
	if err := w.api.Get(w.t.Context(), key, &lease); err != nil {
		w.t.Fatal(err)
	}
	w.edit(&lease, func() {
		lease.Spec.HolderIdentity = nil
		if holder != (lock.Holder{}) {
			lease.Spec.HolderIdentity = new(strings.Join([]string{holder.Kind, holder.Namespace, holder.Name, holder.UID}, "/"))
		}
	})
}

// lease is the lock as it is when that object holds it.
func (w *world) lease(cfg *v1alpha1.UpgradeConfig) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: lock.Name, ResourceVersion: "1"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new(strings.Join([]string{upgradeConfigKind, cfg.Namespace, cfg.Name, string(cfg.UID)}, "/")),
		},
	}
}

// createLock lets somebody take the lock before anybody else does.
func (w *world) createLock(holder lock.Holder) {
	w.create(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: lock.Name}})
	w.setLockHolder(holder)
}
