// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package binary runs scenarios on a dev cluster in real time. The operator runs as a process with
// the permissions of its ServiceAccount.
package binary

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/alerting"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/childprocess"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/manifests"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/scenario"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
)

// WorldOptions configure a World.
type WorldOptions struct {
	// BinDir is the folder with the programs, including the operator. It defaults to the bin folder of
	// the working directory's Go module.
	BinDir string
	// Dir is the state folder of the cluster.
	Dir string
	// Repository is the checkout whose deploy folder is applied.
	Repository string
}

// statusGrace is how long the Update Status Controller may take to exit.
const statusGrace = 10 * time.Second

// World is a dev cluster with the operator.
type World struct {
	Cluster  *devcluster.Cluster
	Operator *devcluster.Operator

	objects client.Client // of any kind
	watches *watches
	observe func(context.Context) error // starts the watches
	run     func(scenario.Script)       // runs a script until stop is called
	stop    context.CancelFunc
	scripts sync.WaitGroup

	repository string
	informers  informers
	// status is the Update Status Controller; nil if it is not installed.
	status *childprocess.Process
}

// New starts a cluster and prepares the operator. The context limits only the start; call Stop to
// stop both.
func New(ctx context.Context, story *scenario.Scenario, options WorldOptions) (*World, error) {
	cluster, err := devcluster.Start(ctx, devcluster.Options{BinDir: options.BinDir, Dir: options.Dir, Spec: story.Cluster})
	if err != nil {
		return nil, err
	}
	w := &World{Cluster: cluster, repository: options.Repository}
	if err := w.prepare(ctx, story, options.Repository); err != nil {
		return nil, errors.Join(err, w.Stop())
	}
	return w, nil
}

func (w *World) prepare(ctx context.Context, story *scenario.Scenario, repository string) error {
	var err error
	if w.objects, err = manifests.Client(w.Cluster.RESTConfig()); err != nil {
		return err
	}
	if err := w.Cluster.Deploy(ctx, repository); err != nil {
		return err
	}
	if story.UpdateStatus {
		if w.status, err = w.Cluster.StartStatusController(ctx, repository); err != nil {
			return fmt.Errorf("starting the Update Status Controller: %w", err)
		}
	}
	text, err := scenario.ConfigFile(story.Operator.Config, w.addresses())
	if err != nil {
		return fmt.Errorf("writing the operator's configuration: %w", err)
	}
	w.Operator, err = w.Cluster.PrepareOperator(ctx, devcluster.OperatorOptions{
		Config:   text,
		Replicas: story.Operator.Replicas,
		Restart:  story.Operator.Replicas > 1, // a single replica has no leadership to lose
	})
	if err != nil {
		return err
	}
	if w.watches, err = newWatches(w.Cluster.RESTConfig(), w.objects.RESTMapper(), pollFuncs(w.Cluster)); err != nil {
		return err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx)) // scripts and watches outlive the start
	w.stop = stop
	w.observe = func(ctx context.Context) error { return w.watches.start(ctx, running) }
	w.run = func(script scenario.Script) {
		w.scripts.Go(func() { script(running, func(d time.Duration) bool { return pause(running, d) }) })
	}
	return nil
}

// addresses returns the addresses of the cluster's servers, by the variables that stand for them in
// a scenario's configuration.
func (w *World) addresses() map[string]string {
	known := map[string]string{scenario.ReceiverURL: w.Cluster.Sink.URL()}
	if running := w.Cluster.Monitoring; running != nil {
		known[scenario.PrometheusURL], known[scenario.AlertmanagerURL] = running.PrometheusURL(), running.AlertmanagerURL()
	}
	return known
}

// Stop stops the scripts, the operator, and the cluster. It may be called more than once.
func (w *World) Stop() error {
	if w.stop != nil {
		w.stop()
		w.scripts.Wait()
		w.watches.wait()
	}
	var err error
	if w.Operator != nil {
		err = w.Operator.Stop()
	}
	if w.status != nil {
		err = errors.Join(err, w.status.Stop(statusGrace))
	}
	return errors.Join(err, w.informers.stop(), w.Cluster.Stop())
}

// Objects returns a client with all permissions for any kind.
func (w *World) Objects() client.Client { return w.objects }

// Now returns the real time.
func (w *World) Now() time.Time { return time.Now() }

// Apply applies objects and waits until the Deployments among them are available.
func (w *World) Apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	if err := manifests.Apply(ctx, w.objects, objects); err != nil {
		return err
	}
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			current := object.DeepCopy()
			if err := w.objects.Get(ctx, client.ObjectKeyFromObject(object), current); err != nil {
				return false, err
			}
			desired, _, _ := unstructured.NestedInt64(current.Object, "spec", "replicas")
			ready, _, _ := unstructured.NestedInt64(current.Object, "status", "readyReplicas")
			return ready >= desired, nil
		})
		if err != nil {
			return fmt.Errorf("waiting until Deployment %s is available: %w", client.ObjectKeyFromObject(object), err)
		}
	}
	return nil
}

// Subscribe registers a handler. It is called in a separate goroutine.
func (w *World) Subscribe(of scenario.Object, call scenario.Handler) error {
	return w.watches.subscribe(of, call)
}

// Observe starts the watches.
func (w *World) Observe(ctx context.Context) error { return w.observe(ctx) }

// List returns the named objects.
func (w *World) List(ctx context.Context, of scenario.Object) ([]*unstructured.Unstructured, error) {
	return w.watches.objects(ctx, of)
}

// CloudEvents returns the received notifications in order.
func (w *World) CloudEvents() []event.Event { return w.Cluster.Sink.Events() }

// Go runs a script in a separate goroutine.
func (w *World) Go(script scenario.Script) { w.run(script) }

// Step waits for d. It returns an error if the context ends or a process has ended unexpectedly.
func (w *World) Step(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-w.Cluster.Exited():
		return err
	case err := <-w.Operator.Exited():
		return err
	case <-timer.C:
		return nil
	}
}

// SetRelease adds a release to the catalog, or replaces the release with the same version.
func (w *World) SetRelease(release updategraph.Release) { w.Cluster.Catalog.Set(release) }

// SetNode changes the behavior of a node.
func (w *World) SetNode(node scenario.Node) {
	node.Apply(w.Cluster.MachineConfig, w.Cluster.Kubelets)
}

// RunOperator starts, stops, kills, or restarts the processes of the operator, or kills the leader.
func (w *World) RunOperator(ctx context.Context, verb string) error {
	switch verb {
	case "start":
		return w.Operator.Start()
	case "stop":
		return w.Operator.Stop()
	case "kill":
		return w.Operator.Kill()
	case "restart":
		return w.Operator.Restart()
	default:
		leader, err := w.leader(ctx)
		if err != nil {
			return err
		}
		return leader.Kill()
	}
}

// leader returns the leading replica. A single replica leads without an election.
func (w *World) leader(ctx context.Context) (*devcluster.Replica, error) {
	replicas := w.Operator.Replicas()
	if len(replicas) == 1 {
		return replicas[0], nil
	}
	for _, replica := range replicas {
		if leads, err := replica.IsLeader(ctx); err == nil && leads { // a replica that is down is not the leader
			return replica, nil
		}
	}
	return nil, errors.New("finding the leader: no replica reports that it leads")
}

// AwaitOperator waits until all replicas are ready, or until one has ended.
func (w *World) AwaitOperator(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		select {
		case err := <-w.Operator.Exited():
			return false, err
		default:
		}
		waiting := func(replica *devcluster.Replica) bool { return !replica.Ready(ctx) }
		return !slices.ContainsFunc(w.Operator.Replicas(), waiting), nil
	})
}

// Configure replaces the operator's configuration file. The operator reads it every 10 seconds.
func (w *World) Configure(config map[string]any) error {
	text, err := scenario.ConfigFile(config, w.addresses())
	if err != nil {
		return fmt.Errorf("writing the operator's configuration: %w", err)
	}
	return w.Operator.Configure(text)
}

// Server starts, stops, or kills a server. A start returns when the server is ready.
func (w *World) Server(ctx context.Context, server scenario.Server, verb string) error {
	start := verb == "start"
	switch server {
	case scenario.APIServer:
		return w.controlPlane(ctx, verb, w.Cluster.StartAPIServer, w.Cluster.StopAPIServer, w.Cluster.KillAPIServer)
	case scenario.Etcd:
		return w.controlPlane(ctx, verb, w.Cluster.StartEtcd, w.Cluster.StopEtcd, w.Cluster.KillEtcd)
	case scenario.Receiver:
		if start {
			return w.Cluster.Sink.Start()
		}
		return w.Cluster.Sink.Stop()
	case scenario.Prometheus:
		if start {
			return w.Cluster.Monitoring.StartPrometheus(ctx)
		}
		return w.Cluster.Monitoring.StopPrometheus()
	case scenario.Alertmanager:
		if start {
			return w.Cluster.Monitoring.StartAlertmanager(ctx)
		}
		return w.Cluster.Monitoring.StopAlertmanager()
	}
	return fmt.Errorf("unknown server %q", server)
}

func (*World) controlPlane(ctx context.Context, verb string, start func(context.Context) error, stop, kill func() error) error {
	switch verb {
	case "start":
		return start(ctx)
	case "kill":
		return kill()
	default:
		return stop()
	}
}

// Fire makes an alert fire.
func (w *World) Fire(ctx context.Context, alert alerting.Alert) error {
	return w.Cluster.Monitoring.Fire(ctx, alert)
}

// Resolve resolves all alerts with a name.
func (w *World) Resolve(ctx context.Context, name string) error {
	return w.Cluster.Monitoring.Resolve(ctx, name)
}
