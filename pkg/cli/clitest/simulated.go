// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
)

// Simulated is a cluster in virtual time.
type Simulated struct {
	*openshift.Cluster

	World *simulation.World
}

// NewSimulated returns a simulated cluster without the Update Status Controller.
func NewSimulated(t *testing.T, spec openshiftsim.ClusterSpec) Simulated {
	t.Helper()
	w := simulation.New(simulation.WorldOptions{})
	for _, resource := range []schema.GroupResource{
		{Group: updatev1beta1.GroupVersion.Group, Resource: "updatestatuses"}, {Group: "hypershift.openshift.io", Resource: "nodepools"},
	} {
		w.StopServing(resource)
	}
	cluster, err := openshift.New(w, spec)
	if err != nil {
		t.Fatal(err)
	}
	return Simulated{cluster, w}
}

// Update requests 4.20.6 and runs the cluster for the given time.
func (s Simulated) Update(t *testing.T, d time.Duration) {
	t.Helper()
	version := s.Version()
	patch := []byte(`{"spec":{"desiredUpdate":{"version":"4.20.6"}}}`)
	if err := s.Client.Patch(t.Context(), version, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
	if err := s.World.RunFor(d); err != nil {
		t.Fatal(err)
	}
}

// Connect returns the cluster in the form used by commands.
func (s Simulated) Connect() *session.Cluster {
	return &session.Cluster{Reader: s.Client, Client: s.Client, Clock: s.World.Clock()}
}

// dumpedLists maps file names to the kinds in a dump.
func dumpedLists() map[string]client.ObjectList {
	return map[string]client.ObjectList{
		"versions": &configv1.ClusterVersionList{}, "operators": &configv1.ClusterOperatorList{}, "nodes": &corev1.NodeList{},
		"pools": &mcfgv1.MachineConfigPoolList{}, "configs": &mcfgv1.MachineConfigList{}, "pods": &corev1.PodList{},
		"budgets": &policyv1.PodDisruptionBudgetList{}, "sets": &machinev1beta1.MachineSetList{},
		"upgradeconfigs": &upgradev1alpha1.UpgradeConfigList{}, "jobs": &maintenancev1beta1.UpgradeJobList{}, "schedules": &maintenancev1beta1.UpgradeConfigList{},
	}
}

// Dump writes all objects to a folder in the format of "oc get -o yaml".
func (s Simulated) Dump(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, list := range dumpedLists() {
		if err := s.Client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		content, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(content, &fields); err != nil {
			t.Fatal(err)
		}
		gvk, err := s.Client.GroupVersionKindFor(list)
		if err != nil {
			t.Fatal(err)
		}
		fields["kind"], fields["apiVersion"] = gvk.Kind, gvk.GroupVersion().String()
		if content, err = yaml.Marshal(fields); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Shop returns a Deployment with two replicas and a PodDisruptionBudget that requires both.
func Shop() []client.Object {
	labels := map[string]string{"app": "api"}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api"},
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "api", Image: "api"}}},
				},
			},
		},
		&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api"},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MinAvailable: new(intstr.FromInt32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			},
		},
	}
}
