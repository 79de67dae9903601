// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/alerting"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
)

// World is the cluster and the operator that a scenario runs on. It runs either in real time, with
// the operator as a process, or in virtual time. Each world runs a single scenario.
type World interface {
	// Objects returns a client for objects of any kind on the API server.
	Objects() client.Client
	// Now returns the time of the world.
	Now() time.Time

	// Apply applies objects and waits until the Deployments among them are available.
	Apply(ctx context.Context, objects []*unstructured.Unstructured) error
	// Subscribe registers a handler for the named objects. It must be called before Observe.
	Subscribe(of Object, call Handler) error
	// Observe starts calling the handlers and returns when they have received all existing objects.
	Observe(ctx context.Context) error
	// List returns the named objects. Objects of the API server require an earlier call of Subscribe.
	List(ctx context.Context, of Object) ([]*unstructured.Unstructured, error)
	// CloudEvents returns the received notifications in order.
	CloudEvents() []event.Event

	// Go runs a script in the background.
	Go(script Script)
	// Step lets the world run until something may have changed, for at most d. It returns an error if
	// the context ends or a part of the world ended unexpectedly.
	Step(ctx context.Context, d time.Duration) error

	// SetRelease adds a release to the catalog or replaces the release with the same version.
	SetRelease(release updategraph.Release)
	// SetNode changes the behavior of a node.
	SetNode(node Node)
	// SetInformer changes the responses of an update informer and starts it if it is not running.
	SetInformer(ctx context.Context, informer Informer) error
	// Command runs a command of oc. words[0] is "oc", followed by at least one more word. wait is the
	// same as for a Script. An error is returned only if the command could not be run.
	Command(ctx context.Context, wait func(time.Duration) bool, words []string) (CommandResult, error)
	// RunOperator starts, stops, kills, or restarts the operator, or kills its leader. It does not
	// wait until the operator is ready (see AwaitOperator).
	RunOperator(ctx context.Context, verb string) error
	// AwaitOperator returns when all replicas of the operator are ready.
	AwaitOperator(ctx context.Context) error
	// Configure replaces the operator's configuration file.
	Configure(config map[string]any) error
	// Server starts, stops, or kills a server.
	Server(ctx context.Context, server Server, verb string) error
	// Fire makes an alert fire and returns when Prometheus reports it.
	Fire(ctx context.Context, alert alerting.Alert) error
	// Resolve resolves all alerts with a name and returns when Prometheus no longer reports them.
	Resolve(ctx context.Context, name string) error
}

// Handler receives every state of an object, and the last state once more when it is deleted. It
// must return quickly.
type Handler func(object *unstructured.Unstructured, deleted bool)

// Script is a sequence of actions. It calls wait to let time pass; wait returns false if the run
// has ended. The context ends with the run.
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
