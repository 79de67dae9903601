// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	apiserverv1 "github.com/openshift/api/apiserver/v1"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
)

// NewScheme returns a scheme with the kinds of Kubernetes, OpenShift, Open Cluster Management, and
// this project.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, configv1.Install, operatorv1.Install, apiserverv1.Install, mcfgv1.Install, machinev1beta1.Install,
		upgradev1alpha1.AddToScheme, maintenancev1beta1.AddToScheme, updatev1beta1.AddToScheme,
		fleetv1beta1.AddToScheme, fleetv1alpha1.AddToScheme, clusterv1.Install, ocmv1beta1.Install, workv1.Install, workv1alpha1.Install,
	} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

// kindsWithStatus returns the kinds related to upgrades whose status is a subresource.
func kindsWithStatus() []client.Object {
	return []client.Object{
		&configv1.ClusterVersion{}, &configv1.ClusterOperator{}, &mcfgv1.MachineConfigPool{},
		&machinev1beta1.MachineSet{}, &machinev1beta1.Machine{}, &upgradev1alpha1.UpgradeConfig{},
		&maintenancev1beta1.ClusterVersion{}, &maintenancev1beta1.UpgradeConfig{}, &maintenancev1beta1.UpgradeJob{}, &maintenancev1beta1.UpgradeJobHook{},
		&maintenancev1beta1.UpgradeSuspensionWindow{}, &updatev1beta1.UpdateInformer{}, &updatev1beta1.UpdateStatus{}, &updatev1beta1.UpdatePlan{},
		&corev1.Node{}, &corev1.Pod{}, &policyv1.PodDisruptionBudget{}, &batchv1.Job{}, &appsv1.Deployment{},
		&fleetv1beta1.ManagedClustersUpgrade{}, &fleetv1alpha1.ClusterUpgradeRun{},
		&clusterv1.ManagedCluster{}, &ocmv1beta1.Placement{}, &ocmv1beta1.PlacementDecision{}, &workv1.ManifestWork{}, &workv1alpha1.ManifestWorkReplicaSet{},
	}
}
