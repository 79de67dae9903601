// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package virtual runs scenarios in virtual time. The operator's controllers and the OpenShift
// simulators run in one process with package simulation, and hours pass in seconds.
//
// Prometheus, Alertmanager, and the notification receiver are simulated. There are no processes,
// permissions, leader election, admission policies, or configuration files. Scenarios that need any
// of these must set binary: true.
package virtual

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/manifests"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/scenario"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/operator"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/aftermath"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/statuscontroller"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// ErrBinary is returned for scenarios and actions that need the operator's binary.
var ErrBinary = errors.New("not possible in virtual time: the scenario needs binary: true")

// settlePoll is the maximum duration of a Step in which nothing changes.
const settlePoll = 5 * time.Second

// restartDelay is the time that the operator takes to restart and to become ready.
const restartDelay = time.Second

// World is a simulated cluster with the operator.
type World struct {
	Cluster *openshift.Cluster

	simulation *simulation.World
	program    *simulation.Program
	operator   *simulation.Process // nil if the operator is not running
	// statusController is the Update Status Controller, or nil if it is not installed.
	statusController *simulation.Process
	registry         *prometheus.Registry // of the current life of the operator
	requests         aftermath.Requests   // made by the operator
	update           UpdateProgram
	alerts           checks.AlertSource // nil if the cluster has no monitoring
	receiver         receiver
	handlers         map[schema.GroupVersionKind][]scenario.Handler
	observing        bool
	notifying        bool // handlers are being called for a change
	changes          int  // number of stored changes
	stops            []func()
}

// New installs a cluster and prepares the operator. update runs the kubectl-update commands; it may
// be nil if the scenario has none.
func New(story *scenario.Scenario, update UpdateProgram) (*World, error) {
	if story.Binary {
		return nil, ErrBinary
	}
	definitions, err := openshift.Definitions()
	if err != nil {
		return nil, fmt.Errorf("reading CustomResourceDefinitions: %w", err)
	}
	text, err := scenario.ConfigFile(story.Operator.Config, nil)
	if err != nil {
		return nil, fmt.Errorf("writing the operator's configuration: %w", err)
	}
	settings, err := config.Parse([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("reading the operator's configuration: %w", err)
	}
	if story.Cluster.Monitoring == nil { // as for an operator on a dev cluster
		settings.Alerts.URL, settings.Alertmanager.URL = "", ""
	}
	w := &World{
		simulation: simulation.New(simulation.WorldOptions{Definitions: definitions}),
		handlers:   map[schema.GroupVersionKind][]scenario.Handler{},
		update:     update,
	}
	if w.Cluster, err = openshift.New(w.simulation, story.Cluster); err != nil {
		return nil, err
	}
	w.simulation.Observe(w.observe)
	if story.Cluster.Monitoring != nil {
		w.alerts = w.Cluster.Alerts
		for _, alert := range story.Cluster.Monitoring.Alerts {
			w.Cluster.Alerts.Fire(alert)
		}
	}
	w.program = w.newProgram(settings)
	if story.UpdateStatus {
		if w.statusController, err = w.simulation.Start(w.newStatusController()); err != nil {
			return nil, fmt.Errorf("starting the Update Status Controller: %w", err)
		}
	}
	return w, nil
}

// newStatusController returns the Update Status Controller as a simulated program.
func (w *World) newStatusController() *simulation.Program {
	return &simulation.Program{
		Name: statuscontroller.Component, Latency: 5 * time.Millisecond,
		Controllers: func(env simulation.Env) ([]manager.Controller, error) {
			o := statuscontroller.Options{ServiceAccount: statuscontroller.Component}
			o.Namespace = openshiftsim.OperatorNamespace
			return statuscontroller.NewControllers(o, manager.Clients{Client: env.Client, Live: env.Live}, env.Clock, w.alerts)
		},
	}
}

// newProgram returns the operator as a simulated program: all controllers, the OSD and ARO
// runbooks, and the simulated monitoring.
func (w *World) newProgram(settings config.Config) *simulation.Program {
	register := func(deps upgraders.Deps) (map[string]upgraders.ClusterUpgrader, error) {
		return map[string]upgraders.ClusterUpgrader{"OSD": upgraders.OSD{Deps: deps}, "ARO": upgraders.ARO{Deps: deps}}, nil
	}
	return &simulation.Program{
		Name: "operator", Latency: 5 * time.Millisecond,
		Controllers: func(env simulation.Env) ([]manager.Controller, error) {
			w.registry = prometheus.NewRegistry()
			return operator.NewControllers(
				manager.Options{Namespace: openshiftsim.OperatorNamespace}, settings, manager.Clients{Client: env.Client, Live: env.Live},
				env.Clock, register,
				operator.Externals{Prometheus: w.Cluster.Alerts, Alertmanager: w.Cluster.Alertmanager, Webhook: w.newWebhook(env), Registry: w.registry},
			)
		},
	}
}

// Aftermath returns an error that lists what upgrades have left behind. It checks nothing if the
// operator has never run.
func (w *World) Aftermath(ctx context.Context) error {
	if w.operator == nil {
		return nil
	}
	scene := aftermath.Scene{Objects: w.Cluster.Client, Namespace: openshiftsim.OperatorNamespace, Now: w.simulation.Now(), Requests: &w.requests}
	if w.operator.Alive() {
		var err error
		if scene.Series, err = w.registry.Gather(); err != nil {
			return fmt.Errorf("gathering the metrics: %w", err)
		}
	}
	return scene.Check(ctx)
}

// Stop stops the scripts and the operator.
func (w *World) Stop() {
	for _, stop := range w.stops {
		stop()
	}
	w.stops = nil
	w.kill()
	if w.statusController != nil {
		w.statusController.Kill()
	}
}

// Objects returns a client for the simulated API server.
func (w *World) Objects() client.Client { return administrator{w.Cluster.Client, w.simulation} }

// administrator is a client that can delete unused CustomResourceDefinitions and knows its user
// name.
type administrator struct {
	client.Client
	simulation *simulation.World
}

// Delete deletes an object.
func (a administrator) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	if obj.GetObjectKind().GroupVersionKind().Kind != "CustomResourceDefinition" {
		return a.Client.Delete(ctx, obj, opts...)
	}
	a.simulation.StopServing(schema.ParseGroupResource(obj.GetName()))
	return nil
}

// Now returns the virtual time.
func (w *World) Now() time.Time { return w.simulation.Now() }

// availableLimit limits how long Deployments may take to become available.
const availableLimit = 10 * time.Minute

// Apply applies objects. Before the run, it also waits until the Deployments among them are
// available.
func (w *World) Apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	if err := manifests.Apply(ctx, w.Cluster.Client, objects); err != nil || w.observing {
		return err
	}
	err := w.simulation.RunUntil(availableLimit, func() bool {
		return !slices.ContainsFunc(objects, func(object *unstructured.Unstructured) bool { return !w.available(ctx, object) })
	})
	if err != nil {
		return fmt.Errorf("waiting until the Deployments are available: %w", err)
	}
	return nil
}

// available reports whether an object is a Deployment whose pods are all ready, or not a
// Deployment.
func (w *World) available(ctx context.Context, object *unstructured.Unstructured) bool {
	if object.GetKind() != "Deployment" {
		return true
	}
	var current appsv1.Deployment
	if err := w.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(object), &current); err != nil {
		return false
	}
	return current.Status.ReadyReplicas >= ptr.Deref(current.Spec.Replicas, 1)
}

// Subscribe registers a handler. It is called whenever the API server stores a change. Silences and
// CloudEvents are not stored there and are passed to the handlers after each Step.
func (w *World) Subscribe(of scenario.Object, call scenario.Handler) error {
	if of.Kind == scenario.KindAlert {
		return fmt.Errorf("subscribing to %s: %w", of, ErrBinary)
	}
	gvk := of.GVK()
	w.handlers[gvk] = append(w.handlers[gvk], func(object *unstructured.Unstructured, deleted bool) {
		if of.Matches(object) {
			call(object, deleted)
		}
	})
	return nil
}

// Observe starts calling the handlers.
func (w *World) Observe(ctx context.Context) error {
	w.observing = true
	return w.observeAll(ctx, func(schema.GroupVersionKind) bool { return true })
}

// observeAll calls the handlers of the selected kinds with all objects.
func (w *World) observeAll(ctx context.Context, of func(schema.GroupVersionKind) bool) error {
	for gvk, handlers := range w.handlers {
		if !of(gvk) {
			continue
		}
		objects, err := w.list(ctx, gvk)
		if err != nil {
			return err
		}
		for _, object := range objects {
			for _, call := range handlers {
				call(object, false)
			}
		}
	}
	return nil
}

func (w *World) observe(change simulation.Change) {
	w.requests.Observe(change.Old, change.New, change.Actor == w.program.Name)
	w.changes++
	before := w.notifying
	w.notifying = true
	defer func() { w.notifying = before }()
	handlers := w.handlers[change.Kind]
	if !w.observing || len(handlers) == 0 {
		return
	}
	object, err := toUnstructured(change.Object(), change.Kind)
	if err != nil {
		w.simulation.Fail(err)
		return
	}
	for _, call := range handlers {
		call(object, change.New == nil)
	}
}

func toUnstructured(object client.Object, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	if known, is := object.(*unstructured.Unstructured); is {
		return known.DeepCopy(), nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %s: %w", gvk.Kind, object.GetName(), err)
	}
	encoded := &unstructured.Unstructured{Object: content}
	encoded.SetGroupVersionKind(gvk)
	return encoded, nil
}

// List returns the named objects.
func (w *World) List(ctx context.Context, of scenario.Object) ([]*unstructured.Unstructured, error) {
	objects, err := w.list(ctx, of.GVK())
	return slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool { return !of.Matches(object) }), err
}

func (w *World) list(ctx context.Context, gvk schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	if isExternal(gvk) {
		return w.listExternal(ctx, gvk.Kind)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := w.Cluster.Client.List(ctx, list); err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("listing %s: %w", gvk.Kind, err)
	}
	objects := make([]*unstructured.Unstructured, 0, len(list.Items))
	for i := range list.Items {
		objects = append(objects, &list.Items[i])
	}
	return objects, nil
}

// Go runs a script in virtual time.
func (w *World) Go(script scenario.Script) {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:gosec // Stop calls cancel
	next, stop := iter.Pull(func(yield func(time.Duration) bool) { script(ctx, yield) })
	w.stops = append(w.stops, cancel, stop)
	var advance func()
	advance = func() {
		if d, waits := next(); waits {
			w.simulation.After(d, advance)
		}
	}
	if w.notifying { // a handler must not write
		w.simulation.After(0, advance)
	} else {
		advance()
	}
}

// Step runs the simulation until something changes or five seconds have passed.
func (w *World) Step(ctx context.Context, _ time.Duration) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	before, end := w.changes, w.simulation.Now().Add(settlePoll)
	w.simulation.After(settlePoll, func() {})
	err := w.simulation.RunUntil(2*settlePoll, func() bool { return w.changes > before || !w.simulation.Now().Before(end) })
	if err != nil {
		return err
	}
	return w.observeAll(ctx, isExternal)
}

// SetRelease adds a release to the catalog or replaces the release with the same version.
func (w *World) SetRelease(release updategraph.Release) { w.Cluster.Catalog.Set(release) }

// SetNode changes the behavior of a node.
func (w *World) SetNode(node scenario.Node) {
	node.Apply(w.Cluster.MachineConfig, w.Cluster.Kubelets)
}

// SetInformer returns ErrBinary because virtual time has no network.
func (w *World) SetInformer(context.Context, scenario.Informer) error { return ErrBinary }

// RunOperator starts, kills, or restarts the operator. It never stops it gracefully.
func (w *World) RunOperator(_ context.Context, verb string) error {
	switch verb {
	case "start":
		return w.startOperator()
	case "restart":
		w.kill()
		w.simulation.After(restartDelay, func() {
			if err := w.startOperator(); err != nil {
				w.simulation.Fail(err)
			}
		})
		return nil
	default:
		w.kill()
		return nil
	}
}

func (w *World) startOperator() error {
	if w.operator != nil && w.operator.Alive() {
		return nil
	}
	var err error
	w.operator, err = w.simulation.Start(w.program)
	return err
}

func (w *World) kill() {
	if w.operator != nil {
		w.operator.Kill()
	}
}

// AwaitOperator lets the time pass that the operator takes to become ready.
func (w *World) AwaitOperator(context.Context) error { return w.simulation.RunFor(restartDelay) }

// Configure returns ErrBinary because the configuration of a simulated operator is fixed.
func (w *World) Configure(map[string]any) error { return ErrBinary }
