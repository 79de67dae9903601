// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
)

// simulated is a cluster in virtual time.
type simulated struct {
	*openshift.Cluster

	world *simulation.World
}

func newSimulated(t *testing.T, spec devcluster.Spec) simulated {
	t.Helper()
	w := simulation.New(simulation.Options{})
	for _, resource := range []schema.GroupResource{
		{Group: updatev1beta1.GroupVersion.Group, Resource: "updatestatuses"}, {Group: "hypershift.openshift.io", Resource: "nodepools"},
	} {
		w.StopServing(resource)
	}
	cluster, err := openshift.New(w, spec)
	if err != nil {
		t.Fatal(err)
	}
	return simulated{cluster, w}
}

// update requests 4.20.6 and runs the cluster for a time.
func (s simulated) update(t *testing.T, d time.Duration) {
	t.Helper()
	version := s.Version()
	patch := []byte(`{"spec":{"desiredUpdate":{"version":"4.20.6"}}}`)
	if err := s.Client.Patch(t.Context(), version, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
	if err := s.world.RunFor(d); err != nil {
		t.Fatal(err)
	}
}

// connect returns the cluster as a command works on it.
func (s simulated) connect() *Cluster {
	return &Cluster{Reader: s.Client, Client: s.Client, Clock: s.world.Clock()}
}

// dumpedLists are the kinds of a dump.
func dumpedLists() map[string]client.ObjectList {
	return map[string]client.ObjectList{
		"versions": &configv1.ClusterVersionList{}, "operators": &configv1.ClusterOperatorList{}, "nodes": &corev1.NodeList{},
		"pools": &mcfgv1.MachineConfigPoolList{}, "configs": &mcfgv1.MachineConfigList{}, "pods": &corev1.PodList{},
		"budgets": &policyv1.PodDisruptionBudgetList{}, "sets": &machinev1beta1.MachineSetList{},
		"upgradeconfigs": &v1alpha1.UpgradeConfigList{}, "jobs": &maintenancev1beta1.UpgradeJobList{}, "schedules": &maintenancev1beta1.UpgradeConfigList{},
	}
}

// dump writes all objects into a folder, as "oc get -o yaml" prints them.
func (s simulated) dump(t *testing.T) string {
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

// computed returns what "status" prints, and the status behind it.
func computed(t *testing.T, cluster *Cluster) (result, updatev1beta1.UpdateStatusStatus) {
	t.Helper()
	s, err := cluster.readStatus(t.Context(), controllerNamespace, nil)
	if err != nil {
		t.Fatal(err)
	}
	return runStatus(t, cluster, statusOptions{details: true}, ""), s.object.Status
}

// A dump has the same verdict as the cluster from which it was taken.
func TestStatus_of_a_dump_is_that_of_the_cluster(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{"idle": 0, "control plane": 20 * time.Minute, "workers": 30 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSimulated(t, devcluster.Spec{})
			if after > 0 {
				s.update(t, after)
			}
			live, want := computed(t, s.connect())
			d, err := readDump(s.dump(t), sharedScheme(), defaultDumpLimits)
			if err != nil {
				t.Fatal(err)
			}
			replayed, got := computed(t, &Cluster{Reader: d, Clock: fixedClock(s.world.Now()), dump: d, Prometheus: d})
			if diff := cmp.Diff(want, got); diff != "" || replayed.code != live.code {
				t.Errorf("exit code %d, want %d, status (-live +replayed):\n%s", replayed.code, live.code, diff)
			}
			if len(d.problems) > 0 {
				t.Errorf("problems: %q", d.problems)
			}
		})
	}
}

// A dump that has the UpdateStatus, thus was taken while the Update Status Controller ran, has the verdict of the
// controller, with the times at which it first observed what goes on.
func TestStatus_of_a_dump_with_an_UpdateStatus(t *testing.T) {
	t.Parallel()
	s := newSimulated(t, devcluster.Spec{})
	s.update(t, 20*time.Minute)
	first, err := s.connect().readStatus(t.Context(), controllerNamespace, nil)
	if err != nil {
		t.Fatal(err)
	}
	published := first.object.DeepCopy()
	if err := s.world.RunFor(5 * time.Minute); err != nil {
		t.Fatal(err)
	}
	want := s.connect().assess(t.Context(), publication{object: published}, s.world.Now()).object.Status
	dir := s.dump(t)
	published.APIVersion, published.Kind = updatev1beta1.GroupVersion.String(), "UpdateStatus"
	content, err := yaml.Marshal(published)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "updatestatus"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := readDump(dir, sharedScheme(), defaultDumpLimits)
	if err != nil {
		t.Fatal(err)
	}
	_, got := computed(t, &Cluster{Reader: d, Clock: fixedClock(s.world.Now()), dump: d, Prometheus: d})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-live +replayed):\n%s", diff)
	}
	if since := got.Assessment.Since; !since.Equal(&published.Status.Assessment.Since) {
		t.Errorf("the state is since %s, and in the UpdateStatus since %s", since, published.Status.Assessment.Since)
	}
}
