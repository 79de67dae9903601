// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controlplane runs a real Kubernetes control plane as child processes: etcd, the API
// server, and the controller manager, on free loopback ports, with its own certificates, RBAC, and
// an audit log. It is the base of the dev cluster and, without the controller manager, of tests
// that only need an API server.
//
// It knows nothing about OpenShift, upgrades, or nodes.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/childprocess"
)

// Options configure a control plane.
type Options struct {
	// BinDir is the folder with etcd, kube-apiserver, and kube-controller-manager. It defaults to the
	// bin folder of the working directory's Go module.
	BinDir string
	// Dir is the folder for data, certificates, logs, and kubeconfigs. It is created if missing. Two
	// control planes cannot share a folder.
	Dir string
	// WithoutControllerManager omits the controller manager.
	WithoutControllerManager bool
	// Controllers are the controllers that the controller manager runs; it defaults to
	// DefaultControllers.
	Controllers []string
	// Env is added to the environment of the programs, for example "GOGC=100". By default, they
	// collect garbage less often than other programs, to start faster.
	Env []string
	// Prepare, if set, is called when the API server is ready, before the controller manager starts.
	// The garbage collector knows the kinds served by then and discovers others within half a minute.
	Prepare func(context.Context, *rest.Config) error
}

// DefaultControllers returns the names of the controllers that upgrades depend on.
func DefaultControllers() []string {
	return []string{
		"deployment-controller",
		"disruption-controller",
		"garbage-collector-controller",
		"job-controller",
		"namespace-controller",
		"replicaset-controller",
		"resourcequota-controller",
		"root-ca-certificate-publisher-controller",
		"serviceaccount-controller",
		"ttl-after-finished-controller",
	}
}

// ControlPlane is a running control plane. Its methods are safe for concurrent use.
type ControlPlane struct {
	options   Options
	authority *authority
	etcdPort  int // client port; 0 until it is allocated
	peerPort  int // of etcd
	apiPort   int

	serviceNetwork netip.Prefix

	mu                sync.Mutex   // serializes starts and stops of processes
	lock              *os.File     // of the state folder; nil after its release
	claim             net.Listener // of the service network; nil if not claimed
	etcd              *childprocess.Process
	apiServer         *childprocess.Process
	controllerManager *childprocess.Process
	startups          []startup // of the API server

	exitErr chan error
}

// startup is the time that an API server took from its start until it was ready.
type startup struct{ start, ready time.Time }

// Start returns when the API server and, unless it is omitted, the controller manager are ready.
// The context limits only the start; call Stop to stop the control plane.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	programs := []string{"etcd", "kube-apiserver"}
	if !options.WithoutControllerManager {
		programs = append(programs, "kube-controller-manager")
	}
	if options.BinDir == "" {
		dir, err := FindBinDir()
		if err != nil {
			return nil, err
		}
		options.BinDir = dir
	}
	if err := RequirePrograms(options.BinDir, programs...); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(options.Dir)
	if err != nil {
		return nil, fmt.Errorf("finding the state folder: %w", err)
	}
	options.Dir = dir
	if options.Controllers == nil {
		options.Controllers = DefaultControllers()
	}

	c := &ControlPlane{options: options, exitErr: make(chan error, 1)}
	if err := c.prepare(); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// RESTConfig returns a client configuration with all permissions and no client-side throttling.
func (c *ControlPlane) RESTConfig() *rest.Config {
	return c.configFor(c.authority.admin)
}

// Kubeconfig writes the administrator's kubeconfig.
func (c *ControlPlane) Kubeconfig(path string) error {
	return WriteKubeconfig(path, c.RESTConfig())
}

// AuditLog returns the path of the API server's audit log, with one JSON event per request and no
// bodies.
func (c *ControlPlane) AuditLog() string { return filepath.Join(c.options.Dir, "audit.log") }

// Dir returns the state folder.
func (c *ControlPlane) Dir() string { return c.options.Dir }

// BinDir returns the folder with the programs.
func (c *ControlPlane) BinDir() string { return c.options.BinDir }

// Exited receives one error when a process ends unexpectedly or ReportExit is called.
func (c *ControlPlane) Exited() <-chan error { return c.exitErr }

// StopAPIServer stops only the API server: clients get "connection refused" until StartAPIServer.
// It does nothing if the API server is not running.
func (c *ControlPlane) StopAPIServer() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.apiServer.Stop(apiServerGrace)
}

// KillAPIServer is StopAPIServer without a graceful termination.
func (c *ControlPlane) KillAPIServer() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.apiServer.Kill()
}

// StartAPIServer restarts the API server with its previous port, certificates, and data, and waits
// until it is ready. It does nothing if the API server is running.
func (c *ControlPlane) StartAPIServer(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.apiServer.Running() {
		return nil
	}
	return c.startAPIServer(ctx)
}

// StopEtcd stops only etcd: the API server returns errors or does not respond until StartEtcd. It
// does nothing if etcd is not running.
func (c *ControlPlane) StopEtcd() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.etcd.Stop(etcdGrace)
}

// KillEtcd is StopEtcd without a graceful termination. No acknowledged write is lost.
func (c *ControlPlane) KillEtcd() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.etcd.Kill()
}

// StartEtcd restarts etcd with its previous ports and data and waits until the API server, if it is
// running, is ready. It does nothing if etcd is running.
func (c *ControlPlane) StartEtcd(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.etcd.Running() {
		return nil
	}
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	if !c.apiServer.Running() {
		return nil
	}
	return c.awaitAPIServer(ctx)
}

// StartingAt reports whether the API server was starting at that time. Before it is ready, it
// already serves requests, and denies those whose RBAC rules it has not loaded yet. In production,
// a load balancer would wait until the server is ready.
func (c *ControlPlane) StartingAt(at time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.startups, func(s startup) bool { return !at.Before(s.start) && !at.After(s.ready) })
}

// Stop stops all processes. The API server goes first, because it cannot terminate gracefully
// without etcd. Stop may be called more than once.
func (c *ControlPlane) Stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := errors.Join(
		c.controllerManager.Stop(controllerManagerGrace),
		c.apiServer.Stop(apiServerGrace),
		c.etcd.Stop(etcdGrace),
	)
	if c.lock != nil {
		err = errors.Join(err, c.lock.Close())
		c.lock = nil
	}
	if c.claim != nil {
		err = errors.Join(err, c.claim.Close())
		c.claim = nil
	}
	return err
}

// An API server with open watches takes up to a minute to terminate. Killing it loses nothing,
// because etcd has everything that it acknowledged.
const (
	controllerManagerGrace = 500 * time.Millisecond
	apiServerGrace         = 2 * time.Second
	etcdGrace              = 3 * time.Second
)

// PIDs returns the process IDs of the running programs by name.
func (c *ControlPlane) PIDs() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	pids := map[string]int{}
	for _, process := range []*childprocess.Process{c.etcd, c.apiServer, c.controllerManager} {
		if process.Running() {
			pids[process.Name()] = process.PID()
		}
	}
	return pids
}

func (c *ControlPlane) prepare() error {
	if err := os.MkdirAll(c.options.Dir, 0o750); err != nil {
		return fmt.Errorf("creating the state folder: %w", err)
	}
	lock, err := lock(c.options.Dir)
	if err != nil {
		return err
	}
	c.lock = lock
	c.serviceNetwork, c.claim = claimServiceNetwork()
	if err := c.clear(); err != nil {
		return err
	}
	authority, err := newAuthority(filepath.Join(c.options.Dir, "pki"))
	if err != nil {
		return fmt.Errorf("making certificates: %w", err)
	}
	c.authority = authority
	return os.WriteFile(c.Path("audit-policy.yaml"), []byte(auditPolicy), 0o600)
}

// clear removes the files of an earlier control plane from the state folder, and nothing else.
func (c *ControlPlane) clear() error {
	for _, name := range []string{"etcd", "logs", "pki", "audit.log"} {
		if err := os.RemoveAll(c.Path(name)); err != nil {
			return fmt.Errorf("clearing the state folder: %w", err)
		}
	}
	if err := os.Mkdir(c.Path("logs"), 0o750); err != nil {
		return fmt.Errorf("creating the folder of the logs: %w", err)
	}
	return nil
}

func (c *ControlPlane) start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	port, err := FreePort()
	if err != nil {
		return err
	}
	c.apiPort = port
	if err := c.startAPIServer(ctx); err != nil {
		return err
	}
	if c.options.Prepare != nil {
		if err := c.options.Prepare(ctx, c.RESTConfig()); err != nil {
			return err
		}
	}
	if c.options.WithoutControllerManager {
		return nil
	}
	return c.startControllerManager(ctx)
}

// Path returns the path of a file in the state folder.
func (c *ControlPlane) Path(elements ...string) string {
	return filepath.Join(append([]string{c.options.Dir}, elements...)...)
}

func (c *ControlPlane) run(name string, args ...string) (*childprocess.Process, error) {
	return childprocess.Start(childprocess.Command{
		Path:   filepath.Join(c.options.BinDir, name),
		Args:   args,
		Env:    slices.Concat([]string{"GOGC=400"}, c.options.Env, os.Environ()), // reduces the processor time of a start by a quarter; a GOGC of the environment wins
		Log:    c.Path("logs", name+".log"),
		OnExit: c.ReportExit,
	})
}

// ReportExit reports the unexpected end of a process, including processes that run alongside the
// control plane.
func (c *ControlPlane) ReportExit(err error) {
	select {
	case c.exitErr <- err:
	default: // only the first error is reported
	}
}

func address(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }
