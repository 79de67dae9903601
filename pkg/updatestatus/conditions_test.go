// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updatestatus"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

const (
	pendingPlane   = "True ClusterVersionNotReconciled"
	activePlane    = "True ControlPlaneUpdateActive"
	reconciled     = "False ClusterVersionReconciled"
	pendingWorkers = "True WorkerDoesNotMatchRelease"
	activeWorkers  = "True WorkersUpdateActive"
	matching       = "False WorkersMatchRelease"
	workersDone    = "False WorkersReconciled"
	awaitingWindow = "False AwaitingWindow"
	paused         = "False Paused"
	unknown        = "Unknown CannotObserve"
)

// night is a maintenance window from 22:00 to 02:00.
const night = `{"maintenanceWindow":{"enforcing":true,"cron":"0 22 * * *","duration":"4h"}}`

// TestCompute_Conditions checks the conditions of the control plane and of pools. The tests of package pause
// cover the rules that pause them.
func TestCompute_Conditions(t *testing.T) {
	t.Parallel()
	type conditions struct{ pending, active string }
	machineSet := func(name, management string) func(*cluster) {
		return func(c *cluster) {
			c.others = append(c.others, machinePool("machine.openshift.io/v1beta1", "MachineSet", name, func(o map[string]any) {
				if management != "" {
					o["spec"].(map[string]any)["versionManagement"] = decode(t, management)
				}
			}))
		}
	}
	missing := func(sources ...checks.FactSource) func(*cluster) {
		return func(c *cluster) {
			c.missing = map[checks.FactSource]checks.Missing{}
			for _, source := range sources {
				c.missing[source] = checks.Missing{Reason: "Forbidden", Message: "you are not allowed to list them"}
			}
		}
	}
	requested := func(c *cluster) {
		c.version.Spec.DesiredUpdate = &configv1.Update{Version: "4.20.7", Image: "image/4.20.7"}
	}
	noPools := func(c *cluster) { c.pools, c.operators = nil, c.operators[:3] }
	machineDeployment := func(version string, machines, upToDate int64) func(*cluster) {
		return func(c *cluster) {
			noPools(c)
			c.others = append(c.others, machinePool("cluster.x-k8s.io/v1beta1", "MachineDeployment", "capi", func(o map[string]any) {
				o["spec"] = map[string]any{"replicas": machines, "template": map[string]any{"spec": map[string]any{"version": version}}}
				status := map[string]any{"observedGeneration": int64(0), "replicas": machines}
				if upToDate >= 0 {
					status["updatedReplicas"] = upToDate
				}
				o["status"] = status
			}))
		}
	}
	cases := map[string]struct {
		operators, workers int
		edit               func(*cluster)
		section            string
		want               conditions
	}{
		"nothing is pending, control plane":             {4, 3, nil, "", conditions{reconciled, reconciled}},
		"nothing is pending, workers":                   {4, 3, nil, "worker", conditions{matching, workersDone}},
		"operators are updated, control plane":          {2, 0, nil, "", conditions{pendingPlane, activePlane}},
		"operators are updated, workers":                {2, 0, nil, "worker", conditions{pendingWorkers, activeWorkers}},
		"workers are updated, control plane":            {4, 0, nil, "", conditions{reconciled, reconciled}},
		"workers are updated, workers":                  {4, 0, nil, "worker", conditions{pendingWorkers, activeWorkers}},
		"an update is requested":                        {4, 3, requested, "", conditions{pendingPlane, activePlane}},
		"an update is requested outside of the window":  {4, 3, func(c *cluster) { requested(c); c.management = night }, "", conditions{pendingPlane, awaitingWindow}},
		"an update has started outside of the window":   {2, 0, func(c *cluster) { c.management = night }, "", conditions{pendingPlane, activePlane}},
		"workers wait for the window of the cluster":    {2, 0, func(c *cluster) { c.management = night }, "worker", conditions{pendingWorkers, awaitingWindow}},
		"the cluster is paused without an end":          {2, 0, func(c *cluster) { c.management = `{"pausedUntil":"true"}` }, "", conditions{pendingPlane, paused}},
		"the cluster is paused in an unknown way":       {2, 0, func(c *cluster) { c.management = `{"pausedUntil":[]}` }, "", conditions{pendingPlane, unknown}},
		"workers of a cluster paused in an unknown way": {2, 0, func(c *cluster) { c.management = `{"pausedUntil":[]}` }, "worker", conditions{pendingWorkers, unknown}},
		"a pause of what is not pending":                {4, 3, func(c *cluster) { c.management = `{"pausedUntil":"true"}` }, "worker", conditions{matching, workersDone}},
		"a paused pool":                                 {4, 0, func(c *cluster) { c.pools[1].Spec.Paused = true }, "worker", conditions{pendingWorkers, paused}},
		"a delayed pool": {4, 0, func(c *cluster) {
			c.pools[1].Spec.Paused = true
			c.pools[1].Annotations = map[string]string{"managedupgrade.appuio.io/paused-by": "u/1/2026-05-15T22:00:00Z/2026-05-16T02:00:00Z"}
		}, "worker", conditions{pendingWorkers, awaitingWindow}},
		"a paused pool of the control plane, at the end": {3, 0, func(c *cluster) { c.pools[0].Spec.Paused = true }, "", conditions{pendingPlane, paused}},
		"a paused pool of the control plane, before":     {2, 0, func(c *cluster) { c.pools[0].Spec.Paused = true }, "", conditions{pendingPlane, activePlane}},
		"no ClusterVersion, control plane":               {2, 0, missing(checks.SourceClusterVersion), "", conditions{unknown, unknown}},
		"no ClusterVersion, workers":                     {2, 0, missing(checks.SourceClusterVersion), "worker", conditions{unknown, unknown}},
		"no nodes":                                       {4, 3, missing(checks.SourceNodes), "worker", conditions{unknown, unknown}},
		"no history":                                     {4, 3, func(c *cluster) { c.version.Status.History = nil }, "", conditions{unknown, unknown}},
		"an empty pool":                                  {2, 0, func(c *cluster) { c.pools = append(c.pools, newPool("infra")) }, "infra", conditions{matching, workersDone}},
		"nodes in no pool":                               {4, 3, func(c *cluster) { c.node("worker-1").Labels = map[string]string{"kubernetes.io/os": "windows"} }, "unassigned", conditions{matching, workersDone}},
		"a MachineSet that a pool drives":                {4, 0, machineSet("worker-set", ""), "worker-set", conditions{"no section", "no section"}},
		"a MachineSet with versionManagement":            {4, 0, machineSet("worker-set", `{}`), "worker-set", conditions{pendingWorkers, activeWorkers}},
		"a MachineSet in an exclusion":                   {4, 0, machineSet("worker-set", `{"exclusions":[{"enforcing":true,"start":"2026-05-14T00:00:00Z","end":"2026-05-15T00:00:00Z"}]}`), "worker-set", conditions{pendingWorkers, awaitingWindow}},
		"a pool of which nodes are missing":              {4, 3, func(c *cluster) { c.pools[1].Status.MachineCount = 6 }, "worker", conditions{unknown, unknown}},
		"a pool that counts a node that joins": {4, 3, func(c *cluster) {
			c.pools[1].Status.MachineCount = 4
			node := newNode("worker", 3, false)
			node.Annotations, node.CreationTimestamp = nil, metav1.NewTime(now.Add(-time.Minute))
			c.nodes = append(c.nodes, node)
		}, "worker", conditions{matching, workersDone}},
		"a pool that still counts a node that was deleted": {4, 3, func(c *cluster) {
			status := &c.pools[1].Status
			status.MachineCount, status.UpdatedMachineCount = 4, 4
			status.Configuration.Name = rendered("worker", newRelease)
			status.Conditions = []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolUpdated, Status: corev1.ConditionTrue}}
		}, "worker", conditions{matching, workersDone}},
		"a MachineSet whose MachineConfigPool is paused": {4, 0, func(c *cluster) {
			machineSet("worker-set", `{}`)(c)
			c.pools[1].Spec.Paused = true
		}, "worker-set", conditions{pendingWorkers, paused}},
		"a MachineSet of the cluster API whose nodes pools update": {4, 0, func(c *cluster) {
			c.others = append(c.others, machinePool("cluster.x-k8s.io/v1beta1", "MachineSet", "capi", func(o map[string]any) {
				o["spec"].(map[string]any)["versionManagement"] = map[string]any{}
			}))
		}, "capi", conditions{matching, workersDone}},
		"a MachineSet without nodes":                       {4, 0, machineSet("other", `{}`), "other", conditions{matching, workersDone}},
		"a MachineSet without pools and without a version": {3, 0, func(c *cluster) { noPools(c); machineSet("worker-set", "")(c) }, "worker-set", conditions{unknown, unknown}},
		"a NodePool at the release, without pools":         {3, 0, func(c *cluster) { noPools(c); c.others = append(c.others, nodePool(newRelease)) }, "pool", conditions{matching, workersDone}},
		"a NodePool at another release, without pools":     {3, 0, func(c *cluster) { noPools(c); c.others = append(c.others, nodePool(oldRelease)) }, "pool", conditions{pendingWorkers, activeWorkers}},
		"a NodePool at the release whose nodes are still updated": {3, 0, func(c *cluster) {
			noPools(c)
			pool := nodePool(newRelease)
			pool.Object["status"].(map[string]any)["conditions"] = []any{map[string]any{"type": "UpdatingVersion", "status": "True"}}
			c.others = append(c.others, pool)
		}, "pool", conditions{pendingWorkers, activeWorkers}},
		"a MachineDeployment whose machines have the release":   {3, 0, machineDeployment(newRelease, 3, 3), "capi", conditions{matching, workersDone}},
		"a MachineDeployment without machines":                  {3, 0, machineDeployment(newRelease, 0, 0), "capi", conditions{matching, workersDone}},
		"a MachineDeployment with an old machine":               {3, 0, machineDeployment(newRelease, 3, 2), "capi", conditions{pendingWorkers, activeWorkers}},
		"a MachineDeployment that is to have the old release":   {3, 0, machineDeployment(oldRelease, 3, 3), "capi", conditions{pendingWorkers, activeWorkers}},
		"a MachineDeployment with a version of Kubernetes":      {3, 0, machineDeployment("v1.33.4", 3, 3), "capi", conditions{unknown, unknown}},
		"a MachineDeployment that does not report its machines": {3, 0, machineDeployment(newRelease, 3, -1), "capi", conditions{unknown, unknown}},
		"a MachineDeployment that its controller has not observed": {3, 0, func(c *cluster) {
			machineDeployment(newRelease, 3, 3)(c)
			c.others[len(c.others)-1].SetGeneration(2)
		}, "capi", conditions{unknown, unknown}},
		"a rollout of another configuration of the release": {4, 3, func(c *cluster) {
			c.pools[1].Spec.Configuration.Name = "rendered-worker-other"
			c.node("worker-1").Annotations["machineconfiguration.openshift.io/desiredConfig"] = "rendered-worker-other"
		}, "worker", conditions{matching, workersDone}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(tc.operators, tc.workers)
			if tc.edit != nil {
				tc.edit(c)
			}
			of := section(updatestatus.Compute(updatestatus.Input{Facts: c.facts(t)}), tc.section)
			pending, active := describe(of, updatev1beta1.ConditionUpdatePending), describe(of, updatev1beta1.ConditionUpdateActive)
			golden.Texts(t, "", pending, active)
			got := conditions{statusAndReason(pending), statusAndReason(active)}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(conditions{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// statusAndReason cuts the message off a condition as describe returns it.
func statusAndReason(condition string) string {
	text, _, _ := strings.Cut(condition, ": ")
	return text
}

// TestCompute_MissingPools checks that pools become unknown, and do not disappear, if they can no longer be
// listed.
func TestCompute_MissingPools(t *testing.T) {
	t.Parallel()
	c := newCluster(4, 0)
	before := updatestatus.Compute(updatestatus.Input{Facts: c.facts(t)})
	facts := c.facts(t)
	facts.Pools, facts.Missing[checks.SourcePools] = nil, checks.Missing{Message: "no answer in time"}
	after := updatestatus.Compute(updatestatus.Input{Facts: facts, Previous: before})
	if got := describe(section(after, "worker"), updatev1beta1.ConditionUpdatePending); got != "Unknown CannotObserve: pools: no answer in time" {
		t.Errorf("got %s", got)
	}
}

func TestCompute_TransitionTimes(t *testing.T) {
	t.Parallel()
	c := newCluster(2, 0)
	first := updatestatus.Compute(updatestatus.Input{Facts: c.facts(t)})
	second := updatestatus.Compute(updatestatus.Input{Facts: c.factsAt(t, now.Add(time.Minute)), Previous: first})
	third := updatestatus.Compute(updatestatus.Input{Facts: newCluster(4, 3).factsAt(t, now.Add(2*time.Minute)), Previous: second})
	times := func(status updatev1beta1.UpdateStatusStatus) (all []string) {
		for _, name := range []string{"", "worker"} {
			for _, c := range section(status, name).Conditions {
				all = append(all, c.LastTransitionTime.UTC().Format(time.TimeOnly))
			}
		}
		return all
	}
	for name, c := range map[string]struct {
		status updatev1beta1.UpdateStatusStatus
		want   string
	}{
		"first": {first, "12:00:00"}, "unchanged": {second, "12:00:00"}, "changed": {third, "12:02:00"},
	} {
		if got := strings.Join(times(c.status), " "); got != strings.TrimSpace(strings.Repeat(c.want+" ", 4)) {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
	if at := metav1.NewTime(now.Add(2 * time.Minute)); !third.ObservedTime.Equal(&at) {
		t.Errorf("observed at %s", third.ObservedTime)
	}
}
