// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apiserverv1 "github.com/openshift/api/apiserver/v1"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/informers"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/prometheus"
)

// replayFlags select a dump instead of a cluster.
type replayFlags struct {
	dir string
	now string
}

func (f *replayFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.dir, "replay", "", "read the objects in the files of this folder instead of a cluster, for example those of a must-gather")
	flags.StringVar(&f.now, "now", "", "time at which to judge the objects of --replay, for example 2026-11-22T14:00:00Z (default: the latest time in them)")
}

// Cluster is what a command works on: a cluster, or a dump of one.
type Cluster struct {
	// Reader reads objects.
	client.Reader
	// Client also writes. It is nil for a dump.
	Client client.Client
	// Config connects to the API server. It is nil for a dump.
	Config *rest.Config
	// Prometheus returns alerts. If nil, none are read.
	Prometheus informers.Prometheus
	// Spans returns when the series of an expression had samples. It is nil for a dump.
	Spans func(ctx context.Context, expression string, start, end time.Time, step time.Duration) ([]prometheus.Series, error)
	// Clock is the time; for a dump, it stands still.
	Clock clock.PassiveClock

	dump *dump // nil for a cluster
}

// kubeconfigError is an error in the kubeconfig or in the flags that select from it.
type kubeconfigError struct{ err error }

func (e *kubeconfigError) Error() string { return e.err.Error() }

func (e *kubeconfigError) Unwrap() error { return e.err }

// connect returns what the flags select. It makes no request.
func (p *Program) connect() (*Cluster, error) {
	if p.replay.dir != "" {
		return p.open()
	}
	if p.replay.now != "" {
		return nil, usageError("--now: needs --replay")
	}
	if p.cluster != nil {
		return p.cluster, nil
	}
	config, err := p.restConfig()
	if err != nil {
		return nil, err
	}
	mapper, err := p.config.ToRESTMapper()
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", config.Host, err)
	}
	c, err := client.New(config, client.Options{Scheme: sharedScheme(), Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", config.Host, err)
	}
	route := routedPrometheus{c, config}
	return &Cluster{Reader: c, Client: c, Config: config, Prometheus: route, Spans: route.Spans, Clock: p.Clock}, nil
}

// restConfig returns the configuration that the flags and the kubeconfig select. Without one, it does
// not fall back to localhost.
func (p *Program) restConfig() (*rest.Config, error) {
	raw, err := p.config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, &kubeconfigError{err}
	}
	if len(raw.Clusters) == 0 && *p.config.APIServer == "" {
		if _, err := rest.InClusterConfig(); err != nil {
			return nil, &kubeconfigError{errors.New("no kubeconfig with a cluster was found")}
		}
	}
	config, err := p.config.ToRESTConfig()
	if err != nil {
		return nil, &kubeconfigError{err}
	}
	return config, nil
}

// open reads the dump that --replay selects.
func (p *Program) open() (*Cluster, error) {
	var now time.Time
	if p.replay.now != "" {
		var err error
		if now, err = time.Parse(time.RFC3339, p.replay.now); err != nil {
			return nil, usageError("--now: is %q, must be a time such as 2026-11-22T14:00:00Z", p.replay.now)
		}
	}
	d, err := readDump(p.replay.dir, sharedScheme(), defaultDumpLimits)
	if err != nil {
		return nil, err
	}
	if now.IsZero() {
		now = d.newest
	}
	if now.IsZero() {
		return nil, usageError("--now: is required, because no object of --replay has a time")
	}
	return &Cluster{Reader: d, Prometheus: d, Clock: fixedClock(now), dump: d}, nil
}

// sharedScheme returns a scheme that is built once, and that nothing adds to.
var sharedScheme = sync.OnceValue(newScheme)

// newScheme returns a scheme of the kinds that commands read and write.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, configv1.Install, mcfgv1.Install, machinev1beta1.Install, operatorv1.Install, apiserverv1.Install,
		v1alpha1.AddToScheme, maintenancev1beta1.AddToScheme, updatev1beta1.AddToScheme,
		fleetv1beta1.AddToScheme, fleetv1alpha1.AddToScheme, clusterv1.Install, ocmv1beta1.Install,
	} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

// fixedClock is a clock that stands still.
type fixedClock time.Time

// Now returns the time.
func (c fixedClock) Now() time.Time { return time.Time(c) }

// Since returns the time that has passed since t.
func (c fixedClock) Since(t time.Time) time.Duration { return time.Time(c).Sub(t) }
