// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package statuscontroller

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/updateinformer"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/updateplan"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/updatestatus"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	alerts "github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/prometheus"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
)

const (
	// Component identifies the program: it is the user agent for the API server and the source of Events.
	Component = "update-status-controller"
	// LeaderLease is the Lease used for leader election. Renewals show that the program is alive.
	LeaderLease = "update-status-controller-leader"
	// watchdog is the alert that always fires on OpenShift.
	watchdog = "Watchdog"
	// alertsTimeout limits each request for alerts.
	alertsTimeout = 10 * time.Second
)

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=managed-upgrade-operator,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=managed-upgrade-operator,resourceNames=update-status-controller-leader,verbs=get;update
// +kubebuilder:rbac:groups="",resources=events,namespace=managed-upgrade-operator,verbs=create
// +kubebuilder:rbac:groups="",resources=events,namespace=default,verbs=create

// Main calls Run with the API server and log settings from the options.
func Main(ctx context.Context, o Options, clk clock.PassiveClock) error {
	restConfig, log, err := o.Start(Component)
	if err != nil {
		return err
	}
	return Run(ctx, o, restConfig, log, clk)
}

// Run validates the options and then runs the Update Status Controller until the context is canceled.
func Run(ctx context.Context, o Options, restConfig *rest.Config, log logr.Logger, clk clock.PassiveClock) error {
	if err := o.Validate(); err != nil {
		return err
	}
	source, err := newAlerts(o)
	if err != nil {
		return err
	}
	p, err := newProgram(o, log, clk, source)
	if err != nil {
		return err
	}
	if err := checkDefinitions(ctx, restConfig); err != nil {
		return err
	}
	return manager.Run(ctx, o.Options, restConfig, log, p.binary())
}

// newAlerts returns the source of alerts, or nil if none is configured. It does not contact the source.
func newAlerts(o Options) (checks.AlertSource, error) {
	if o.AlertsURL == "" {
		return nil, nil
	}
	source, err := alerts.New(alerts.Options{
		HTTPClient: httpclient.Options{URL: o.AlertsURL, CAFile: o.ServiceCAFile, TokenFile: o.AlertsTokenFile, Timeout: alertsTimeout},
		Watchdog:   watchdog,
	})
	if err != nil {
		return nil, fmt.Errorf("--alerts-url: %w", err)
	}
	return source, nil
}

// program holds the state that the controllers share.
type program struct {
	clock     clock.PassiveClock
	registry  *prometheus.Registry
	events    *eventPublisher
	tokens    *updateinformer.Tokens
	informers *updateinformer.Reconciler
	status    *updatestatus.Reconciler
	plans     *updateplan.Reconciler
}

func newProgram(o Options, log logr.Logger, clk clock.PassiveClock, source checks.AlertSource) (*program, error) {
	p := &program{clock: clk, registry: prometheus.NewRegistry()}
	observed, err := metrics.NewUpdateStatus(p.registry)
	if err == nil {
		err = metrics.RegisterBuildInfo(p.registry, o.Version)
	}
	if err != nil {
		return nil, fmt.Errorf("registering the metrics: %w", err)
	}
	account := types.NamespacedName{Namespace: o.Namespace, Name: o.ServiceAccount}
	p.events = &eventPublisher{events: &notify.Events{Clock: clk, Component: Component}, log: log.WithName("events")}
	p.tokens = &updateinformer.Tokens{Clock: clk, ServiceAccount: account}
	exchange := updateinformer.NewExchange()
	p.status = &updatestatus.Reconciler{
		Clock: clk, Prometheus: source, Answers: exchange.Answers, Changed: exchange.StatusChanged(), Events: p.events, Metrics: observed,
	}
	p.informers = &updateinformer.Reconciler{
		Exchange: exchange, Clock: clk, ServiceAccount: account, Token: p.tokens.Token,
		ServiceCA: func() ([]byte, error) { return readServiceCA(o.ServiceCAFile) },
		Request:   p.status.Request, Events: p.events, Metrics: observed,
	}
	requests, _ := source.(checks.MetricsQuerier) // without an alert source, the capacity is unknown
	p.plans = &updateplan.Reconciler{
		Clock: clk, Prometheus: source, Metrics: requests, LockNamespace: o.Namespace, Informers: exchange, Changed: exchange.PlanChanged(), Events: p.events,
	}
	return p, nil
}

// readServiceCA returns the CA certificates of the service CA, or nothing if no file is configured.
func readServiceCA(file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	return os.ReadFile(filepath.Clean(file))
}

// binary describes the program to the manager, including its controllers.
func (p *program) binary() manager.Binary {
	return manager.Binary{
		LeaderLease: LeaderLease,
		Controllers: []manager.Controller{p.informers.Controller(), p.status.Controller(), p.plans.Controller()},
		AddToScheme: []func(*runtime.Scheme) error{updatev1beta1.AddToScheme},
		Bind:        p.bind,
		Metrics:     p.registry,
		Clock:       p.clock,
	}
}

func (p *program) bind(clients manager.Clients) error {
	p.events.events.Client, p.tokens.Client = clients.Client, clients.Client
	return nil
}

// NewControllers returns the controllers of the program, bound to the clients. It lets simulations run the
// controllers without a manager.
func NewControllers(o Options, clients manager.Clients, clk clock.PassiveClock, source checks.AlertSource) ([]manager.Controller, error) {
	p, err := newProgram(o, logr.Discard(), clk, source)
	if err != nil {
		return nil, err
	}
	if err := p.bind(clients); err != nil {
		return nil, err
	}
	return p.binary().Controllers, nil
}
