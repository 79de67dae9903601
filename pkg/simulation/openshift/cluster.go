// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/crds"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/cvo"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/fakealertmanager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/kubelet"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/machineapi"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/machineconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/timescale"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// Polling intervals of the simulators. They are much longer than in the dev cluster, because every
// poll costs a write.
const (
	progressInterval = timescale.Duration(10 * time.Minute)
	retryInterval    = timescale.Duration(30 * time.Second)
)

// clusterID identifies each simulated cluster.
const clusterID = "8a2f3d5e-1b6c-4f7a-9e0d-5c4b3a291807"

// Cluster is an OpenShift cluster in a World.
type Cluster struct {
	World *simulation.World
	// Spec is the description of the cluster, with defaults applied.
	Spec openshiftsim.ClusterSpec
	// Client is the administrator's client.
	Client client.WithWatch
	// Catalog is the set of releases. Changing it changes the offered and accepted releases.
	Catalog *updategraph.Catalog
	// Kubelets simulates the nodes, and MachineConfig the machine config operator.
	Kubelets      *kubelet.Kubelets
	MachineConfig *machineconfig.Simulator
	// Alerts and Alertmanager simulate the monitoring.
	Alerts       *Alerts
	Alertmanager *fakealertmanager.Alertmanager
}

// New installs a cluster in the world and runs it until it has settled.
func New(w *simulation.World, spec openshiftsim.ClusterSpec) (*Cluster, error) {
	if errs := spec.Validate(nil); len(errs) > 0 {
		return nil, fmt.Errorf("describing the cluster: %w", errs.ToAggregate())
	}
	if spec.Speed == 0 {
		spec.Speed = 1 // as long as on a real cluster, since time is virtual
	}
	spec = spec.WithDefaults()
	c := &Cluster{
		World: w, Spec: spec, Client: w.Client("administrator"), Catalog: updategraph.NewCatalog(spec.Releases...),
		Alerts: NewAlerts(w.Clock()), Alertmanager: fakealertmanager.New(w.Clock()),
	}
	c.Kubelets = kubelet.New(kubelet.Options{Clock: w.Clock(), PodRetry: spec.Speed.Scale(retryInterval), StatusInterval: 24 * time.Hour})
	c.MachineConfig = machineconfig.New(machineconfig.Options{
		Speed: spec.Speed, Kubelets: c.Kubelets, Nodes: spec.Nodes, Clock: w.Clock(), DrainRetry: spec.Speed.Scale(retryInterval),
	})
	if err := c.install(context.Background()); err != nil {
		return nil, fmt.Errorf("installing OpenShift: %w", err)
	}
	for _, program := range []*simulation.Program{simulation.KubeControllerManager(), c.simulators()} {
		if _, err := w.Start(program); err != nil {
			return nil, err
		}
	}
	w.EnableGarbageCollection()
	if err := w.RunUntil(time.Hour, c.Settled); err != nil {
		return nil, fmt.Errorf("settling the cluster: %w", err)
	}
	return c, nil
}

// simulators returns the program that simulates OpenShift.
func (c *Cluster) simulators() *simulation.Program {
	return &simulation.Program{
		Name: "openshift", Direct: true,
		Controllers: func(env simulation.Env) ([]manager.Controller, error) {
			options := c.cvoOptions()
			operator, err := cvo.New(options)
			if err != nil {
				return nil, err
			}
			machines := machineapi.New(machineapi.Options{Speed: c.Spec.Speed, Kubelets: c.Kubelets, Clock: env.Clock, DrainRetry: c.Spec.Speed.Scale(retryInterval)})
			controllers := operator.Controllers()
			controllers = append(controllers, c.Kubelets.Controllers()...)
			controllers = append(controllers, c.MachineConfig.Controllers()...)
			return append(controllers, machines.Controllers()...), nil
		},
	}
}

func (c *Cluster) cvoOptions() cvo.Options {
	return cvo.Options{
		Speed: c.Spec.Speed, Catalog: c.Catalog, Installed: c.Spec.Version, Operators: c.Spec.Operators,
		Clock: c.World.Clock(), Graph: handlerTransport{updategraph.Handler(c.Catalog, nil)}, ProgressInterval: c.Spec.Speed.Scale(progressInterval),
	}
}

// handlerTransport serves requests without a network.
type handlerTransport struct{ handler http.Handler }

// RoundTrip serves one request.
func (t handlerTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	t.handler.ServeHTTP(recorder, request)
	return recorder.Result(), nil
}

// install creates the objects that an installer creates.
func (c *Cluster) install(ctx context.Context) error {
	for _, name := range []string{
		"default", "openshift-machine-config-operator", "openshift-config", machineapi.Namespace, "openshift-monitoring", "managed-upgrade-operator",
	} {
		if err := c.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return fmt.Errorf("creating namespace %s: %w", name, err)
		}
	}
	if err := machineconfig.Bootstrap(ctx, c.Client, c.World.Now(), c.Spec.Pools, c.Spec.Version); err != nil {
		return err
	}
	var workers []string
	for i := range c.Spec.Workers {
		workers = append(workers, fmt.Sprintf("%s-%d", machineconfig.Worker, i))
	}
	if err := machineapi.Bootstrap(ctx, c.Client, c.Spec.MachineSets, "simulation", workers); err != nil {
		return err
	}
	return cvo.Bootstrap(ctx, c.Client, c.cvoOptions(), c.Spec.Channel, "http://graph.invalid/graph", clusterID)
}

// Settled reports whether the control plane, pools, and nodes are at the same release and no
// rollout is in progress.
func (c *Cluster) Settled() bool {
	version := c.Version()
	if len(version.Status.History) == 0 || version.Status.History[0].State != configv1.CompletedUpdate {
		return false
	}
	var pools mcfgv1.MachineConfigPoolList
	if err := c.Client.List(context.Background(), &pools); err != nil {
		return false
	}
	for i := range pools.Items {
		pool := &pools.Items[i]
		target := machineconfig.RenderedName(pool.Name, version.Status.History[0].Version)
		if pool.Status.Configuration.Name != target || pool.Spec.Configuration.Name != target || pool.Status.UpdatedMachineCount != pool.Status.MachineCount {
			return false
		}
	}
	return true
}

// Version returns the ClusterVersion, or an empty one if it does not exist.
func (c *Cluster) Version() *configv1.ClusterVersion {
	var version configv1.ClusterVersion
	if err := c.Client.Get(context.Background(), client.ObjectKey{Name: cvo.Name}, &version); err != nil {
		return &configv1.ClusterVersion{}
	}
	return &version
}

var definitions = sync.OnceValues(func() ([]*simulation.Definition, error) {
	ours, err := simulation.Definitions(os.DirFS(filepath.Join(Root(), "deploy", "crds")))
	if err != nil {
		return nil, err
	}
	status, err := simulation.Definitions(os.DirFS(filepath.Join(Root(), "deploy", "update-status", "crds")))
	if err != nil {
		return nil, err
	}
	theirs, err := simulation.Definitions(crds.Files)
	return slices.Concat(ours, status, theirs), err
})

// Definitions returns the definitions of OpenShift and of this project from the checkout that
// contains the working directory. They are compiled only once.
func Definitions() ([]*simulation.Definition, error) { return definitions() }

// Root returns the root folder of the module that contains the working directory.
func Root() string {
	folder, err := os.Getwd()
	if err != nil {
		return "."
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "."
		}
		folder = parent
	}
}
