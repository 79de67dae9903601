// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterproxy"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/clusterupgraderun"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/managedclustersupgrade"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/selection"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify/webhook"
)

const (
	// userAgent identifies the hub to the API server.
	userAgent = "managed-upgrade-hub"
	// leaderLease is the name of the leader election Lease.
	leaderLease = "managed-upgrade-hub-leader"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=managed-upgrade-operator,resourceNames=managed-upgrade-hub-leader,verbs=get;update

// Main starts Run with the client configuration and the logger given by the options.
func Main(ctx context.Context, o Options, clk clock.Clock) error {
	restConfig, log, err := o.Start(userAgent)
	if err != nil {
		return err
	}
	return Run(ctx, o, restConfig, log, clk)
}

// Run runs the hub until the context ends. It validates the options first.
func Run(ctx context.Context, o Options, restConfig *rest.Config, log logr.Logger, clk clock.Clock) error {
	if err := o.Validate(); err != nil {
		return err
	}
	h, err := newHub(o, log, clk)
	if err != nil {
		return err
	}
	return manager.Run(ctx, o.Options, restConfig, log, h.binary())
}

// hub contains the shared dependencies of the controllers.
type hub struct {
	clock    clock.Clock
	registry *prometheus.Registry
	upgrades *managedclustersupgrade.Reconciler
	runs     *clusterupgraderun.Reconciler
	webhook  *webhook.Webhook
	proxy    *clusterproxy.Proxy
	live     client.Reader
	source   string // of CloudEvents; empty until it has been read
}

func newHub(o Options, log logr.Logger, clk clock.Clock) (*hub, error) {
	h := &hub{clock: clk, registry: prometheus.NewRegistry(), proxy: &clusterproxy.Proxy{Clock: clk}}
	h.webhook = webhook.New(webhook.Options{
		Clock: clk, Log: log.WithName("webhook"), Source: h.eventSource, Cluster: eventCluster, Omit: clusterupgraderun.IsOmitted,
	})
	if err := h.configureWebhook(o.Webhook); err != nil {
		return nil, err
	}
	if err := errors.Join(metrics.RegisterBuildInfo(h.registry, o.Version), h.registry.Register(h.webhook)); err != nil {
		return nil, fmt.Errorf("registering the metrics: %w", err)
	}
	fleets, err := metrics.NewFleets(h.registry)
	if err != nil {
		return nil, fmt.Errorf("registering the metrics of fleets: %w", err)
	}
	h.upgrades = &managedclustersupgrade.Reconciler{
		Clock: clk, Selection: selection.SelectOptions{OwnNamespaceOnly: !o.AllowPlacementNamespaces, LocalCluster: o.LocalCluster}, Image: o.Image, Metrics: fleets, Webhook: h.webhook,
	}
	h.runs = &clusterupgraderun.Reconciler{
		Clock: clk, Namespace: o.Namespace, Image: o.Image, ReplicaSets: o.ReplicaSets, OnEventFailure: fleets.IncEventFailures,
		Notifier: notify.MultiPublisher{Webhook: h.webhook},
	}
	return h, nil
}

// binary returns the description of the binary.
func (h *hub) binary() manager.Binary {
	return manager.Binary{
		LeaderLease: leaderLease,
		Controllers: []manager.Controller{h.upgrades.Controller(), h.runs.Controller()},
		AddToScheme: []func(*runtime.Scheme) error{corev1.AddToScheme, configv1.Install}, // Events, and the cluster's Proxy
		Bind:        h.bind,
		Runnables:   []ctrlmanager.Runnable{h.webhook},
		Metrics:     h.registry,
		Clock:       h.clock,
	}
}
