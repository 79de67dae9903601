// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cvo simulates the cluster version operator and the ClusterOperators. It reads the
// ClusterVersion named "version", queries the update service, loads and verifies releases, and
// updates the ClusterOperators one after another. It reports progress in the conditions and the
// history, with the same reasons and messages as the real operator.
//
// It does not handle nodes and pools. Like the real operator, it publishes the release in the
// ConfigMap of the machine config operator and waits for that operator's ClusterOperator.
package cvo

import (
	"context"
	"fmt"
	"net/http"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/stage"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/timescale"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
)

// Name is the name of the ClusterVersion singleton.
const Name = "version"

// Durations on a real cluster.
const (
	loadDuration          = timescale.Duration(30 * time.Second) // to retrieve and verify a release
	restartDuration       = timescale.Duration(45 * time.Second) // from the start of an update until the pod of the new release runs
	loadRetryInterval     = timescale.Duration(2 * time.Minute)  // between attempts after a rejection
	fetchInterval         = timescale.Duration(3 * time.Minute)  // between queries of the update service
	failingAfter          = timescale.Duration(40 * time.Minute) // until an update that is waiting for a degraded operator counts as failing
	defaultUpdateDuration = timescale.Duration(3 * time.Minute)  // to update one operator
)

// progressInterval is the interval between progress reports during an update, in real time.
const progressInterval = time.Second

// Options configure the simulator.
type Options struct {
	Speed     timescale.Speed
	Catalog   *updategraph.Catalog
	Installed string         // the initial version of the cluster; the catalog must contain it
	Operators []OperatorSpec // in update order
	// Clock is the clock of the control plane. It defaults to the real clock.
	Clock clock.PassiveClock
	// Graph transports requests to the update service. It defaults to the default transport.
	Graph http.RoundTripper
	// ProgressInterval is the interval between progress reports during an update. It defaults to 1s.
	ProgressInterval time.Duration
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.ProgressInterval == 0 {
		o.ProgressInterval = progressInterval
	}
	return o
}

// OperatorSpec describes a simulated ClusterOperator.
type OperatorSpec struct {
	Name string `json:"name"`
	// Takes is the time that the operator takes to reach a new version on a real cluster, or "never".
	// It defaults to 3m.
	Takes timescale.Duration `json:"takes,omitempty"`
	// External operators are updated by another simulator. It reads the release from a ConfigMap.
	External bool `json:"-"`
}

// MachineConfig is the name of the machine config operator's ClusterOperator.
const MachineConfig = "machine-config"

// DefaultOperators returns a selection of a real cluster's operators in update order.
func DefaultOperators() []OperatorSpec {
	return []OperatorSpec{
		{Name: "etcd"},
		{Name: "kube-apiserver"},
		{Name: "authentication"},
		{Name: "ingress"},
		{Name: "monitoring"},
		{Name: "dns"},
		{Name: "network"},
		{Name: MachineConfig},
	}
}

// Simulator simulates the cluster version operator. Only its reconciler accesses the fields.
type Simulator struct {
	client  client.Client
	web     *http.Client
	options Options

	payload       updategraph.Release // the release that is installed or being installed
	running       updategraph.Release // the release of the operator's pod; it lags behind payload
	updates       *updates            // the last response of the update service
	load          *payloadLoad        // the release being loaded or rejected; nil if there is none
	reset         bool                // whether loading another release has failed since the payload was loaded
	work          *syncWork           // the update in progress; nil if there is none
	degradedSince time.Time           // when the operator that the update waits for became degraded
}

// New returns a simulator for a cluster at the installed version.
func New(options Options) (*Simulator, error) {
	installed, found := options.Catalog.Version(options.Installed)
	if !found {
		return nil, fmt.Errorf("simulating the cluster version operator: the catalog does not have the installed release %q", options.Installed)
	}
	return &Simulator{
		web:     &http.Client{Timeout: 10 * time.Second, Transport: options.Graph},
		options: options.withDefaults(),
		payload: installed, running: installed,
	}, nil
}

// Controllers returns the controller that simulates the operator.
func (s *Simulator) Controllers() []manager.Controller {
	return []manager.Controller{{
		Name: "cluster-version-operator",
		Reads: []manager.Kind{
			{Object: &configv1.ClusterVersion{}, Requests: manager.Self},
			{Object: &configv1.ClusterOperator{}, Requests: enqueueClusterVersion},
		},
		Bind: func(c manager.Clients) error {
			s.client = c.Client
			return nil
		},
		Reconciler:  s,
		RateLimiter: stage.Retry(50 * time.Millisecond),
	}}
}

// AddToManager adds the simulator to a manager.
func AddToManager(mgr ctrlmanager.Manager, options Options) error {
	s, err := New(options)
	if err != nil {
		return err
	}
	if err := stage.Add(mgr, s.Controllers()...); err != nil {
		return fmt.Errorf("simulating the cluster version operator: %w", err)
	}
	return nil
}

func enqueueClusterVersion(context.Context, client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: Name}}}
}

// Reconcile simulates the time since the last call and reports the result in the status of the
// ClusterVersion.
func (s *Simulator) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var version configv1.ClusterVersion
	if err := s.client.Get(ctx, request.NamespacedName, &version); request.Name != Name || err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var operators configv1.ClusterOperatorList
	if err := s.client.List(ctx, &operators); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the cluster operators: %w", err)
	}
	now := s.options.Clock.Now()
	before := version.Status.DeepCopy()

	// The pod of the new release updates the operators.
	if s.work == nil || s.work.current > 0 || now.Sub(s.work.startTime) >= s.options.Speed.Scale(restartDuration) {
		s.running = s.payload
	}
	requeueAfter := s.syncUpdates(ctx, &version, now)
	syncUpgradeable(&version, operators.Items, s.work != nil, now)
	desired, invalid := s.desiredUpdate(&version)
	requeueAfter = timescale.MinNonZero(requeueAfter, s.syncPayload(&version, desired, now))
	next, err := s.syncOperators(ctx, operators.Items, now)
	if err != nil {
		return reconcile.Result{}, err
	}
	requeueAfter = timescale.MinNonZero(requeueAfter, next)
	s.report(&version, operators.Items, invalid, now)

	if equality.Semantic.DeepEqual(before, &version.Status) {
		return reconcile.Result{RequeueAfter: requeueAfter}, nil
	}
	if err := s.client.Status().Update(ctx, &version); apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: 20 * time.Millisecond}, nil // the cache will show the change soon
	} else if err != nil {
		return reconcile.Result{}, fmt.Errorf("updating the status of the cluster version: %w", err)
	}
	return reconcile.Result{RequeueAfter: requeueAfter}, nil
}
