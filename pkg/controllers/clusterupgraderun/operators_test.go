// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
)

// include approves one operator in a namespace that the cluster has, and one in a namespace that it lacks.
func include(u *fleetv1beta1.ManagedClustersUpgrade) {
	u.Spec.OCPOperators = &fleetv1beta1.OCPOperators{Include: []fleetv1beta1.OperatorReference{
		{Name: "gitops", Namespace: "gitops"}, {Name: "quay", Namespace: "quay"},
	}}
}

// createNamespace has a user of the cluster create a namespace.
func (w *world) createNamespace(name string) {
	other := &workv1.ManifestWork{Spec: workv1.ManifestWorkSpec{
		DeleteOption: &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan},
		Workload: workv1.ManifestsTemplate{Manifests: []workv1.Manifest{
			raw(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + name + `"}}`),
		}},
	}}
	other.Name = "namespace-" + name
	w.spoke.Apply(other, w.Now())
}

// The rights to approve InstallPlans are never created in a namespace that other clients may edit.
func TestRun_operators_in_a_namespace_of_other_clients(t *testing.T) {
	t.Parallel()
	w := newWorld(t, operators)
	namespace, _ := delivery.ApproverNamespace()
	w.createNamespace(namespace)
	w.jobs = map[string]string{"installplan": "Complete"}
	w.admit()
	w.settle(5 * time.Hour)
	w.expect(fleetv1alpha1.StateFailed, "OperatorsFailed")
	if message := w.run().Status.Message; !strings.Contains(message, "namespace "+namespace+" that the hub has not created") {
		t.Errorf("message %q", message)
	}
	for _, kind := range []string{"Job", "ServiceAccount", "ClusterRoleBinding", "RoleBinding"} {
		if found := w.spoke.Objects(kind); len(found) > 0 {
			t.Errorf("%s %s was created", kind, found[0].GetName())
		}
	}
	if w.spoke.Object("", "Namespace", "", namespace) == nil {
		t.Error("the namespace is deleted")
	}
}

// The namespace stays when the work is deleted, and serves the next upgrade. Rights to approve are where the
// operators are.
func TestRun_operators_rights(t *testing.T) {
	t.Parallel()
	w := newWorld(t, include)
	namespace, _ := delivery.ApproverNamespace()
	if !strings.HasPrefix(namespace, "openshift-") {
		t.Errorf("users may request the namespace %s", namespace)
	}
	w.createNamespace("gitops")
	w.createNamespace("other")
	var bindings []string
	w.change(50*time.Minute, func() {
		for _, kind := range []string{"RoleBinding", "ClusterRoleBinding"} {
			for _, binding := range w.spoke.Objects(kind) {
				bindings = append(bindings, kind+" "+binding.GetNamespace())
			}
		}
		w.jobs = map[string]string{"installplan": "Complete"}
	})
	w.admit()
	w.settle(5 * time.Hour)
	w.expect(fleetv1alpha1.StateComplete, "Upgraded")
	if diff := cmp.Diff([]string{"RoleBinding gitops", "RoleBinding " + namespace, "ClusterRoleBinding "}, bindings); diff != "" {
		t.Errorf("bindings while the Job runs (-want +got):\n%s", diff)
	}
	if left := w.spoke.Objects("RoleBinding"); len(left) > 0 || w.spoke.Object("", "Namespace", "", namespace) == nil {
		t.Errorf("RoleBindings %v are left, or the namespace is not", left)
	}
}

// offer has OLM offer an upgrade in a namespace of the cluster.
func (w *world) offer(namespace, plan string) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
		"spec": map[string]any{"approved": false}, "status": map[string]any{"phase": "RequiresApproval"},
	}}
	object.SetNamespace(namespace)
	object.SetName(plan)
	w.createNamespace(namespace)
	w.spoke.Put(object)
}

// grants returns who may approve on the cluster, and where.
func (w *world) grants() []string {
	var found []string
	for _, kind := range []string{"Role", "ClusterRole"} {
		for _, role := range w.spoke.Objects(kind) {
			if rules := fmt.Sprint(role.Object["rules"]); strings.Contains(rules, "installplans") && strings.Contains(rules, "patch") {
				found = append(found, kind+" "+role.GetNamespace())
			}
		}
	}
	slices.Sort(found)
	return found
}

// The approval of all operators takes rights in the namespaces that have some, while the Job runs.
func TestRun_operators_of_all_namespaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t, operators)
	w.offer("gitops", "install-a")
	w.offer("gitops", "install-b")
	w.offer("quay", "install-c")
	w.createNamespace("other")
	var during []string
	w.change(50*time.Minute, func() {
		during = w.grants()
		w.jobs = map[string]string{"installplan": "Complete"}
	})
	w.admit()
	w.settle(5 * time.Hour)
	w.expect(fleetv1alpha1.StateComplete, "Upgraded")
	if diff := cmp.Diff([]string{"Role gitops", "Role quay"}, during); diff != "" {
		t.Errorf("rights to approve while the Job runs (-want +got):\n%s", diff)
	}
	if left := w.grants(); len(left) > 0 || len(w.spoke.Objects("InstallPlan")) != 3 {
		t.Errorf("rights %v and InstallPlans %v are left", left, w.spoke.Objects("InstallPlan"))
	}
}

// The InstallPlans decide whether operators are upgraded, not the Job.
func TestRun_InstallPlans_decide(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		approved bool
		phase    string
		silent   bool // the Job does not report
		message  string
	}{
		"not approved":  {phase: "RequiresApproval", message: "InstallPlan gitops/install-a is not approved"},
		"not complete":  {approved: true, phase: "Installing", message: "InstallPlan gitops/install-a is not complete"},
		"failed":        {approved: true, phase: "Failed", message: "InstallPlan gitops/install-a failed"},
		"none reported": {approved: true, phase: "Complete", silent: true, message: "has not reported"},
		"deleted":       {message: "InstallPlan install-a does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, include)
			w.offer("gitops", "install-a")
			w.change(50*time.Minute, func() {
				job, plan := w.spoke.Objects("Job")[0], w.spoke.Objects("InstallPlan")[0]
				w.spoke.EndJob(job, "Complete", w.Now())
				plan.Object["spec"], plan.Object["status"] = map[string]any{"approved": tc.approved}, map[string]any{"phase": tc.phase}
				if tc.silent {
					job.SetAnnotations(nil)
				}
				if tc.phase == "" {
					w.spoke.Remove(plan)
				}
			})
			w.admit()
			w.settle(5 * time.Hour)
			w.expect(fleetv1alpha1.StateFailed, "OperatorsFailed")
			if message := w.run().Status.Message; !strings.Contains(message, tc.message) {
				t.Errorf("message %q, want %q in it", message, tc.message)
			}
		})
	}
}
