// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package ocm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/ocm/crds"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/agent"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/childprocess"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/manifests"
)

const (
	// HubNamespace is the namespace of our hub program.
	HubNamespace = "managed-upgrade-operator"
	// HubServiceAccount is the ServiceAccount of our hub program.
	HubServiceAccount = "managed-upgrade-hub"
	// componentsNamespace is the namespace of the components of Open Cluster Management.
	componentsNamespace = "open-cluster-management-hub"
	// grace is how long a process may take to exit.
	grace = 10 * time.Second
)

// Options configure a fleet.
type Options struct {
	// BinDir is the folder with the programs. It defaults to the bin folder of the working directory's
	// Go module.
	BinDir string
	// Dir is the state folder. It is created if missing.
	Dir string
	// Repository is the checkout whose folder deploy/hub is applied.
	Repository string
	Spec       Spec
}

// Fleet is a running hub with its clusters.
type Fleet struct {
	*controlplane.ControlPlane

	// Client has all permissions and bypasses caches.
	Client client.WithWatch
	// Spokes are the clusters of a real fleet, in numerical order. It is nil if the clusters are
	// simulated.
	Spokes []*Spoke

	spec       Spec
	repository string                  // the checkout with the Deployment of the hub
	components []*childprocess.Process // of Open Cluster Management, on the hub
	stopAgents context.CancelFunc      // stops the agents of simulated clusters; nil for real ones
	agents     chan error
}

// Scheme returns a scheme with the kinds of Kubernetes, Open Cluster Management, and our hub.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(
		clientgoscheme.AddToScheme(scheme), clusterv1.Install(scheme), ocmv1beta1.Install(scheme), clusterv1beta2.Install(scheme),
		workv1.Install(scheme), fleetv1beta1.AddToScheme(scheme), fleetv1alpha1.AddToScheme(scheme),
	)
	return scheme, err
}

// hubControllers returns the controllers that a hub with real agents needs to approve and sign the
// agents' certificates and to garbage-collect dependents.
func hubControllers() []string {
	return []string{
		"certificatesigningrequest-approving-controller",
		"certificatesigningrequest-signing-controller",
		"clusterrole-aggregation-controller",
		"garbage-collector-controller",
		"namespace-controller",
		"serviceaccount-controller",
	}
}

// lessMemory is the environment of the control planes of a real fleet (at least three) and of Open
// Cluster Management's components.
func lessMemory() []string { return []string{"GOGC=75"} }

// Start returns when the clusters are registered and placement and agents are running. The context
// limits only the start; call Stop to stop everything.
func Start(ctx context.Context, options Options) (*Fleet, error) {
	if err := options.Spec.Validate(); err != nil {
		return nil, err
	}
	hub := controlplane.Options{
		BinDir: options.BinDir, Dir: options.Dir,
		Prepare: func(ctx context.Context, access *rest.Config) error {
			return serveKinds(ctx, access, options)
		},
	}
	if hub.WithoutControllerManager = !options.Spec.Real; options.Spec.Real {
		hub.Controllers, hub.Env = hubControllers(), lessMemory()
	}
	running, err := controlplane.Start(ctx, hub)
	if err != nil {
		return nil, err
	}
	f := &Fleet{ControlPlane: running, spec: options.Spec.WithDefaults(), repository: options.Repository}
	if err := f.start(ctx); err != nil {
		return nil, errors.Join(err, f.Stop())
	}
	return f, nil
}

func (f *Fleet) start(ctx context.Context) error {
	programs := []string{"placement"}
	if f.spec.Real {
		programs = append(programs, "registration", "work")
	}
	if err := controlplane.RequireBuilt(f.BinDir(), "make bin/"+strings.Join(programs, " bin/"), programs...); err != nil {
		return err
	}
	scheme, err := Scheme()
	if err != nil {
		return fmt.Errorf("knowing the kinds of Open Cluster Management: %w", err)
	}
	if f.Client, err = client.NewWithWatch(f.RESTConfig(), client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if err := f.install(ctx); err != nil {
		return err
	}
	if err := f.startComponents(); err != nil {
		return err
	}
	if f.spec.Real {
		return f.startSpokes(ctx)
	}
	return f.startAgents(ctx, scheme)
}

// serveKinds applies the kinds of Open Cluster Management and the manifests of our hub, except
// those that run it.
func serveKinds(ctx context.Context, access *rest.Config, options Options) error {
	c, err := manifests.Client(access)
	if err != nil {
		return err
	}
	hubKinds, err := fs.Sub(crds.Files, "hub")
	if err != nil {
		return fmt.Errorf("reading the kinds of Open Cluster Management: %w", err)
	}
	deploy := filepath.Join(options.Repository, "deploy")
	folders := []fs.FS{hubKinds, os.DirFS(filepath.Join(deploy, "hub", "crds")), os.DirFS(filepath.Join(deploy, "hub"))}
	if options.Spec.Real { // real clusters have a work manager
		folders = append(folders, os.DirFS(filepath.Join(deploy, "action-replica-sets")))
	}
	for _, files := range folders {
		objects, err := manifests.Read(files)
		if err != nil {
			return err
		}
		if err := manifests.Apply(ctx, c, objects, "Deployment", "ServiceMonitor", "PrometheusRule"); err != nil {
			return fmt.Errorf("deploying the hub: %w", err)
		}
	}
	return nil
}

// Spec returns the description of the fleet with all defaults.
func (f *Fleet) Spec() Spec { return f.spec }

// startComponents starts the hub controllers of Open Cluster Management.
func (f *Fleet) startComponents() error {
	kubeconfig := f.Path("components.kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, f.RESTConfig()); err != nil {
		return err
	}
	components := [][]string{{"placement", "controller"}}
	if f.spec.Real {
		components = append(components,
			[]string{"registration", "controller", "--feature-gates=ManagedClusterAutoApproval=true,DefaultClusterSet=true", "--auto-approved-csr-users=admin"},
			[]string{"work", "manager", "--feature-gates=ManifestWorkReplicaSet=true"},
		)
	}
	for _, c := range components {
		process, err := startOCM(f.ControlPlane, c[0], append(c[1:], "--kubeconfig="+kubeconfig, "--namespace="+componentsNamespace)...)
		if err != nil {
			return err
		}
		f.components = append(f.components, process)
	}
	return nil
}

// startOCM starts a program of Open Cluster Management. The control plane reports its unexpected
// end.
func startOCM(of *controlplane.ControlPlane, program string, args ...string) (*childprocess.Process, error) {
	port, err := controlplane.FreePort()
	if err != nil {
		return nil, err
	}
	return childprocess.Start(childprocess.Command{
		Path: filepath.Join(of.BinDir(), program), Env: slices.Concat(lessMemory(), os.Environ()), Log: filepath.Join(of.Dir(), "logs", program+".log"), OnExit: of.ReportExit,
		Args: append(args, "--disable-leader-election", fmt.Sprintf("--listen=127.0.0.1:%d", port)),
	})
}

// startAgents starts the simulated agents. They run until Stop.
func (f *Fleet) startAgents(ctx context.Context, scheme *runtime.Scheme) error {
	mgr, err := manager.New(rest.CopyConfig(f.RESTConfig()), manager.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)}, // a process may run several fleets
	})
	if err != nil {
		return fmt.Errorf("preparing the agents: %w", err)
	}
	if err := agent.AddToManager(mgr, agent.Options{Interval: f.spec.Interval, Clock: clock.RealClock{}}); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // the agents outlive the start
	f.stopAgents, f.agents = stop, make(chan error, 1)
	go func() { f.agents <- mgr.Start(ctx) }()
	return nil
}

// Stop stops the agents and their clusters, the components, and the control plane. It may be called
// more than once.
func (f *Fleet) Stop() error {
	var errs []error
	if f.stopAgents != nil {
		f.stopAgents()
		errs = append(errs, <-f.agents)
		f.stopAgents = nil
	}
	for _, spoke := range f.Spokes {
		errs = append(errs, spoke.Stop())
	}
	for _, component := range f.components {
		errs = append(errs, component.Stop(grace))
	}
	return errors.Join(append(errs, f.ControlPlane.Stop())...)
}
