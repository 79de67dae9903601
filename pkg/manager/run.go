// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	goruntime "runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Binary describes a binary: its controllers and what they share.
type Binary struct {
	// LeaderLease is the name of the leader election Lease.
	LeaderLease string
	// Controllers lists the controllers.
	Controllers []Controller
	// AddToScheme registers kinds that are read or written in addition to those of the controllers.
	AddToScheme []func(*runtime.Scheme) error
	// Bind, if set, passes the clients to dependencies that the controllers share. It is called once,
	// before the controllers are bound.
	Bind func(Clients) error
	// Preflight, if set, is called once after the API server has responded, before anything else is
	// set up. If it returns an error, the binary exits.
	Preflight func(context.Context) error
	// Metrics, if set, contains the metrics of the binary.
	Metrics prometheus.Collector
	// Runnables run alongside the controllers.
	Runnables []ctrlmanager.Runnable
	// Watchdogs run in every replica, including standbys. If a watchdog returns an error, the binary
	// exits.
	Watchdogs []ctrlmanager.Runnable
	// Clock is the clock.
	Clock clock.PassiveClock
}

// SetLoggers makes all libraries write to the log. It must be called only once per process.
func SetLoggers(log logr.Logger) {
	ctrl.SetLogger(log)
	klog.SetLogger(log)
}

// Run runs a binary until the context ends. It validates the options first.
func Run(ctx context.Context, o Options, restConfig *rest.Config, log logr.Logger, b Binary) error {
	if err := o.Validate(); err != nil {
		return err
	}
	kinds, err := Kinds(b.Controllers...)
	if err != nil {
		return err
	}
	scheme, err := Scheme(append(b.Controllers, Controller{Name: "shared", AddToScheme: b.AddToScheme})...)
	if err != nil {
		return err
	}
	if err := checkConnection(ctx, restConfig); err != nil {
		return err
	}
	log.Info("starting", "version", o.Version, "go", goruntime.Version(), "apiServer", restConfig.Host)
	go logMissing(ctx, restConfig, log, scheme, kinds)
	if b.Preflight != nil {
		if err := b.Preflight(ctx); err != nil {
			return err
		}
	}
	mgr, err := ctrl.NewManager(restConfig, o.replicaOptions(log, b))
	if err != nil {
		return wrapListenError("health-probe-bind-address", fmt.Errorf("setting up the manager: %w", err))
	}
	leader, err := ctrl.NewManager(restConfig, leaderOptions(log, scheme, kinds))
	if err != nil {
		return fmt.Errorf("setting up the controllers: %w", err)
	}
	if err := b.addTo(mgr, leader, kinds); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return wrapListenError("metrics-bind-address", fmt.Errorf("running the manager: %w", err))
	}
	return nil
}

// addTo adds the components that every replica runs and those that only the leader runs.
func (b Binary) addTo(replica, leader ctrl.Manager, kinds []Kind) error {
	if err := b.addControllers(leader, kinds); err != nil {
		return err
	}
	if b.Metrics != nil {
		if err := metrics.Registry.Register(b.Metrics); err != nil {
			return fmt.Errorf("registering the metrics: %w", err)
		}
	}
	leading := &leading{mgr: leader, kinds: kinds}
	if err := addRunnables(replica, append(slices.Clone(b.Watchdogs), leading)); err != nil {
		return err
	}
	return addProbes(replica, leading)
}

func addRunnables(mgr ctrl.Manager, runnables []ctrlmanager.Runnable) error {
	for _, r := range runnables {
		if err := mgr.Add(r); err != nil {
			return fmt.Errorf("setting up the manager: %w", err)
		}
	}
	return nil
}

// connectionTimeout limits how long the API server may take to respond to the first request.
const connectionTimeout = 30 * time.Second

// checkConnection reads the version of the API server, so that a binary with a wrong address exits
// immediately. It also returns when the context ends, because an API server may accept a connection
// but never respond.
func checkConnection(ctx context.Context, restConfig *rest.Config) error {
	ctx, cancel := context.WithTimeout(ctx, connectionTimeout)
	defer cancel()
	client, err := discovery.NewDiscoveryClientForConfig(restConfig)
	if err == nil {
		err = client.RESTClient().Get().AbsPath("/version").Do(ctx).Error()
	}
	if err != nil {
		return fmt.Errorf("connecting to the API server %s: %w", restConfig.Host, err)
	}
	return nil
}

func (b Binary) addControllers(mgr ctrl.Manager, kinds []Kind) error {
	optional, err := newOptionalKinds(mgr.GetScheme(), kinds)
	if err != nil {
		return err
	}
	runnables := b.Runnables
	if optional != nil {
		optional.cache, optional.log = mgr.GetCache(), mgr.GetLogger().WithName("optional-kinds")
		if optional.serves, err = discoverKinds(mgr); err != nil {
			return err
		}
		runnables = append(slices.Clone(runnables), optional)
	}
	if b.Bind != nil {
		if err := b.Bind(Clients{Client: optional.client(mgr.GetClient()), Live: mgr.GetAPIReader()}); err != nil {
			return err
		}
	}
	for _, c := range b.Controllers {
		if err := add(mgr, c, optional); err != nil {
			return err
		}
	}
	return addRunnables(mgr, runnables)
}

// wrapListenError adds the name of the flag to an error about an address that the binary cannot
// listen on.
func wrapListenError(flag string, err error) error {
	if opErr, ok := errors.AsType[*net.OpError](err); ok && opErr.Op == "listen" {
		return fmt.Errorf("--%s: must be a free address of this machine, or 0 for none: %w", flag, opErr)
	}
	return err
}

// addProbes registers the liveness and readiness probes. A standby replica is ready; a leader is
// ready once its caches are synced, and logs those that are not. After that, it returns the memory
// of the initial lists to the operating system: an idle leader allocates so little that the garbage
// collector would keep the memory for minutes.
func addProbes(mgr ctrl.Manager, l *leading) error {
	log := mgr.GetLogger().WithName("readyz")
	var once sync.Once
	checkReady := func(req *http.Request) error {
		err := l.check(req.Context())
		if err != nil {
			log.Info("not ready", "reason", err.Error())
			return err
		}
		once.Do(debug.FreeOSMemory)
		return nil
	}
	return errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("caches", checkReady))
}

// checkCacheSync returns an error that names a kind whose cache is not synced.
func checkCacheSync(ctx context.Context, from cache.Cache, kinds []Kind) error {
	for _, kind := range kinds {
		if kind.Optional {
			continue
		}
		informer, err := from.GetInformer(ctx, kind.Object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %T: %w", kind.Object, err)
		}
		if !informer.HasSynced() {
			return fmt.Errorf("the cache of %T is not synced yet", kind.Object)
		}
	}
	return nil
}

// replicaOptions returns the options for the components of every replica: the servers and leader
// election.
func (o *Options) replicaOptions(log logr.Logger, b Binary) ctrl.Options {
	metricsOptions := metricsserver.Options{BindAddress: o.MetricsBind, SecureServing: o.MetricsSecure, TLSOpts: []func(*tls.Config){tlsOptions(o.MetricsCerts)}}
	if o.MetricsSecure {
		metricsOptions.FilterProvider = newMetricsAccess(b.Clock)
	}
	return ctrl.Options{
		Logger:                        log,
		Metrics:                       metricsOptions,
		HealthProbeBindAddress:        o.HealthBind,
		LeaderElection:                o.LeaderElection.Enabled,
		LeaseDuration:                 &o.LeaderElection.LeaseDuration,
		RenewDeadline:                 &o.LeaderElection.RenewDeadline,
		RetryPeriod:                   &o.LeaderElection.RetryPeriod,
		LeaderElectionID:              b.LeaderLease,
		LeaderElectionNamespace:       o.Namespace,
		LeaderElectionReleaseOnCancel: true,
	}
}

// leaderOptions returns the options for the components that only the leader runs: the caches and
// controllers.
func leaderOptions(log logr.Logger, scheme *runtime.Scheme, kinds []Kind) ctrl.Options {
	return ctrl.Options{
		Scheme:                 scheme,
		Logger:                 log,
		Metrics:                metricsserver.Options{BindAddress: disabled},
		HealthProbeBindAddress: disabled,
		MapperProvider:         mapperProvider(scheme, kinds),
		Cache:                  CacheOptions(kinds),
		Client:                 client.Options{Cache: &client.CacheOptions{Unstructured: slices.ContainsFunc(kinds, isUntyped)}},
	}
}

// disabled is the address of a server that is not started.
const disabled = "0"

// isUntyped reports whether a kind is read without a Go type. By default, a client reads such
// objects from the API server even if they are cached.
func isUntyped(kind Kind) bool {
	_, untyped := kind.Object.(*unstructured.Unstructured)
	return untyped
}
