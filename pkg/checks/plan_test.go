// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

const (
	patchTarget = "4.14.9"
	minorTarget = "4.15.2"
)

// ready is a cluster at 4.14.8 that can be updated to any offered release.
type ready struct {
	version configv1.ClusterVersion
	nodes   []corev1.Node
	pools   []mcfgv1.MachineConfigPool
	facts   checks.Facts
	plan    checks.PlanFacts
}

func newReady() *ready {
	r := &ready{}
	r.version.Spec.Channel = "stable-4.15"
	r.version.Status.History = []configv1.UpdateHistory{{Version: "4.14.8", State: configv1.CompletedUpdate}}
	r.version.Status.AvailableUpdates = []configv1.Release{{Version: patchTarget, Image: "a@1"}, {Version: minorTarget, Image: "a@2"}}
	r.version.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{Type: configv1.RetrievedUpdates, Status: configv1.ConditionTrue}}
	r.nodes = []corev1.Node{readyNode("worker-0"), readyNode("worker-1")}
	r.pools = []mcfgv1.MachineConfigPool{{ObjectMeta: metav1.ObjectMeta{Name: "worker"}, Spec: mcfgv1.MachineConfigPoolSpec{
		NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "worker"}},
	}}}
	r.facts.Now = simulation.Start
	r.facts.Operators = []clusterstate.ClusterOperator{{Name: "dns", Available: isTrue, Degraded: isFalse}}
	r.plan.Etcd = []clusterstate.EtcdCondition{{Type: clusterstate.EtcdMembersAvailable, Condition: isTrue}}
	r.plan.Loads = map[string]map[string]checks.Load{}
	for _, name := range []string{"worker-0", "worker-1"} {
		r.plan.Loads[name] = map[string]checks.Load{"cpu": {Allocatable: 4, Requested: 1, Movable: 1, LargestPod: 1}, "memory": {Allocatable: 9, Requested: 1}}
	}
	return r
}

var (
	isTrue  = clusterstate.Condition{Status: "True"}
	isFalse = clusterstate.Condition{Status: "False"}
)

func readyNode(name string) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": "worker"}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

func (r *ready) find(t *testing.T, target string) []checks.Finding {
	t.Helper()
	r.facts.Version = clusterstate.VersionOf(&r.version)
	objects := make([]client.Object, len(r.nodes))
	for i := range r.nodes {
		objects[i] = &r.nodes[i]
	}
	nodes, err := clusterstate.ListNodes(t.Context(), simulation.NewFakeClient(t, objects...))
	if err != nil {
		t.Fatal(err)
	}
	r.facts.Nodes = nodes
	r.facts.Pools = nil
	for i := range r.pools {
		r.facts.Pools = append(r.facts.Pools, clusterstate.NewPool(&r.pools[i]))
	}
	found := checks.Readiness(r.facts.With(r.plan), target)
	checkTexts(t, "", found)
	return found
}

func (r *ready) conditional(target string, recommended metav1.ConditionStatus, risks ...configv1.ConditionalUpdateRisk) {
	r.version.Status.AvailableUpdates = nil
	r.version.Status.ConditionalUpdates = []configv1.ConditionalUpdate{{
		Release: configv1.Release{Version: target, Image: "a@1"}, Risks: risks,
		Conditions: []metav1.Condition{{Type: "Recommended", Status: recommended, Reason: "x"}},
	}}
}

func blockedBudget(name string) clusterstate.PDB {
	return clusterstate.PDBOf(&policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Status:     policyv1.PodDisruptionBudgetStatus{ExpectedPods: 2, CurrentHealthy: 2, DesiredHealthy: 2},
	})
}

// TestReadiness breaks one aspect of a ready cluster at a time. Each line lists a level and a UID.
func TestReadiness(t *testing.T) {
	t.Parallel()
	notUpgradeable := configv1.ClusterOperatorStatusCondition{Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse, Reason: "AdminAckRequired"}
	holder := lock.Holder{Kind: "UpgradeJob", Namespace: "ops", Name: "weekly", UID: "1"}
	for name, tc := range map[string]struct {
		target string
		broken func(*ready)
		want   []string
	}{
		"ready":                     {patchTarget, func(*ready) {}, nil},
		"ready for a minor version": {minorTarget, func(*ready) {}, nil},
		"risk": {patchTarget, func(r *ready) {
			r.conditional(patchTarget, metav1.ConditionFalse, configv1.ConditionalUpdateRisk{Name: "Slow"}, configv1.ConditionalUpdateRisk{Name: "Leak"})
		}, []string{"warning risk/Slow", "warning risk/Leak"}},
		"risk of unknown relevance": {patchTarget, func(r *ready) {
			r.conditional(patchTarget, metav1.ConditionUnknown, configv1.ConditionalUpdateRisk{Name: "Slow"})
		}, []string{"warning risk/Slow"}},
		"release not offered": {"4.14.77", func(*ready) {}, []string{"error not-offered"}},
		"offers unknown":      {patchTarget, func(r *ready) { r.version.Status = configv1.ClusterVersionStatus{History: r.version.Status.History} }, []string{"error not-offered"}},
		"release offered twice": {patchTarget, func(r *ready) {
			r.version.Status.AvailableUpdates[1] = configv1.Release{Version: patchTarget, Image: "a@3"}
		}, []string{"warning ambiguous-offer"}},
		"release running": {"4.14.8", func(*ready) {}, nil},
		"another update in progress": {patchTarget, func(r *ready) {
			r.version.Status.History = append([]configv1.UpdateHistory{{Version: "4.14.8-hotfix", State: configv1.PartialUpdate}}, r.version.Status.History...)
		}, []string{"error in-progress/4.14.8-hotfix"}},
		"not upgradeable, minor": {minorTarget, func(r *ready) {
			r.version.Status.Conditions = append(r.version.Status.Conditions, notUpgradeable)
		}, []string{"error upgradeable/AdminAckRequired"}},
		"not upgradeable, patch": {patchTarget, func(r *ready) {
			r.version.Status.Conditions = append(r.version.Status.Conditions, notUpgradeable)
		}, nil},
		"upgradeable unknown": {minorTarget, func(r *ready) {
			r.version.Status.Conditions = append(r.version.Status.Conditions, configv1.ClusterOperatorStatusCondition{Type: configv1.OperatorUpgradeable, Status: configv1.ConditionUnknown})
		}, []string{"error upgradeable/Unknown"}},
		"admin acks": {minorTarget, func(r *ready) {
			r.plan.Gates = []clusterstate.AdminGate{
				{Name: "ack-4.13-x", Minor: "4.13"},
				{Name: "ack-4.14-x", Minor: "4.14"},
				{Name: "ack-4.14-y", Minor: "4.14", Acked: true},
				{Name: "odd"},
			}
		}, []string{"error admin-ack/ack-4.14-x", "error admin-ack/odd"}},
		"admin ack, patch": {patchTarget, func(r *ready) { r.plan.Gates = []clusterstate.AdminGate{{Name: "ack-4.14-x", Minor: "4.14"}} }, nil},
		"removed APIs": {minorTarget, func(r *ready) {
			r.plan.APIs = []clusterstate.DeprecatedAPI{
				{Resource: "used", RemovedIn: "1.28", Requests: 1},
				{Resource: "later", RemovedIn: "1.29", Requests: 1},
				{Resource: "unused", RemovedIn: "1.25"},
				{Resource: "odd", RemovedIn: "soon", Requests: 1},
			}
		}, []string{"error removed-api/used", "warning removed-api/odd"}},
		"removed APIs, unknown Kubernetes": {"5.0.1", func(r *ready) {
			r.plan.APIs = []clusterstate.DeprecatedAPI{{Resource: "used", RemovedIn: "1.40", Requests: 1}, {Resource: "unused", RemovedIn: "1.40"}}
		}, []string{"error not-offered", "warning removed-api/used"}},
		"budgets": {patchTarget, func(r *ready) {
			r.facts.PDBs = []clusterstate.PDB{blockedBudget("api"), clusterstate.PDBOf(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "new", Generation: 2}})}
		}, []string{"warning pdb/shop/api", "warning pdb/shop/new/PDBNotObserved"}},
		"overlapping budgets": {patchTarget, func(r *ready) {
			r.facts.PDBOverlaps = []clusterstate.PDBPair{{blockedBudget("web"), blockedBudget("api")}}
			r.facts.UncomparedPDBs = []string{"bank"}
		}, []string{"warning pdb/shop/api/web/PDBsOverlap", "warning unreadable/pdb-overlaps"}},
		"single node": {patchTarget, func(r *ready) {
			r.nodes = r.nodes[:1]
			r.pools[0].Status.MachineCount = 1
			r.facts.PDBs, r.facts.UncomparedPDBs = []clusterstate.PDB{blockedBudget("api")}, []string{"bank"}
		}, nil},
		"single node that no pool updates": {patchTarget, func(r *ready) {
			r.nodes, r.pools = r.nodes[:1], nil
			r.facts.PDBs = []clusterstate.PDB{blockedBudget("api")}
		}, []string{"warning pdb/shop/api"}},
		"single node in an incomplete dump": {patchTarget, func(r *ready) {
			r.nodes = r.nodes[:1]
			r.pools[0].Status.MachineCount = 2
			r.facts.PDBs = []clusterstate.PDB{blockedBudget("api")}
		}, []string{"warning pdb/shop/api", "warning capacity/worker"}},
		"no room": {patchTarget, func(r *ready) {
			r.plan.Loads["worker-1"]["cpu"] = checks.Load{Allocatable: 4, Requested: 4, Movable: 1}
		}, []string{"warning capacity/worker"}},
		"no room while two nodes are drained at a time": {patchTarget, func(r *ready) { r.pools[0].Spec.MaxUnavailable = new(intstr.FromInt32(2)) }, []string{"warning capacity/worker"}},
		"no room because of a cordon":                   {patchTarget, func(r *ready) { r.nodes[1].Spec.Unschedulable = true }, []string{"error node/worker-1/NodeCordoned", "warning capacity/worker"}},
		"requests of pods unknown": {patchTarget, func(r *ready) {
			r.plan.Loads, r.plan.Missing = nil, map[checks.FactSource]checks.Missing{checks.SourcePodRequests: {Reason: checks.MissingUnavailable}}
		}, []string{"warning unreadable/requests-of-pods"}},
		"load of a node unknown": {patchTarget, func(r *ready) { delete(r.plan.Loads, "worker-1") }, []string{"warning unreadable/capacity/worker"}},
		"operators": {patchTarget, func(r *ready) {
			r.facts.Operators = []clusterstate.ClusterOperator{{Name: "a", Available: isTrue, Degraded: isTrue}, {Name: "b", Available: isFalse, Degraded: isTrue}, {Name: "c"}}
		}, []string{"error operator/b/OperatorUnavailable", "error operator/a/OperatorDegraded", "error operator/b/OperatorDegraded", "warning unreadable/operator"}},
		"paused pool": {patchTarget, func(r *ready) {
			r.pools[0].Spec.Paused, r.pools[0].Status.MachineCount = true, 2
		}, []string{"error pool/worker/PoolPaused"}},
		"node not ready": {patchTarget, func(r *ready) { r.nodes[0].Status.Conditions = nil }, []string{"error node/worker-0/NodeNotReady"}},
		"alerts": {patchTarget, func(r *ready) {
			r.facts.Alerts = []clusterstate.Alert{
				{Name: "Full", Namespace: "db", Severity: "warning", Firing: true},
				{Name: "Full", Namespace: "db", Severity: "critical", Firing: true, Since: now},
				{Name: "Full", Namespace: "db", Severity: "critical", Firing: true, Since: now.Add(-time.Hour), Annotations: map[string]string{"message": "The disk is full."}},
				{Name: "Full", Namespace: "db", Severity: "critical", Firing: true, Since: now.Add(-time.Minute), Annotations: map[string]string{"summary": "later"}},
				{Name: "Full", Namespace: "db", Severity: "critical", Firing: true, Since: now.Add(-time.Hour), Annotations: map[string]string{"summary": "of the same time"}},
				{Name: "Full", Namespace: "db", Severity: "warning", Firing: true},
				{Name: "Soon", Severity: "critical"},
				{Name: "Watchdog", Severity: "none", Firing: true},
				{Name: clusterstate.OwnAlerts + "NeedsAction", Severity: "critical", Firing: true},
				{Name: "Slow", Severity: "warning", Firing: true},
			}
		}, []string{"info alert//Slow", "error alert/db/Full"}},
		"etcd": {patchTarget, func(r *ready) {
			r.plan.Etcd = []clusterstate.EtcdCondition{
				{Type: "BackupDegraded", Condition: isTrue}, {Type: clusterstate.EtcdMembersAvailable}, {Type: "EtcdMembersDegraded", Condition: isFalse}, {Type: "Progressing", Condition: isTrue},
			}
		}, []string{"error etcd/BackupDegraded", "critical etcd/EtcdMembersAvailable"}},
		"certificates": {patchTarget, func(r *ready) {
			expires := func(bundle string, in time.Duration) mcfgv1.CertExpiry {
				return mcfgv1.CertExpiry{Bundle: bundle, Subject: "x", Expiry: &metav1.Time{Time: simulation.Start.Add(in)}}
			}
			r.pools[0].Status.CertExpirys = []mcfgv1.CertExpiry{
				expires("far", 7*24*time.Hour), expires("near", 30*24*time.Hour), expires("near", 7*24*time.Hour-time.Second), expires("past", -time.Hour),
			}
		}, []string{"error cert/worker/near", "error cert/worker/past"}},
		"optional operators": {minorTarget, func(r *ready) {
			r.plan.OptionalOperators = []clusterstate.ClusterServiceVersion{
				{Namespace: "a", Name: "old", Phase: "Succeeded", MaxVersion: "4.14"},
				{Namespace: "a", Name: "fine", Phase: "Succeeded", MaxVersion: "4.15"},
				{Namespace: "a", Name: "odd", Phase: "Succeeded", MaxVersion: "malformed"},
				{Namespace: "b", Name: "failed", Phase: "Failed"},
				{Namespace: "b", Name: "new"},
			}
		}, []string{"error csv/a/old/unsupported", "error csv/a/odd/unsupported", "warning csv/b/failed", "warning csv/b/new"}},
		"another upgrade":     {patchTarget, func(r *ready) { r.plan.Holder = holder }, []string{"warning lock/UpgradeJob ops/weekly"}},
		"upgrade of the plan": {patchTarget, func(r *ready) { r.plan.Holder, r.plan.HolderTarget = holder, patchTarget }, []string{"info lock/UpgradeJob ops/weekly"}},
		"unreadable": {minorTarget, func(r *ready) {
			why := checks.Missing{Reason: checks.MissingForbidden, Message: "you are not allowed to list them"}
			r.facts.Missing = map[checks.FactSource]checks.Missing{checks.SourceNodes: why, checks.SourcePDBs: why, checks.SourcePods: why}
			r.plan.Missing = map[checks.FactSource]checks.Missing{checks.SourceEtcd: why, checks.SourceAPIRequests: why, checks.SourceAdminGates: why}
		}, []string{
			"warning unreadable/admin-gates", "warning unreadable/API-requests", "error unreadable/nodes", "warning unreadable/disruption-budgets", "warning unreadable/etcd",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReady()
			tc.broken(r)
			levels := []string{"status", "info", "warning", "error", "critical"}
			var got []string
			for _, f := range r.find(t, tc.target) {
				got = append(got, levels[f.Level]+" "+f.UID())
				if f.Informer != checks.InformerReadiness || f.Reason == "" || f.Summary == "" || f.Scope == "" {
					t.Errorf("incomplete: %+v", f)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever blocks a minor update appears in the first line that users see. The cluster version operator
// repeats what the Operator Lifecycle Manager reports about optional operators.
func TestReadiness_names_what_is_not_upgradeable(t *testing.T) {
	t.Parallel()
	const message = "Cluster operator operator-lifecycle-manager should not be upgraded between minor versions: ClusterServiceVersions blocking cluster upgrade: shop/broker.v1.2.0 is incompatible with OpenShift minor versions greater than 4.20"
	r := newReady()
	r.version.Status.Conditions = append(r.version.Status.Conditions, configv1.ClusterOperatorStatusCondition{
		Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse, Reason: "IncompatibleOperatorsInstalled", Message: message,
	})
	found := r.find(t, minorTarget)
	if len(found) != 1 || !strings.HasSuffix(found[0].Summary, ": "+message) || found[0].Description != message {
		t.Errorf("the findings are %+v", found)
	}
}

func TestReadinessBoundsUIDs(t *testing.T) {
	t.Parallel()
	uids := map[string]bool{}
	for _, end := range []string{"a", "b"} {
		r := newReady()
		r.conditional(patchTarget, metav1.ConditionFalse, configv1.ConditionalUpdateRisk{Name: strings.Repeat("ä", 500) + end})
		for _, f := range r.find(t, patchTarget) {
			if uids[f.UID()] = true; len(f.UID()) > 253 {
				t.Errorf("a uid of %d bytes", len(f.UID()))
			}
		}
	}
	if len(uids) != 2 {
		t.Errorf("two risks have the uids %v", uids)
	}
}
