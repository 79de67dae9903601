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
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/ocm/crds"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/ocm/klusterlet"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/childprocess"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/manifests"
)

const (
	// spokeSpeed is the speed of the simulated parts of a real cluster. An upgrade takes about 10
	// seconds.
	spokeSpeed = 240
	// evictionGrace is how long the work agent keeps applied resources after the hub has lost their
	// ManifestWork. The agent's default is an hour.
	evictionGrace = 5 * time.Second
)

// Spoke is a real managed cluster: a dev cluster with Open Cluster Management's registration and
// work agents, running with the permissions of a klusterlet.
type Spoke struct {
	*devcluster.Cluster

	// Name is the name of the ManagedCluster.
	Name string

	agents []*childprocess.Process
}

// startSpokes starts the real clusters and returns when all of them are available on the hub.
func (f *Fleet) startSpokes(ctx context.Context) error {
	bootstrap := f.Path("bootstrap.kubeconfig")
	if err := f.Kubeconfig(bootstrap); err != nil {
		return err
	}
	f.Spokes = make([]*Spoke, f.spec.Clusters)
	errs := make([]error, f.spec.Clusters)
	var group sync.WaitGroup
	for i := range f.Spokes {
		f.Spokes[i] = &Spoke{Name: ClusterName(i + 1)}
		group.Go(func() { errs[i] = f.Spokes[i].start(ctx, f, bootstrap) })
	}
	group.Wait()
	return errors.Join(errs...)
}

func (s *Spoke) start(ctx context.Context, f *Fleet, bootstrap string) error {
	kinds, err := fs.Sub(crds.Files, "spoke")
	if err != nil {
		return fmt.Errorf("reading the kinds of Open Cluster Management: %w", err)
	}
	s.Cluster, err = devcluster.Start(ctx, devcluster.Options{
		BinDir: f.BinDir(), Dir: f.Path("spokes", s.Name),
		Spec:        openshiftsim.ClusterSpec{Version: Installed, Speed: spokeSpeed, Masters: 1, Workers: 1},
		Kinds:       kinds,
		Env:         lessMemory(),
		Controllers: []string{"clusterrole-aggregation-controller"},
		Programs:    []string{"operator"}, // for the Jobs that approve operators
	})
	if err != nil {
		return fmt.Errorf("starting cluster %s: %w", s.Name, err)
	}
	if err := s.Kubeconfig(s.AdminKubeconfig()); err != nil {
		return err
	}
	if err := s.installKlusterlet(ctx); err != nil {
		return err
	}
	if err := s.startRegistration(ctx, bootstrap); err != nil {
		return err
	}
	if err := s.startWork(ctx, f.spec.Interval); err != nil {
		return err
	}
	return f.awaitAvailable(ctx, s.Name)
}

// installKlusterlet creates the ServiceAccounts of the agents and grants their permissions.
func (s *Spoke) installKlusterlet(ctx context.Context) error {
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: klusterlet.Namespace}}, klusterlet.Aggregate(),
	} {
		if err := s.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %s on cluster %s: %w", object.GetName(), s.Name, err)
		}
	}
	objects, err := klusterlet.Objects()
	if err != nil {
		return err
	}
	return manifests.Apply(ctx, s.Client, objects)
}

// startRegistration starts the registration agent and returns when it has credentials for the hub.
func (s *Spoke) startRegistration(ctx context.Context, bootstrap string) error {
	if err := s.startAgent(ctx, "registration", klusterlet.RegistrationServiceAccount,
		"--bootstrap-kubeconfig="+bootstrap, "--hub-kubeconfig-dir="+s.hubCredentials(), "--feature-gates=ClusterClaim=true",
	); err != nil {
		return err
	}
	return s.await(ctx, "it has credentials for the hub", func(context.Context) (bool, error) {
		_, err := os.Stat(s.hubKubeconfig())
		return err == nil, nil
	})
}

// startWork starts the work agent. interval is the time between two status reports for its works.
// On the first cluster, the agent also reports lists and objects.
func (s *Spoke) startWork(ctx context.Context, interval time.Duration) error {
	return s.startAgent(ctx, "work", klusterlet.WorkServiceAccount,
		"--workload-source-config="+s.hubKubeconfig(), "--status-sync-interval="+interval.String(),
		"--appliedmanifestwork-eviction-grace-period="+evictionGrace.String(),
		"--feature-gates=RawFeedbackJsonString="+strconv.FormatBool(s.Name == ClusterName(1)),
	)
}

// startAgent starts an agent with the permissions of its ServiceAccount.
func (s *Spoke) startAgent(ctx context.Context, program, account string, args ...string) error {
	kubeconfig := s.Path(program + ".kubeconfig")
	if err := s.ServiceAccountKubeconfig(ctx, kubeconfig, klusterlet.Namespace, account); err != nil {
		return err
	}
	args = append([]string{"agent", "--kubeconfig=" + kubeconfig, "--namespace=" + klusterlet.Namespace, "--spoke-cluster-name=" + s.Name}, args...)
	agent, err := startOCM(s.ControlPlane, program, args...)
	if err != nil {
		return err
	}
	s.agents = append(s.agents, agent)
	return nil
}

// AdminKubeconfig returns the path of the cluster administrator's kubeconfig.
func (s *Spoke) AdminKubeconfig() string { return s.Path("kubeconfig") }

// hubCredentials returns the folder where the registration agent stores its credentials for the
// hub.
func (s *Spoke) hubCredentials() string { return s.Path("hub-kubeconfig") }

func (s *Spoke) hubKubeconfig() string { return filepath.Join(s.hubCredentials(), "kubeconfig") }

func (s *Spoke) await(ctx context.Context, what string, holds wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, holds); err != nil {
		return fmt.Errorf("waiting until cluster %s joins, until %s: %w", s.Name, what, err)
	}
	return nil
}

// awaitAvailable waits until a cluster is available on the hub.
func (f *Fleet) awaitAvailable(ctx context.Context, name string) error {
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		cluster := &clusterv1.ManagedCluster{}
		err := f.Client.Get(ctx, client.ObjectKey{Name: name}, cluster)
		return apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable), err
	})
	if err != nil {
		return fmt.Errorf("waiting until cluster %s is available: %w", name, err)
	}
	return nil
}

// Stop stops the agents and the cluster. It may be called more than once.
func (s *Spoke) Stop() error {
	var errs []error
	for _, agent := range s.agents {
		errs = append(errs, agent.Stop(grace))
	}
	if s.Cluster != nil {
		errs = append(errs, s.Cluster.Stop())
	}
	return errors.Join(errs...)
}
