// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package v1beta1_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	workv1 "open-cluster-management.io/api/work/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/olm/report"
)

const hubAccount = "system:serviceaccount:managed-upgrade-operator:managed-upgrade-hub"

// agentRights are the ClusterRoles of the agent of a cluster, as Open Cluster Management v1.2.0 creates them for
// each cluster, for the cluster of the namespace policies.
const agentRights = `
apiVersion: v1
kind: List
items:
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRole
  metadata: {name: "open-cluster-management:managedcluster:policies"}
  rules:
  - {apiGroups: [cluster.open-cluster-management.io], resources: [managedclusters], resourceNames: [policies], verbs: [get, list, update, watch]}
  - {apiGroups: [cluster.open-cluster-management.io], resources: [managedclusters/status], resourceNames: [policies], verbs: [patch, update]}
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRoleBinding
  metadata: {name: "open-cluster-management:managedcluster:policies"}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "open-cluster-management:managedcluster:policies"}
  subjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: "system:open-cluster-management:policies"}]
- apiVersion: rbac.authorization.k8s.io/v1
  kind: Role
  metadata: {name: agent, namespace: policies}
  rules:
  - {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, list, watch, update]}
  - {apiGroups: ["", events.k8s.io], resources: [events], verbs: [create, patch, update]}
  - {apiGroups: [work.open-cluster-management.io], resources: [manifestworks], verbs: [get, list, watch, update, patch]}
  - {apiGroups: [work.open-cluster-management.io], resources: [manifestworks/status], verbs: [patch, update]}
- apiVersion: rbac.authorization.k8s.io/v1
  kind: RoleBinding
  metadata: {name: agent, namespace: policies}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: agent}
  subjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: "system:open-cluster-management:policies"}]
`

// works returns each work that the hub delivers to the cluster of the namespace policies.
func works(t *testing.T) map[string]*workv1.ManifestWork {
	t.Helper()
	run := &fleetv1alpha1.ClusterUpgradeRun{ObjectMeta: metav1.ObjectMeta{Namespace: "policies", Name: "run"}}
	run.Spec.ManagedClustersUpgrade.UID, run.Spec.Attempt = "0a1b2c3d-4e5f", 1
	run.Spec.ClusterVersion = &fleetv1beta1.ClusterVersionSpec{Channel: "stable-4.20", Version: "4.20.6"}
	mcu := &fleetv1beta1.ManagedClustersUpgrade{ObjectMeta: metav1.ObjectMeta{Namespace: "policies", Name: "stores", UID: "0a1b2c3d-4e5f"}}
	mcu.Spec.OCPOperators = &fleetv1beta1.OCPOperators{Include: []fleetv1beta1.OperatorReference{{Name: "gitops", Namespace: "gitops"}}}
	mcu.Spec.PreUpgradeAction = &fleetv1beta1.UpgradeAction{}
	mcu.Spec.PreUpgradeAction.ManifestWork.Workload.Manifests = []workv1.Manifest{{}}
	mcu.Spec.PreUpgradeAction.ManifestWork.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"any","namespace":"default"}}`)
	byConfig := mcu.DeepCopy()
	byConfig.Spec.UpgradeConfig = &fleetv1beta1.UpgradeConfigTemplate{Type: "OSD"}
	all := map[string]*workv1.ManifestWork{}
	add := func(name string, work *workv1.ManifestWork, err error) {
		if err != nil {
			t.Fatal(err)
		}
		all[name] = work
	}
	for _, form := range []delivery.Form{delivery.FormApply, delivery.FormReadOnly, delivery.FormWithdraw} {
		work, err := delivery.UpgradeWork(run, mcu, form, time.Now(), clusterstate.Release{})
		add("platform, "+string(form), work, err)
		work, err = delivery.UpgradeWork(run, byConfig, form, time.Now(), clusterstate.Release{})
		add("UpgradeConfig, "+string(form), work, err)
	}
	work, err := delivery.UpgradeWork(run, mcu, delivery.FormWithdraw, time.Now(), clusterstate.Release{Version: "4.20.5", Image: "quay.io/openshift/release:4.20.5"})
	add("platform, Withdraw to the current release", work, err)
	work, err = delivery.PreflightWork(run)
	add("preflight", work, err)
	work, err = delivery.OperatorsPreflightWork(run, mcu)
	add("operators, ReadOnly", work, err)
	work, err = delivery.OperatorsWork(run, mcu, "image", func(string) bool { return true })
	add("operators, Apply", work, err)
	approval := delivery.Approval{Report: report.New(1, []types.NamespacedName{{Namespace: "gitops", Name: "install-a"}}), Reported: true}
	everything := mcu.DeepCopy()
	everything.Spec.OCPOperators.ApproveAllUpgrades = true
	granted, err := delivery.AdaptOperatorsWork(work, everything, &approval)
	add("operators, with rights", granted, err)
	approval.Over = true
	observed, err := delivery.AdaptOperatorsWork(work, mcu, &approval)
	add("operators, with InstallPlans", observed, err)
	work, err = delivery.ActionWork(run, mcu, delivery.PreUpgrade)
	add("action", work, err)
	return all
}

func encode(t *testing.T, object any) string {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// with returns a work with another manifest.
func with(work *workv1.ManifestWork, manifest string) *workv1.ManifestWork {
	changed := work.DeepCopy()
	added := workv1.Manifest{}
	added.Raw = []byte(manifest)
	changed.Spec.Workload.Manifests = append(changed.Spec.Workload.Manifests, added)
	return changed
}

// What the hub delivers is allowed, and nothing else is.
func TestPolicies_of_the_hub(t *testing.T) {
	t.Parallel()
	createPeople(t)
	all := works(t)
	platform, operators, action := all["platform, Apply"], all["operators, Apply"], all["action"]
	renamed, foreign, unlabeled, executed := action.DeepCopy(), action.DeepCopy(), platform.DeepCopy(), platform.DeepCopy()
	renamed.Name, foreign.Name, unlabeled.Labels = "backdoor", "mcu-ffffffff-pre", nil
	executed.Spec.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
		Type: workv1.ExecutorSubjectTypeServiceAccount, ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: "a", Name: "b"},
	}}
	rbac := func(kind, name, rest string) string {
		return `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"` + kind + `","metadata":{"name":"` + name + `"},` + rest + `}`
	}
	refused := map[string]struct {
		work *workv1.ManifestWork
		want string
	}{
		"a work of another name":             {renamed, "works of upgrades only"},
		"an action of another upgrade":       {foreign, "works of upgrades only"},
		"a work without its label":           {unlabeled, "works of upgrades only"},
		"an executor of the platform":        {executed, "Only actions have an executor"},
		"a Secret beside the platform":       {with(platform, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"any","namespace":"default"}}`), "known kinds and names"},
		"a ClusterRole of another name":      {with(platform, rbac("ClusterRole", "cluster-admin", `"rules":[]`)), "known kinds and names"},
		"a Job beside the platform":          {with(platform, string(operators.Spec.Workload.Manifests[len(operators.Spec.Workload.Manifests)-1].Raw)), "known kinds and names"},
		"a right to read Secrets":            {with(platform, rbac("ClusterRole", "managed-upgrade:cluster-upgrade", `"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]`)), "grants rights"},
		"a right to everything":              {with(platform, rbac("ClusterRole", "managed-upgrade:cluster-upgrade", `"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]`)), "grants rights"},
		"a right to delete namespaces":       {with(operators, rbac("ClusterRole", "installplan-approver", `"rules":[{"apiGroups":[""],"resources":["namespaces"],"verbs":["delete"]}]`)), "grants rights"},
		"a right to approve everywhere":      {with(operators, rbac("ClusterRole", "installplan-approver", `"rules":[{"apiGroups":["operators.coreos.com"],"resources":["installplans"],"verbs":["patch"]}]`)), "grants rights"},
		"a right to change any Job":          {with(operators, rbac("ClusterRole", "installplan-approver", `"rules":[{"apiGroups":["batch"],"resources":["jobs"],"verbs":["patch"]}]`)), "grants rights"},
		"an approval":                        {with(operators, `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"InstallPlan","metadata":{"name":"a","namespace":"a"},"spec":{"approved":true}}`), "known kinds and names"},
		"an InstallPlan beside the platform": {with(platform, `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"InstallPlan","metadata":{"name":"a","namespace":"a"}}`), "known kinds and names"},
		"an aggregated ClusterRole":          {with(operators, rbac("ClusterRole", "installplan-approver", `"aggregationRule":{},"rules":[]`)), "grants rights"},
		"a binding of cluster-admin":         {with(operators, rbac("ClusterRoleBinding", "installplan-approver", `"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},"subjects":[]`)), "binds roles"},
		"a binding for another account":      {with(operators, rbac("ClusterRoleBinding", "installplan-approver", `"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"installplan-approver"},"subjects":[{"kind":"ServiceAccount","name":"default","namespace":"default"}]`)), "binds roles"},
		"a Job in another namespace":         {with(operators, `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"installplan-approver-1","namespace":"kube-system"},"spec":{"template":{"spec":{"serviceAccountName":"installplan-approver"}}}}`), "runs the Job"},
		"a Job with a volume of the node":    {with(operators, `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"installplan-approver-1","namespace":"openshift-installplan-approver"},"spec":{"template":{"spec":{"serviceAccountName":"installplan-approver","volumes":[]}}}}`), "runs the Job"},
		"overrides of the ClusterVersion":    {with(platform, `{"apiVersion":"config.openshift.io/v1","kind":"ClusterVersion","metadata":{"name":"version"},"spec":{"overrides":[]}}`), "forces no release"},
		"a forced release":                   {with(platform, `{"apiVersion":"config.openshift.io/v1","kind":"ClusterVersion","metadata":{"name":"version"},"spec":{"desiredUpdate":{"version":"4.20.6","force":true}}}`), "forces no release"},
		"an UpgradeConfig beside operators":  {with(operators, `{"apiVersion":"upgrade.managed.openshift.io/v1alpha1","kind":"UpgradeConfig","metadata":{"name":"fleet-0a1b2c3d","namespace":"a"}}`), "known kinds and names"},
		"a Namespace beside the platform":    {with(platform, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"any"}}`), "known kinds and names"},
	}
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, time.Minute, true, func(ctx context.Context) (bool, error) {
		return strings.Contains(as(ctx, hubAccount, encode(t, renamed), "create", "--filename=-"), "works of upgrades only"), nil
	})
	if err != nil {
		t.Fatalf("the policy does not apply: %v: %s", err, as(t.Context(), hubAccount, encode(t, renamed), "create", "--filename=-"))
	}
	for name, work := range all {
		if got := as(t.Context(), hubAccount, encode(t, work), "create", "--filename=-"); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
	for name, tc := range refused {
		if got := as(t.Context(), hubAccount, encode(t, tc.work), "create", "--filename=-"); !strings.Contains(got, tc.want) {
			t.Errorf("%s: kubectl prints %q, want %q in it", name, got, tc.want)
		}
	}
	lease := func(name string) string {
		return `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"namespace":"managed-upgrade-operator","name":"` + name + `"}}`
	}
	for name, want := range map[string]string{"cluster-upgrade-policies": "", "managed-upgrade-hub-leader": "", "cluster-upgrade": "locks of clusters", "managed-upgrade-operator-leader": "locks of clusters"} {
		got := asIn(t.Context(), "managed-upgrade-operator", hubAccount, lease(name), "create", "--filename=-")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("Lease %s: kubectl prints %q, want %q in it", name, got, want)
		}
	}
}

// What the agent of a cluster may write, by the rights that Open Cluster Management gives it. It writes neither
// runs nor the lock of its cluster.
func TestRights_of_the_agent_of_a_cluster(t *testing.T) {
	t.Parallel()
	createPeople(t)
	createAll(t, agentRights)
	if printed, err := server.Kubectl(t.Context(), "apply", "--kustomize", "../../../deploy/agent-labels").CombinedOutput(); err != nil {
		t.Fatalf("applying the policy: %v: %s", err, printed)
	}
	server.RunKubectl(t, `{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster","metadata":{"name":"policies","labels":{"vendor":"OpenShift"}}}`, "create", "--filename=-")
	labeled := `{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster","metadata":{"name":"policies","labels":{"vendor":"OpenShift","canary":"true"}}}`
	agent := func(ctx context.Context, input string, args ...string) string {
		return as(ctx, "system:open-cluster-management:policies:agent", input, append(args, "--as-group=system:open-cluster-management:policies", "--as-group=system:authenticated")...)
	}
	const refused = "may not change the labels"
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, time.Minute, true, func(ctx context.Context) (bool, error) {
		return strings.Contains(agent(ctx, labeled, "replace", "--filename=-"), refused), nil
	})
	if err != nil {
		t.Fatalf("the policy does not apply: %v: %s", err, agent(t.Context(), labeled, "replace", "--filename=-"))
	}
	if got := agent(t.Context(), strings.Replace(labeled, `,"canary":"true"`, "", 1), "replace", "--filename=-"); got != "" {
		t.Errorf("the agent may not write its ManagedCluster: %s", got)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"another cluster":              {args: []string{"auth", "can-i", "update", "managedclusters/dev"}, want: "no"},
		"its lock":                     {args: []string{"auth", "can-i", "update", "leases/cluster-upgrade-policies", "--namespace=managed-upgrade-operator"}, want: "no"},
		"the creation of a Lease":      {args: []string{"auth", "can-i", "create", "leases", "--namespace=policies"}, want: "no"},
		"its run":                      {args: []string{"auth", "can-i", "patch", "clusterupgraderuns", "--namespace=policies"}, want: "no"},
		"the status of its run":        {args: []string{"auth", "can-i", "patch", "clusterupgraderuns/status", "--namespace=policies"}, want: "no"},
		"upgrades":                     {args: []string{"auth", "can-i", "patch", "managedclustersupgrades", "--namespace=policies"}, want: "no"},
		"a work of its own":            {args: []string{"auth", "can-i", "create", "manifestworks", "--namespace=policies"}, want: "no"},
		"the works of another cluster": {args: []string{"auth", "can-i", "update", "manifestworks", "--namespace=dev"}, want: "no"},
		"decisions of Placements":      {args: []string{"auth", "can-i", "patch", "placementdecisions/status", "--namespace=policies"}, want: "no"},
		"the former place of its lock": {args: []string{"auth", "can-i", "update", "leases/cluster-upgrade", "--namespace=policies"}, want: "yes"},
		"the claims of its cluster":    {args: []string{"auth", "can-i", "patch", "managedclusters/policies", "--subresource=status"}, want: "yes"},
		"the content of its works":     {args: []string{"auth", "can-i", "update", "manifestworks", "--namespace=policies"}, want: "yes"},
	} {
		cmd := server.Kubectl(t.Context(), append(tc.args, "--as=system:open-cluster-management:policies:agent", "--as-group=system:open-cluster-management:policies")...)
		printed, _ := cmd.Output() // "no" is an error
		if got := strings.TrimSpace(string(printed)); got != tc.want {
			t.Errorf("may the agent write %s: %q, want %q", name, got, tc.want)
		}
	}
}
