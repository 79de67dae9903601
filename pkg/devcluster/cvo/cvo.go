// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cvo plays the cluster version operator: it reads the ClusterVersion named "version", asks the update service,
// loads and verifies releases, brings one ClusterOperator after the other to a new version, and reports all that in
// the conditions and the history, with the reasons and sentences of the real one. It plays the ClusterOperators, too.
//
// It knows nothing of nodes and pools: the machine config operator is handed the release in its ConfigMap, as by the
// real one, and reports back in its ClusterOperator.
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

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/stage"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/timescale"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/updategraph"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// Name is the name of the only ClusterVersion.
const Name = "version"

// How long the real one takes.
const (
	loadDuration          = timescale.Duration(30 * time.Second) // to retrieve and verify a release
	loadRetryInterval     = timescale.Duration(2 * time.Minute)  // to try again after a refusal
	fetchInterval         = timescale.Duration(3 * time.Minute)  // to ask the update service again
	failingAfter          = timescale.Duration(40 * time.Minute) // to call an update failing that waits for a degraded operator
	defaultUpdateDuration = timescale.Duration(3 * time.Minute)  // to bring an operator to a new version
)

// progressInterval is how often progress is reported while an update is under way, in real time.
const progressInterval = time.Second

// Options say what the player plays.
type Options struct {
	Speed     timescale.Speed
	Catalog   *updategraph.Catalog
	Installed string     // the version that the cluster begins with; it is in the catalogue
	Operators []Operator // in the order of their update
	// Clock is the clock of the control plane; nil means the real one.
	Clock clock.PassiveClock
	// Graph transports the requests to the update service; nil means the default transport.
	Graph http.RoundTripper
	// ProgressInterval is how often progress is reported while an update is in progress; 0 means 1s.
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

// Operator is a ClusterOperator.
type Operator struct {
	Name string `json:"name"`
	// Takes is how long the operator takes to reach a new version in a real cluster, 3m by default, or "never".
	Takes timescale.Duration `json:"takes,omitempty"`
	// External means that somebody else plays it, who is handed the release in a ConfigMap.
	External bool `json:"-"`
}

// MachineConfig is the ClusterOperator of the machine config operator.
const MachineConfig = "machine-config"

// DefaultOperators returns some operators of a real cluster, in the order of their update.
func DefaultOperators() []Operator {
	return []Operator{
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

// Simulator is the operator. Only its reconciler touches it.
type Simulator struct {
	client  client.Client
	web     *http.Client
	options Options

	payload       updategraph.Release // what is installed, or being installed
	updates       *updates            // the last answer of the update service
	load          *payloadLoad        // the release that is being loaded, or was refused; nil if there is none
	work          *syncWork           // the update that is under way; nil if there is none
	degradedSince time.Time           // since when the operator that the update waits for is degraded
}

// New returns a simulator of a cluster that is at the installed version.
func New(options Options) (*Simulator, error) {
	installed, found := options.Catalog.Version(options.Installed)
	if !found {
		return nil, fmt.Errorf("simulating the cluster version operator: the catalog does not have the installed release %q", options.Installed)
	}
	return &Simulator{
		web:     &http.Client{Timeout: 10 * time.Second, Transport: options.Graph},
		options: options.withDefaults(),
		payload: installed,
	}, nil
}

// Controllers declares the controller that simulates the operator.
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

// AddToManager has the manager run the simulator.
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

// Reconcile looks at everything anew and reports it in the ClusterVersion's status.
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
		return reconcile.Result{RequeueAfter: 20 * time.Millisecond}, nil // the cache is about to tell why
	} else if err != nil {
		return reconcile.Result{}, fmt.Errorf("updating the status of the cluster version: %w", err)
	}
	return reconcile.Result{RequeueAfter: requeueAfter}, nil
}
