// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/alerting"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
)

// World is a cluster with the operator that a scenario runs on. It runs either in real time, with
// the operator as a process, or in virtual time. A world runs one scenario.
type World interface {
	// Objects returns a client of the API server for objects of any kind.
	Objects() client.Client
	// Now returns the time of the world.
	Now() time.Time

	// Apply applies objects, and waits until the Deployments among them are available.
	Apply(ctx context.Context, objects []*unstructured.Unstructured) error
	// Subscribe registers a handler of the named objects. It is called before Observe.
	Subscribe(of Object, call Handler) error
	// Observe starts to call the handlers, and returns when they have received all existing objects.
	Observe(ctx context.Context) error
	// List returns the named objects. Objects of the API server must have been subscribed to.
	List(ctx context.Context, of Object) ([]*unstructured.Unstructured, error)
	// Notifications returns the types of the CloudEvents that the receiver got, in order.
	Notifications() []string

	// Go runs a script in the background.
	Go(script Script)
	// Step lets the world run until something may have changed, and for at most d. It returns an error
	// if the context ended or if a part of the world ended unexpectedly.
	Step(ctx context.Context, d time.Duration) error

	// SetRelease adds a release to the catalog, or replaces the one of that version.
	SetRelease(release updategraph.Release)
	// SetNode changes how a node behaves.
	SetNode(node Node)
	// SetInformer changes how an update informer answers, and starts it if it is not running.
	SetInformer(ctx context.Context, informer Informer) error
	// Command runs a command of oc; words[0] is "oc", and there is at least one other. Wait waits as in a
	// Script. An error means that the command could not be run.
	Command(ctx context.Context, wait func(time.Duration) bool, words []string) (CommandResult, error)
	// RunOperator starts, stops, kills, or restarts the operator, or kills its leader. It does not
	// wait until the operator is ready; AwaitOperator does.
	RunOperator(ctx context.Context, verb string) error
	// AwaitOperator returns when all replicas of the operator are ready.
	AwaitOperator(ctx context.Context) error
	// Configure replaces the operator's configuration file.
	Configure(config map[string]any) error
	// Server starts, stops, or kills a server.
	Server(ctx context.Context, server Server, verb string) error
	// Fire makes an alert fire, and returns when Prometheus reports it.
	Fire(ctx context.Context, alert alerting.Alert) error
	// Resolve resolves all alerts of that name, and returns when Prometheus no longer reports them.
	Resolve(ctx context.Context, name string) error
}

// Handler receives each state of an object; the last one when the object is deleted. It returns
// quickly.
type Handler func(object *unstructured.Unstructured, deleted bool)

// Script is a sequence of actions. It waits by calling wait, which returns false if the run has
// ended. The context ends with the run.
type Script func(ctx context.Context, wait func(time.Duration) bool)

// Server is a server that an action can start, stop, or kill.
type Server string

// The servers of a cluster.
const (
	APIServer    Server = "apiServer"
	Etcd         Server = "etcd"
	Prometheus   Server = "prometheus"
	Alertmanager Server = "alertmanager"
	Receiver     Server = "receiver"
)
