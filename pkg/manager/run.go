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
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Binary is what a binary runs: its controllers, and what they share.
type Binary struct {
	// LeaderLease is the name of the lease of the leader election.
	LeaderLease string
	// Controllers lists the controllers.
	Controllers []Controller
	// AddToScheme registers the kinds that are read or written beside those of the controllers.
	AddToScheme []func(*runtime.Scheme) error
	// Bind hands the clients to what the controllers share. It is called once, before the controllers
	// are bound; nil means that they share nothing.
	Bind func(Clients) error
	// Preflight is called once, when the API server has answered and before anything is set up. An error
	// ends the binary; nil means that there is nothing to check.
	Preflight func(context.Context) error
	// Metrics holds the metrics of the binary; nil means none.
	Metrics prometheus.Collector
	// Runnables run beside the controllers.
	Runnables []ctrlmanager.Runnable
	// Clock is the clock.
	Clock clock.PassiveClock
}

// SetLoggers makes the log that of all libraries. It is called once in a process.
func SetLoggers(log logr.Logger) {
	ctrl.SetLogger(log)
	klog.SetLogger(log)
}

// Run runs a binary until the context ends. The options are validated before anything else.
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
	mgr, err := ctrl.NewManager(restConfig, o.managerOptions(log, scheme, kinds, b))
	if err != nil {
		return wrapListenError("health-probe-bind-address", fmt.Errorf("setting up the manager: %w", err))
	}
	if err := b.addTo(mgr, kinds); err != nil {
		return err
	}
	if err := addProbes(mgr, kinds); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return wrapListenError("metrics-bind-address", fmt.Errorf("running the manager: %w", err))
	}
	return nil
}

// connectionTimeout is how long the API server may take to answer the first request.
const connectionTimeout = 30 * time.Second

// checkConnection reads the version of the API server: a binary with a wrong address ends at once. It
// ends with the context, too: an API server may accept a connection and never answer.
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

func (b Binary) addTo(mgr ctrl.Manager, kinds []Kind) error {
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
	for _, r := range runnables {
		if err := mgr.Add(r); err != nil {
			return fmt.Errorf("setting up the manager: %w", err)
		}
	}
	if b.Metrics != nil {
		if err := metrics.Registry.Register(b.Metrics); err != nil {
			return fmt.Errorf("registering the metrics: %w", err)
		}
	}
	return nil
}

// wrapListenError names the flag of an address at which the binary cannot listen.
func wrapListenError(flag string, err error) error {
	if opErr, ok := errors.AsType[*net.OpError](err); ok && opErr.Op == "listen" {
		return fmt.Errorf("--%s: must be a free address of this machine, or 0 for none: %w", flag, opErr)
	}
	return err
}

// addProbes registers the liveness and readiness probes: the binary is ready once its caches are
// synced, and logs which one is not. What the first lists left behind is returned to the system then:
// a replica that stands by allocates so little that the garbage collector would keep it for minutes.
func addProbes(mgr ctrl.Manager, kinds []Kind) error {
	log := mgr.GetLogger().WithName("readyz")
	var once sync.Once
	checkReady := func(req *http.Request) error {
		err := checkCacheSync(req.Context(), mgr.GetCache(), kinds)
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

func (o *Options) managerOptions(log logr.Logger, scheme *runtime.Scheme, kinds []Kind, b Binary) ctrl.Options {
	metricsOptions := metricsserver.Options{BindAddress: o.MetricsBind, SecureServing: o.MetricsSecure, TLSOpts: []func(*tls.Config){tlsOptions(o.MetricsCerts)}}
	if o.MetricsSecure {
		metricsOptions.FilterProvider = newMetricsAccess(b.Clock)
	}
	return ctrl.Options{
		Scheme:                        scheme,
		Logger:                        log,
		Metrics:                       metricsOptions,
		MapperProvider:                mapperProvider(scheme, kinds),
		Cache:                         CacheOptions(kinds),
		Client:                        client.Options{Cache: &client.CacheOptions{Unstructured: slices.ContainsFunc(kinds, isUntyped)}},
		Controller:                    ctrlconfig.Controller{EnableWarmup: new(true)},
		HealthProbeBindAddress:        o.HealthBind,
		LeaderElection:                o.LeaderElect,
		LeaderElectionID:              b.LeaderLease,
		LeaderElectionNamespace:       o.Namespace,
		LeaderElectionReleaseOnCancel: true,
	}
}

// isUntyped reports whether a kind is read without a Go type. By default a client reads such objects from
// the API server, although a cache holds them.
func isUntyped(kind Kind) bool {
	_, untyped := kind.Object.(*unstructured.Unstructured)
	return untyped
}
