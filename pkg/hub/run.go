// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/clusterupgraderun"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/managedclustersupgrade"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/selection"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
)

const (
	// userAgent is how the hub introduces itself to the API server.
	userAgent = "managed-upgrade-hub"
	// leaderLease is the lease of the leader election.
	leaderLease = "managed-upgrade-hub-leader"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=managed-upgrade-operator,resourceNames=managed-upgrade-hub-leader,verbs=get;update

// Main is Run with the API server and the log that the options name.
func Main(ctx context.Context, o Options, clk clock.PassiveClock) error {
	restConfig, log, err := o.Start(userAgent)
	if err != nil {
		return err
	}
	return Run(ctx, o, restConfig, log, clk)
}

// Run runs the hub until the context ends. The options are validated before anything is done.
func Run(ctx context.Context, o Options, restConfig *rest.Config, log logr.Logger, clk clock.PassiveClock) error {
	if err := o.Validate(); err != nil {
		return err
	}
	h, err := newHub(o, clk)
	if err != nil {
		return err
	}
	return manager.Run(ctx, o.Options, restConfig, log, h.binary())
}

// hub holds what the controllers share.
type hub struct {
	clock    clock.PassiveClock
	registry *prometheus.Registry
	upgrades *managedclustersupgrade.Reconciler
	runs     *clusterupgraderun.Reconciler
}

func newHub(o Options, clk clock.PassiveClock) (*hub, error) {
	h := &hub{clock: clk, registry: prometheus.NewRegistry()}
	if err := metrics.RegisterBuildInfo(h.registry, o.Version); err != nil {
		return nil, fmt.Errorf("registering the metrics: %w", err)
	}
	fleets, err := metrics.NewFleets(h.registry)
	if err != nil {
		return nil, fmt.Errorf("registering the metrics of fleets: %w", err)
	}
	h.upgrades = &managedclustersupgrade.Reconciler{
		Clock: clk, Selection: selection.Options{OwnNamespaceOnly: !o.AllowPlacementNamespaces}, Image: o.Image, Metrics: fleets,
	}
	h.runs = &clusterupgraderun.Reconciler{Clock: clk, Image: o.Image, ReplicaSets: o.ReplicaSets, OnEventFailure: fleets.IncEventFailures}
	return h, nil
}

// binary lists the controllers.
func (h *hub) binary() manager.Binary {
	return manager.Binary{
		LeaderLease: leaderLease,
		Controllers: []manager.Controller{h.upgrades.Controller(), h.runs.Controller()},
		AddToScheme: []func(*runtime.Scheme) error{corev1.AddToScheme}, // Events
		Metrics:     h.registry,
		Clock:       h.clock,
	}
}
