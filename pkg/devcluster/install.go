// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/realcvo"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/cvo"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/machineapi"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/machineconfig"
)

// namespaces returns the OpenShift namespaces that upgraders read from or write to.
func namespaces() []string {
	return []string{
		cvo.MachineConfigNamespace,
		"openshift-cluster-version",
		"openshift-config",
		"openshift-config-managed",
		"openshift-file-integrity",
		machineapi.Namespace,
		"openshift-monitoring",
	}
}

// install creates the objects that the OpenShift installer would have created.
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
	if c.spec.CVO == openshiftsim.Real { // the cluster version operator needs the binding to apply the binding itself
		if err := c.Client.Create(ctx, realcvo.ClusterRoleBinding()); err != nil {
			return fmt.Errorf("granting the cluster version operator its permissions: %w", err)
		}
	}
	if err := machineconfig.Bootstrap(ctx, c.Client, time.Now(), c.spec.Pools, c.spec.Version); err != nil {
		return err
	}
	if err := machineapi.Bootstrap(ctx, c.Client, c.spec.MachineSets, openshiftsim.InfrastructureName, c.workers()); err != nil {
		return err
	}
	return cvo.Bootstrap(ctx, c.Client, c.cvoOptions(), c.spec.Channel, c.graph.URL(), string(uuid.NewUUID()))
}

// workers returns the names of the nodes created by MachineSets.
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
		InfrastructureName:     openshiftsim.InfrastructureName,
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

// await waits until the cluster has reached the state at the end of an installation.
func (c *Cluster) await(ctx context.Context) error {
	if err := until(ctx, c.missing); err != nil || c.spec.CVO != openshiftsim.Real {
		return err
	}
	if err := realcvo.Resync(ctx, c.Client); err != nil {
		return err
	}
	return until(ctx, c.unsettled)
}

// unsettled describes what the real cluster version operator has not observed yet, or returns an
// empty string.
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

// until waits until nothing is missing.
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

// missing describes what this cluster still lacks compared to an installed one, or returns an empty
// string.
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

// lastAdmissionPolicy is the admission policy that is applied last.
const lastAdmissionPolicy = "managed-upgrade-operator-clusterversion"

// awaitAdmissionPolicies waits until the API server enforces the admission policies that restrict
// the operator. It returns immediately if they are not deployed.
func (c *Cluster) awaitAdmissionPolicies(ctx context.Context) error {
	var policy admissionregistrationv1.ValidatingAdmissionPolicy
	if err := c.Client.Get(ctx, client.ObjectKey{Name: lastAdmissionPolicy}, &policy); err != nil {
		return client.IgnoreNotFound(err)
	}
	access := rest.CopyConfig(c.RESTConfig())
	access.Impersonate.UserName = "system:serviceaccount:" + OperatorNamespace + ":" + OperatorServiceAccount
	operator, err := client.New(access, client.Options{Scheme: c.Client.Scheme()})
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	violation := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"labels": {"violates": "policy"}}}`))
	version := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: cvo.Name}}
	return until(ctx, func(ctx context.Context) (string, error) {
		err := operator.Patch(ctx, version.DeepCopy(), violation, client.DryRunAll)
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), lastAdmissionPolicy) {
			return "", nil
		}
		return "the admission policies are in effect", nil
	})
}
