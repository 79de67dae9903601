// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/childprocess"
)

// Namespace and ServiceAccount of the operator.
const (
	OperatorNamespace      = openshiftsim.OperatorNamespace
	OperatorServiceAccount = "managed-upgrade-operator"
)

const operatorGrace = 10 * time.Second

// restartDelay is the delay before a replica that ended unexpectedly is restarted. A kubelet would
// wait longer after each restart.
const restartDelay = 2 * time.Second

// OperatorOptions configure an operator.
type OperatorOptions struct {
	// Program is the path of the executable; it defaults to the operator in BinDir.
	Program string
	// Config is the text of the operator's configuration file. URLs that it omits default to the
	// cluster's Prometheus, Alertmanager, and notification receiver, if the cluster has them. Paths of
	// CA and token files default to none, since the operator does not run in a pod.
	Config string
	// Replicas is the number of processes; it defaults to 1. Several replicas elect a leader and take
	// over within 17 seconds when the leader is killed.
	Replicas int
	// DefaultLeases keeps the operator's default timing for leader election.
	DefaultLeases bool
	// Restart restarts a replica that ends unexpectedly, for example after losing leadership, as its
	// Deployment would.
	Restart bool
	// ServiceAccount determines the operator's permissions; it defaults to OperatorServiceAccount in
	// OperatorNamespace.
	ServiceAccount string
	// APIServer is the address and the CA of a proxy in front of the API server. If it is nil, the
	// operator connects to the API server directly.
	APIServer *rest.Config
}

// Operator runs outside the cluster with the permissions of its ServiceAccount. Its methods are
// safe for concurrent use.
type Operator struct {
	replicas []*Replica
	exitErr  chan error
	config   configuration
}

// Replica is one process of the operator. It keeps its ports and its log file when it is restarted.
type Replica struct {
	program string
	args    []string
	log     string
	metrics string
	probes  string
	onExit  func(error)
	restart bool

	mu        sync.Mutex
	process   *childprocess.Process
	shouldRun bool // Start was called after the last Stop or Kill
}

// StartOperator starts the operator. Call Deploy first.
func (c *Cluster) StartOperator(ctx context.Context, options OperatorOptions) (*Operator, error) {
	o, err := c.PrepareOperator(ctx, options)
	if err != nil {
		return nil, err
	}
	return o, o.Start()
}

// PrepareOperator returns an operator that has not been started.
func (c *Cluster) PrepareOperator(ctx context.Context, options OperatorOptions) (*Operator, error) {
	if options.Program == "" {
		options.Program = filepath.Join(c.BinDir(), "operator")
	}
	if err := controlplane.RequireBuilt(filepath.Dir(options.Program), "make build", filepath.Base(options.Program)); err != nil {
		return nil, err
	}
	if options.ServiceAccount == "" {
		options.ServiceAccount = OperatorServiceAccount
	}
	account, err := c.ServiceAccountConfig(ctx, OperatorNamespace, options.ServiceAccount)
	if err != nil {
		return nil, fmt.Errorf("preparing the operator: %w", err)
	}
	if options.APIServer != nil {
		account.Host, account.TLSClientConfig = options.APIServer.Host, options.APIServer.TLSClientConfig
	}
	kubeconfig := c.Path("operator.kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, account); err != nil {
		return nil, err
	}
	args := []string{
		"--kubeconfig=" + kubeconfig,
		"--operator-namespace=" + OperatorNamespace,
		"--metrics-secure=false",
		"--leader-elect=" + strconv.FormatBool(options.Replicas > 1),
	}
	if !options.DefaultLeases {
		args = append(args, "--leader-elect-lease-duration=15s", "--leader-elect-renew-deadline=10s", "--leader-elect-retry-period=2s")
	}
	o := &Operator{exitErr: make(chan error, 1), config: c.configuration()}
	if err := o.Configure(options.Config); err != nil {
		return nil, err
	}
	args = append(args, "--config="+o.config.file)
	for i := range max(1, options.Replicas) {
		replica, err := newReplica(options.Program, args, c.Path("logs", fmt.Sprintf("operator-%d.log", i)))
		if err != nil {
			return nil, err
		}
		replica.onExit, replica.restart = o.reportExit, options.Restart
		o.replicas = append(o.replicas, replica)
	}
	return o, nil
}

func newReplica(program string, args []string, log string) (*Replica, error) {
	metrics, err := controlplane.FreePort()
	if err != nil {
		return nil, err
	}
	probes, err := controlplane.FreePort()
	if err != nil {
		return nil, err
	}
	r := &Replica{
		program: program, log: log,
		metrics: fmt.Sprintf("127.0.0.1:%d", metrics),
		probes:  fmt.Sprintf("127.0.0.1:%d", probes),
	}
	r.args = append(append(r.args, args...),
		"--metrics-bind-address="+r.metrics,
		"--health-probe-bind-address="+r.probes,
	)
	return r, nil
}

func (o *Operator) reportExit(err error) {
	select {
	case o.exitErr <- err:
	default: // only the first error is reported
	}
}

// Exited receives an error if a replica ends unexpectedly and is not restarted.
func (o *Operator) Exited() <-chan error { return o.exitErr }

// Replicas returns the processes of the operator.
func (o *Operator) Replicas() []*Replica { return o.replicas }

// Start starts all replicas that are not running.
func (o *Operator) Start() error { return o.each((*Replica).Start) }

// Stop terminates all replicas and waits for them to exit.
func (o *Operator) Stop() error { return o.each((*Replica).Stop) }

// Kill kills all replicas at once, like a power failure of their nodes.
func (o *Operator) Kill() error { return o.each((*Replica).Kill) }

// Restart kills and restarts all replicas.
func (o *Operator) Restart() error { return errors.Join(o.Kill(), o.Start()) }

func (o *Operator) each(do func(*Replica) error) error {
	var errs []error
	for _, replica := range o.replicas {
		errs = append(errs, do(replica))
	}
	return errors.Join(errs...)
}

// Start starts the replica unless it is already running.
func (r *Replica) Start() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shouldRun = true
	return r.start()
}

func (r *Replica) start() error {
	if r.process.Running() {
		return nil
	}
	process, err := childprocess.Start(childprocess.Command{Path: r.program, Args: r.args, Log: r.log, OnExit: r.exited})
	if err != nil {
		return err
	}
	r.process = process
	return nil
}

// exited is called when the replica ends unexpectedly.
func (r *Replica) exited(err error) {
	if !r.restart {
		r.onExit(err)
		return
	}
	time.AfterFunc(restartDelay, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !r.shouldRun {
			return
		}
		if err := r.start(); err != nil {
			r.onExit(err)
		}
	})
}

// Stop terminates the replica, and kills it if it has not exited within 10 seconds.
func (r *Replica) Stop() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shouldRun = false
	return r.process.Stop(operatorGrace)
}

// Kill kills the replica.
func (r *Replica) Kill() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shouldRun = false
	return r.process.Kill()
}

// Running reports whether the replica is running.
func (r *Replica) Running() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.process.Running()
}

// PID returns the process ID of the last start, or 0 if the replica was never started.
func (r *Replica) PID() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process == nil {
		return 0
	}
	return r.process.PID()
}

// Log returns the path of the replica's log file.
func (r *Replica) Log() string { return r.log }

// Ready reports whether the readiness probe of the replica succeeds.
func (r *Replica) Ready(ctx context.Context) bool {
	_, err := get(ctx, "http://"+r.probes+"/readyz")
	return err == nil
}

// MetricsAddress returns the address that the replica serves its metrics on, over HTTP.
func (r *Replica) MetricsAddress() string { return r.metrics }

// Metrics returns the text of the replica's metrics.
func (r *Replica) Metrics(ctx context.Context) (string, error) {
	return get(ctx, "http://"+r.metrics+"/metrics")
}

// IsLeader reports whether the replica is the elected leader according to its metrics. A single
// replica never takes part in an election.
func (r *Replica) IsLeader(ctx context.Context) (bool, error) {
	metrics, err := r.Metrics(ctx)
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, "leader_election_master_status{") && strings.HasSuffix(strings.TrimSpace(line), " 1") {
			return true, nil
		}
	}
	return false, nil
}

func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answers %s", url, response.Status)
	}
	return string(body), nil
}
