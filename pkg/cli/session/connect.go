// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/dump"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/scheme"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/prometheus"
)

// replayFlags select a dump in place of a cluster.
type replayFlags struct {
	dir string
	now string
}

func (f *replayFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.dir, "replay", "", "read objects from the files in this directory, for example a must-gather, instead of a cluster")
	flags.StringVar(&f.now, "now", "", "current time for --replay, for example 2026-11-22T14:00:00Z (default: the latest time in the files)")
}

// Cluster is the cluster or dump that a command works on.
type Cluster struct {
	// Reader reads objects.
	client.Reader
	// Client also writes. It is nil for a dump.
	Client client.Client
	// Config connects to the API server. It is nil for a dump.
	Config *rest.Config
	// Prometheus returns alerts. If it is nil, alerts are not read.
	Prometheus checks.AlertSource
	// Spans returns the times when the series of an expression had samples. It is nil for a dump.
	Spans func(ctx context.Context, expression string, start, end time.Time, step time.Duration) ([]prometheus.Series, error)
	// Clock is the current time. For a dump, it is fixed.
	Clock clock.PassiveClock

	Dump *dump.Dump // nil for a cluster
}

// kubeconfigError is an error in the kubeconfig or in flags that refer to it.
type kubeconfigError struct{ err error }

func (e *kubeconfigError) Error() string { return e.err.Error() }

func (e *kubeconfigError) Unwrap() error { return e.err }

// Connect returns the cluster or dump that the flags select. It sends no requests.
func (p *Session) Connect() (*Cluster, error) {
	if p.replay.dir != "" {
		return p.open()
	}
	if p.replay.now != "" {
		return nil, UsageError("--now: needs --replay")
	}
	if p.Cluster != nil {
		return p.Cluster, nil
	}
	config, err := p.restConfig()
	if err != nil {
		return nil, err
	}
	mapper, err := p.Config.ToRESTMapper()
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", config.Host, err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme.Shared(), Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", config.Host, err)
	}
	route := routedPrometheus{c, config}
	return &Cluster{Reader: c, Client: c, Config: config, Prometheus: route, Spans: route.Spans, Clock: p.Clock}, nil
}

// restConfig returns the configuration selected by the flags and the kubeconfig. If there is none, it returns
// an error instead of falling back to localhost.
func (p *Session) restConfig() (*rest.Config, error) {
	raw, err := p.Config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, &kubeconfigError{err}
	}
	if len(raw.Clusters) == 0 && *p.Config.APIServer == "" {
		if _, err := rest.InClusterConfig(); err != nil {
			return nil, &kubeconfigError{errors.New("no kubeconfig with a cluster was found")}
		}
	}
	config, err := p.Config.ToRESTConfig()
	if err != nil {
		return nil, &kubeconfigError{err}
	}
	return config, nil
}

// open reads the dump selected by --replay.
func (p *Session) open() (*Cluster, error) {
	var now time.Time
	if p.replay.now != "" {
		var err error
		if now, err = time.Parse(time.RFC3339, p.replay.now); err != nil {
			return nil, UsageError("--now: is %q, must be a time such as 2026-11-22T14:00:00Z", p.replay.now)
		}
	}
	d, err := dump.Read(p.replay.dir, scheme.Shared(), dump.DefaultLimits)
	if err != nil {
		return nil, err
	}
	if now.IsZero() {
		now = d.Newest
	}
	if now.IsZero() {
		return nil, UsageError("--now: is required, because no object of --replay has a time")
	}
	return &Cluster{Reader: d, Prometheus: d, Clock: FixedClock(now), Dump: d}, nil
}

// FixedClock is a clock that always returns the same time.
type FixedClock time.Time

// Now returns the time.
func (c FixedClock) Now() time.Time { return time.Time(c) }

// Since returns the time elapsed since t.
func (c FixedClock) Since(t time.Time) time.Duration { return time.Time(c).Sub(t) }

// ConnectForWrites returns a cluster for writing.
func (p *Session) ConnectForWrites() (*Cluster, error) {
	if err := p.requireWritable(); err != nil {
		return nil, err
	}
	return p.Connect()
}

// requireWritable returns an error for a dump.
func (p *Session) requireWritable() error {
	if p.IsReplay() {
		return UsageError("--replay: this command changes the cluster, and a dump cannot be changed")
	}
	return nil
}

// IsReplay reports whether the command works on a dump.
func (p *Session) IsReplay() bool { return p.replay.dir != "" }

// Namespace returns the namespace from the flag or the kubeconfig, and whether a flag sets it.
func (p *Session) Namespace() (name string, explicit bool, err error) {
	name, explicit, err = p.Config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", false, &kubeconfigError{err}
	}
	return name, explicit, nil
}

// NamespaceFlag returns the value of the flag --namespace, or "" if it is not set.
func (p *Session) NamespaceFlag() string { return *p.Config.Namespace }
