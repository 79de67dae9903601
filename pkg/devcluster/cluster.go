// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package devcluster runs a cluster on a laptop that behaves like OpenShift in everything that
// matters to an upgrade: a real control plane with OpenShift's CustomResourceDefinitions, and
// simulators of the components on top of it. It also runs the operator against that cluster, with
// the permissions of its ServiceAccount.
//
// It knows nothing about UpgradeConfigs: scenarios and tests define what they expect of an upgrade.
package devcluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/monitoring"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/realcvo"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/sink"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/crds"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/cvo"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/kubelet"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/machineapi"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/machineconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/manifests"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
)

// Options configure a cluster.
type Options struct {
	// BinDir is the folder with the programs. It defaults to the bin folder of the working directory's
	// Go module.
	BinDir string
	// Dir is the state folder. It is created if missing.
	Dir  string
	Spec openshiftsim.ClusterSpec
	// Kinds, if set, contains YAML files of CustomResourceDefinitions to apply in addition to
	// OpenShift's.
	Kinds fs.FS
	// Controllers are run by the controller manager in addition to controlplane.DefaultControllers.
	Controllers []string
	// Env is the environment of the control plane (see controlplane.Options).
	Env []string
	// Programs are names of programs in BinDir. A pod whose command is /NAME runs the program with the
	// permissions of its ServiceAccount. This requires the simulated cluster version operator.
	Programs []string
}

// Cluster is a running dev cluster.
type Cluster struct {
	*controlplane.ControlPlane

	// Client has all permissions. It uses Go types for the kinds of Kubernetes and OpenShift, and
	// unstructured objects for others.
	Client client.Client
	// Catalog is the set of releases. Changes affect the update graph and the releases that the
	// simulated cluster version operator accepts.
	Catalog *updategraph.Catalog

	// Kubelets simulates the nodes, including power failures.
	Kubelets *kubelet.Kubelets
	// MachineConfig simulates the machine config operator.
	MachineConfig *machineconfig.Simulator
	// Monitoring runs Prometheus and Alertmanager; it is nil if the Spec has no monitoring.
	Monitoring *monitoring.Monitoring
	// Sink receives the notifications from the operator's webhook.
	Sink *sink.Server

	spec           openshiftsim.ClusterSpec
	programs       []string
	graph          *updategraph.Server
	realCVO        *realcvo.Operator // nil if simulated
	key            *realcvo.Key      // signs releases; nil if they are not signed
	stopSimulators context.CancelFunc
	simulators     chan error
}

// Scheme returns a scheme with the Kubernetes and OpenShift kinds that a dev cluster serves.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(
		clientgoscheme.AddToScheme(scheme),
		configv1.Install(scheme),
		machinev1beta1.Install(scheme),
		mcfgv1.Install(scheme),
	)
	return scheme, err
}

// Start returns when the cluster looks newly installed: Available, not Progressing, nodes ready,
// pools updated, updates retrieved. The context limits only the start; call Stop to stop the
// cluster.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	if allErrs := options.Spec.Validate(nil); len(allErrs) > 0 {
		return nil, fmt.Errorf("describing the cluster: %w", allErrs.ToAggregate())
	}
	if options.Spec.CVO == openshiftsim.Real {
		if err := realcvo.Require(); err != nil {
			return nil, fmt.Errorf("--cvo=real: %w", err)
		}
	}
	running, err := controlplane.Start(ctx, controlplane.Options{
		BinDir: options.BinDir, Dir: options.Dir, Env: options.Env,
		Controllers: append(controlplane.DefaultControllers(), options.Controllers...),
		Prepare:     func(ctx context.Context, access *rest.Config) error { return serveKinds(ctx, access, options.Kinds) },
	})
	if err != nil {
		return nil, err
	}
	c := &Cluster{ControlPlane: running, spec: options.Spec.WithDefaults(), programs: options.Programs}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// serveKinds applies the CustomResourceDefinitions of OpenShift and others.
func serveKinds(ctx context.Context, access *rest.Config, others fs.FS) error {
	objects, err := manifests.Read(crds.Files)
	if err != nil {
		return err
	}
	if others != nil {
		more, err := manifests.Read(others)
		if err != nil {
			return err
		}
		objects = append(objects, more...)
	}
	c, err := manifests.Client(access)
	if err != nil {
		return err
	}
	if err := manifests.Apply(ctx, c, objects); err != nil {
		return fmt.Errorf("serving the kinds of OpenShift: %w", err)
	}
	return nil
}

// Spec returns the description of the cluster, with defaults applied.
func (c *Cluster) Spec() openshiftsim.ClusterSpec { return c.spec }

// Stop stops the simulators, the update graph, the receiver, the monitoring, and the control plane.
// It may be called more than once.
func (c *Cluster) Stop() error {
	var errs []error
	if c.realCVO != nil { // a simulator may be waiting for it
		errs = append(errs, c.realCVO.Stop())
	}
	if c.stopSimulators != nil {
		c.stopSimulators()
		errs = append(errs, <-c.simulators)
		c.stopSimulators = nil
	}
	if c.graph != nil {
		errs = append(errs, c.graph.Stop())
		c.graph = nil
	}
	if c.Sink != nil {
		errs = append(errs, c.Sink.Stop())
	}
	if c.Monitoring != nil {
		errs = append(errs, c.Monitoring.Stop())
	}
	return errors.Join(append(errs, c.ControlPlane.Stop())...)
}

// Apply applies the YAML files in a folder, except objects of the kinds in skip.
func (c *Cluster) Apply(ctx context.Context, files fs.FS, skip ...string) error {
	objects, err := manifests.Read(files)
	if err != nil {
		return err
	}
	return manifests.Apply(ctx, c.Client, objects, skip...)
}

// Deploy applies the operator's manifests from the deploy folder of a checkout, without the
// Deployment: CustomResourceDefinitions, the namespace, and the ServiceAccount with its
// permissions.
func (c *Cluster) Deploy(ctx context.Context, repository string) error {
	for _, folder := range []string{"crds", "operator", "file-integrity"} {
		files := os.DirFS(filepath.Join(repository, "deploy", folder))
		err := c.Apply(ctx, files, "Deployment")
		if err != nil {
			return fmt.Errorf("deploying %s: %w", folder, err)
		}
	}
	return c.awaitAdmissionPolicies(ctx)
}

func (c *Cluster) start(ctx context.Context) error {
	scheme, err := Scheme()
	if err != nil {
		return fmt.Errorf("knowing the kinds of OpenShift: %w", err)
	}
	if c.Client, err = client.New(c.RESTConfig(), client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	c.Catalog = updategraph.NewCatalog(c.spec.Releases...)
	if c.spec.CVO == openshiftsim.Real {
		if c.key, err = realcvo.NewKey(); err != nil {
			return err
		}
	}
	if c.graph, err = updategraph.Serve(c.Catalog, c.signer()); err != nil {
		return err
	}
	if err := c.monitor(ctx); err != nil {
		return err
	}
	if err := c.install(ctx); err != nil {
		return fmt.Errorf("installing OpenShift: %w", err)
	}
	if err := c.startSimulators(ctx, scheme); err != nil {
		return err
	}
	if c.Sink, err = sink.New(c.Path("logs", "receiver.log")); err != nil {
		return err
	}
	if err := c.Sink.Start(); err != nil {
		return err
	}
	return c.await(ctx)
}

// monitor starts the monitoring if the Spec includes it.
func (c *Cluster) monitor(ctx context.Context) (err error) {
	if c.spec.Monitoring == nil {
		return nil
	}
	c.Monitoring, err = monitoring.Start(ctx, monitoring.Options{
		BinDir: c.BinDir(), Dir: c.Dir(), Spec: *c.spec.Monitoring, OnExit: c.ReportExit,
	})
	return err
}

func (c *Cluster) cvoOptions() cvo.Options {
	return cvo.Options{Speed: c.spec.Speed, Catalog: c.Catalog, Installed: c.spec.Version, Operators: c.spec.Operators}
}

// startSimulators starts the simulators. They run until Stop.
func (c *Cluster) startSimulators(ctx context.Context, scheme *runtime.Scheme) error {
	log, closeLog, err := simulatorLog(c.Path("logs", "simulators.log"))
	if err != nil {
		return err
	}
	mgr, err := manager.New(rest.CopyConfig(c.RESTConfig()), manager.Options{
		Scheme:                 scheme,
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Controller:             ctrlconfig.Controller{SkipNameValidation: new(true)}, // a process may run several dev clusters
		Logger:                 log,
	})
	if err != nil {
		return fmt.Errorf("preparing the simulators: %w", err)
	}
	run, err := c.addCVO(ctx, mgr)
	if err != nil {
		return err
	}
	kubelets, err := kubelet.AddToManager(mgr, run, c.Path("logs", "pods"))
	if err != nil {
		return err
	}
	c.Kubelets = kubelets
	c.MachineConfig, err = machineconfig.AddToManager(mgr, machineconfig.Options{Speed: c.spec.Speed, Kubelets: kubelets, Nodes: c.spec.Nodes})
	if err != nil {
		return err
	}
	if err := machineapi.AddToManager(mgr, machineapi.Options{Speed: c.spec.Speed, Kubelets: kubelets}); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // the simulators outlive the start
	c.stopSimulators, c.simulators = stop, make(chan error, 1)
	go func() { c.simulators <- errors.Join(mgr.Start(ctx), closeLog()) }()
	return nil
}

// addCVO adds the simulated or the real cluster version operator to the manager. It returns the
// function that runs pods.
func (c *Cluster) addCVO(ctx context.Context, mgr manager.Manager) (kubelet.Run, error) {
	if c.spec.CVO != openshiftsim.Real {
		return c.runProgram, cvo.AddToManager(mgr, c.cvoOptions())
	}
	account, err := c.ServiceAccountConfig(ctx, realcvo.Namespace, realcvo.ServiceAccount)
	if err != nil {
		return nil, err
	}
	options := realcvo.Options{
		BinDir: c.BinDir(), Dir: c.Path("cluster-version-operator"), Log: c.Path("logs", "cluster-version-operator.log"),
		Client: account, Key: c.key, Signatures: c.graph.SignaturesURL(),
		Speed: c.spec.Speed, Catalog: c.Catalog, Installed: c.spec.Version, Operators: c.spec.Operators,
		OnExit: c.ReportExit,
	}
	if c.Monitoring != nil {
		options.Prometheus = c.Monitoring.PrometheusURL()
	}
	if c.realCVO, err = realcvo.New(options); err != nil {
		return nil, err
	}
	return c.realCVO.Run, c.realCVO.AddToManager(mgr)
}

// signer returns the key that signs releases, or nil for unsigned releases. Only the real cluster
// version operator verifies signatures.
func (c *Cluster) signer() updategraph.Signer {
	if c.key == nil {
		return nil
	}
	return c.key
}
