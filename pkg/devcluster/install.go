// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"context"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/cvo"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/machineapi"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/machineconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/realcvo"
)

// namespaces are those of OpenShift that upgraders look into or write to.
func namespaces() []string {
	return []string{
		cvo.MachineConfigNamespace,
		"openshift-cluster-version",
		"openshift-config",
		"openshift-config-managed",
		machineapi.Namespace,
		"openshift-monitoring",
	}
}

// install creates what an installer would have left behind.
func (c *Cluster) install(ctx context.Context) error {
	for _, name := range namespaces() {
		if err := c.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return fmt.Errorf("creating namespace %s: %w", name, err)
		}
	}
	if err := c.installInfrastructure(ctx); err != nil {
		return err
	}
	if err := c.Client.Create(ctx, &configv1.FeatureGate{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}); err != nil {
		return fmt.Errorf("creating the feature gates: %w", err)
	}
	if c.spec.CVO == Real { // it applies it by itself, once it may do so
		if err := c.Client.Create(ctx, realcvo.ClusterRoleBinding()); err != nil {
			return fmt.Errorf("permitting the cluster version operator everything: %w", err)
		}
	}
	if err := machineconfig.Bootstrap(ctx, c.Client, c.spec.Pools, c.spec.Version); err != nil {
		return err
	}
	if err := machineapi.Bootstrap(ctx, c.Client, c.spec.MachineSets, infrastructureName, c.workers()); err != nil {
		return err
	}
	return cvo.Bootstrap(ctx, c.Client, c.cvoOptions(), c.spec.Channel, c.graph.URL(), string(uuid.NewUUID()))
}

// infrastructureName is what the cluster's own objects call it.
const infrastructureName = "devcluster"

// workers are the names of the nodes that MachineSets have made.
func (c *Cluster) workers() []string {
	var names []string
	for i := range c.spec.Workers {
		names = append(names, fmt.Sprintf("%s-%d", machineconfig.Worker, i))
	}
	return names
}

func (c *Cluster) installInfrastructure(ctx context.Context) error {
	infrastructure := &configv1.Infrastructure{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster"},
		Spec:       configv1.InfrastructureSpec{PlatformSpec: configv1.PlatformSpec{Type: configv1.NonePlatformType}},
	}
	if err := c.Client.Create(ctx, infrastructure); err != nil {
		return fmt.Errorf("creating the infrastructure: %w", err)
	}
	infrastructure.Status = configv1.InfrastructureStatus{
		InfrastructureName:     infrastructureName,
		Platform:               configv1.NonePlatformType,
		PlatformStatus:         &configv1.PlatformStatus{Type: configv1.NonePlatformType},
		APIServerURL:           c.RESTConfig().Host,
		APIServerInternalURL:   c.RESTConfig().Host,
		ControlPlaneTopology:   configv1.HighlyAvailableTopologyMode,
		InfrastructureTopology: configv1.HighlyAvailableTopologyMode,
		CPUPartitioning:        configv1.CPUPartitioningNone,
	}
	if err := c.Client.Status().Update(ctx, infrastructure); err != nil {
		return fmt.Errorf("creating the status of the infrastructure: %w", err)
	}
	return nil
}

// await returns once the cluster is as an installed one.
func (c *Cluster) await(ctx context.Context) error {
	if err := until(ctx, c.missing); err != nil || c.spec.CVO != Real {
		return err
	}
	if err := realcvo.Resync(ctx, c.Client); err != nil {
		return err
	}
	return until(ctx, c.unsettled)
}

// unsettled says what the real cluster version operator has not noticed yet.
func (c *Cluster) unsettled(ctx context.Context) (string, error) {
	var version configv1.ClusterVersion
	if err := c.Client.Get(ctx, client.ObjectKey{Name: cvo.Name}, &version); err != nil {
		return "", fmt.Errorf("getting the cluster version: %w", err)
	}
	for _, condition := range version.Status.Conditions {
		if condition.Type == configv1.OperatorUpgradeable && condition.Status == configv1.ConditionFalse {
			return "the cluster is upgradeable", nil
		}
	}
	return "", nil
}

// until returns once nothing is missing.
func until(ctx context.Context, missingFrom func(context.Context) (string, error)) error {
	var missing string
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var err error
		missing, err = missingFrom(ctx)
		return missing == "", err
	})
	if err != nil {
		return fmt.Errorf("waiting until %s: %w", missing, err)
	}
	return nil
}

func (c *Cluster) missing(ctx context.Context) (string, error) {
	var version configv1.ClusterVersion
	if err := c.Client.Get(ctx, client.ObjectKey{Name: cvo.Name}, &version); err != nil {
		return "", fmt.Errorf("getting the cluster version: %w", err)
	}
	if len(version.Status.History) == 0 || version.Status.History[0].State != configv1.CompletedUpdate {
		return "the cluster version reports its history", nil
	}
	var pools mcfgv1.MachineConfigPoolList
	if err := c.Client.List(ctx, &pools); err != nil {
		return "", fmt.Errorf("listing the pools: %w", err)
	}
	for _, pool := range pools.Items {
		if pool.Status.Configuration.Name == "" {
			return "pool " + pool.Name + " reports its nodes", nil
		}
	}
	var nodes corev1.NodeList
	if err := c.Client.List(ctx, &nodes); err != nil {
		return "", fmt.Errorf("listing the nodes: %w", err)
	}
	for _, node := range nodes.Items {
		for _, taint := range node.Spec.Taints {
			if taint.Key == corev1.TaintNodeNotReady {
				return "node " + node.Name + " is ready", nil
			}
		}
	}
	return "", nil
}
