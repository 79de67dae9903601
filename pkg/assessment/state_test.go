// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

const (
	progressing = updatev1beta1.StateProgressing
	waiting     = updatev1beta1.StateWaiting
	stuck       = updatev1beta1.StateStuck
	unknown     = updatev1beta1.StateUnknown
)

// operatorUnchanged returns a cluster with an operator that has been progressing for the given time.
func operatorUnchanged(name string, since time.Duration) *fixture {
	f := newFixture("4.20.6")
	f.history[0].StartedTime = at(before(10 * time.Hour))
	f.pendingOperators(name)
	f.progressing(name, before(since))
	f.addNodes(worker, 6, 0)
	pending(f.plane())
	pending(f.pool())
	return f
}

// nodeUnchanged returns a cluster with a worker node that has been at a step for the given time.
func nodeUnchanged(step string, since time.Duration) *fixture {
	f := newFixture("4.20.6")
	f.history[0].StartedTime = at(before(24 * time.Hour))
	f.history[0].State, f.history[0].CompletionTime = "Completed", ago(23*time.Hour)
	f.addNodes(worker, 6, 2)
	if step == "NodeDraining" {
		f.drain("worker-2", before(since))
	} else {
		f.reboot(worker, "worker-2")
	}
	reconciled(f.plane())
	pending(f.pool())
	f.insight(f.pool(), checks.InformerNodes, newInsight(updatev1beta1.LevelStatus, step, "nodes", before(since), ref("Node", "", "worker-2")))
	return f
}

// TestAssess_MachineSet checks that a MachineSet whose nodes belong to a MachineConfigPool has no pace of its
// own. It is not stuck for lack of parts, and its remaining time comes from the MachineConfigPool.
func TestAssess_MachineSet(t *testing.T) {
	t.Parallel()
	f := nodeUnchanged("NodeRebooting", 5*time.Minute)
	f.status.PastUpdates = []updatev1beta1.PastUpdate{{
		StartedTime: at(before(48 * time.Hour)), CompletionTime: at(before(40 * time.Hour)),
		Pools: []updatev1beta1.PoolDurations{{Name: worker, Nodes: 6, LowerSeconds: 600, UpperSeconds: 1200, LongestSeconds: 1300}},
	}}
	set := updatev1beta1.WorkerPoolStatus{APIVersion: "machine.openshift.io/v1beta1", Kind: "MachineSet", Namespace: "openshift-machine-api", Name: "set"}
	set.Progress = &updatev1beta1.Progress{Total: 6, Updated: 2, Updating: 1, Pending: 3}
	pending(&set.Section)
	f.status.WorkerPools = append(f.status.WorkerPools, set)
	got := f.assess()
	if got.State != progressing {
		t.Errorf("state: %s", got.State)
	}
	if last := got.Sections[len(got.Sections)-1]; last.Name != "set" || last.Detail != "1 being updated" || len(last.Parts) > 0 {
		t.Errorf("section: %+v", last)
	}
	if got.Estimate == nil || got.Estimate.Latest == nil || len(got.Estimate.Sections) != 1 {
		t.Errorf("estimate: %+v", got.Estimate)
	}
}

// poolUnchanged returns a cluster without any node in progress although nothing pauses the pool.
func poolUnchanged(since time.Duration) *fixture {
	f := newFixture("4.20.6")
	f.history[0].StartedTime = at(before(24 * time.Hour))
	f.history[0].State, f.history[0].CompletionTime = "Completed", ago(23*time.Hour)
	f.addNodes(worker, 6, 2)
	reconciled(f.plane())
	pending(f.pool())
	f.in.Previous = &updatev1beta1.Assessment{
		State: progressing, FromRelease: "4.20.5", Release: "4.20.6", StartedTime: ago(24 * time.Hour),
		Sections: []updatev1beta1.SectionAssessment{{
			Name: worker, Pool: &updatev1beta1.ResourceReference{APIVersion: "machineconfiguration.openshift.io/v1", Kind: "MachineConfigPool", Name: worker},
			State: progressing, Total: 6, Updated: 2, LastChangeTime: ago(since),
		}},
	}
	return f
}

// masterChanged makes a control plane node ready since the given time.
func (f *fixture) masterChanged(since time.Duration) *fixture {
	f.addNodes(master, 3, 1)
	f.reboot(master, "master-1")
	f.insight(f.plane(), checks.InformerNodes, newInsight(updatev1beta1.LevelStatus, "NodeRebooting", "nodes", before(since), ref("Node", "", "master-1")))
	return f
}

func (f *fixture) past(update updatev1beta1.PastUpdate) *fixture {
	f.status.PastUpdates = append(f.status.PastUpdates, update)
	return f
}

// stale makes the insights of the pool stale, as if their informer had failed since.
func (f *fixture) stale() *fixture {
	for i := range f.pool().UpdateInformers {
		insights := f.pool().UpdateInformers[i].Insights
		for k := range insights {
			insights[k].StaleSince = ago(20 * time.Minute)
		}
	}
	return f
}

// seenBefore adds the node to the last assessment, in the given phase since the given time.
func seenBefore(f *fixture, phase string, since time.Duration) *fixture {
	previous := poolUnchanged(since).in.Previous
	previous.Sections[0].Parts = []updatev1beta1.SectionPart{{Name: "worker-2", Phase: phase, StartedTime: *ago(since), LastChangeTime: *ago(since)}}
	f.in.Previous = previous
	return f
}

// rebooted completes the update of the node in progress. It has been ready for the given time.
func (f *fixture) rebooted(since time.Duration) *fixture {
	node := f.node("worker-2")
	for key := range node.Annotations {
		if strings.HasSuffix(key, "Config") {
			node.Annotations[key] = "rendered-worker-new"
		}
	}
	node.Annotations["machineconfiguration.openshift.io/state"] = "Done"
	node.Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: at(before(since))}
	return f
}

func longestNode(d time.Duration) updatev1beta1.PastUpdate {
	return updatev1beta1.PastUpdate{Pools: []updatev1beta1.PoolDurations{{Name: worker, Nodes: 6, LongestSeconds: int32(d / time.Second)}}}
}

func longestOperator(name string, d time.Duration) updatev1beta1.PastUpdate {
	return updatev1beta1.PastUpdate{Operators: []updatev1beta1.OperatorOffset{{Name: "etcd", Seconds: 600}, {Name: name, Seconds: 600 + int32(d/time.Second)}}}
}

// reporting adds an insight about a worker node.
func (f *fixture) reporting(informer string, level updatev1beta1.Level, reason string) *fixture {
	f.insight(f.pool(), informer, newInsight(level, reason, "something", before(5*time.Minute), ref("Node", "", "worker-5")))
	return f
}

// forced adds an upgrade that forces pods off draining nodes after the given time.
func (f *fixture) forced(after time.Duration, pods ...clusterstate.DrainedPod) *fixture {
	f.facts.Upgrades = []checks.Upgrade{{
		Resource: checks.Resource{Kind: "UpgradeJob", Namespace: "ops", Name: "weekly"}, Phase: history.PhaseUpgrading,
		Record: &history.Record{Phase: history.PhaseUpgrading, StartTime: ago(24 * time.Hour)}, PDBTimeout: after,
	}}
	f.facts.Drains = map[string]checks.DrainingNode{"worker-2": {Node: "worker-2", Start: before(70 * time.Minute), Read: true, Pods: pods}}
	return f
}

// unread makes the pods of the drains exceed the list limit.
func (f *fixture) unread() *fixture {
	for node, drain := range f.facts.Drains {
		drain.Read = false
		f.facts.Drains[node] = drain
	}
	return f
}

func (f *fixture) without(source checks.FactSource) *fixture {
	f.facts.Missing = map[checks.FactSource]checks.Missing{source: {Reason: checks.MissingForbidden, Message: "not allowed"}}
	return f
}

func held(change func(*clusterstate.DrainedPod)) clusterstate.DrainedPod {
	pod := clusterstate.DrainedPod{Pod: clusterstate.Pod{Namespace: "shop", Name: "api"}, PDBs: []string{"shop/api"}, NodeReady: true}
	change(&pod)
	return pod
}

func unchanged(*clusterstate.DrainedPod) {}

func TestState(t *testing.T) {
	t.Parallel()
	const m = time.Minute
	for _, tc := range []struct {
		name    string
		cluster *fixture
		want    updatev1beta1.AssessmentState
	}{
		{"operator unchanged for 29m", operatorUnchanged("dns", 29*m), progressing},
		{"operator unchanged for 30m", operatorUnchanged("dns", 30*m), stuck},
		{"operator that took 25m before, unchanged for 49m", operatorUnchanged("dns", 49*m).past(longestOperator("dns", 25*m)), progressing},
		{"operator that took 25m before, unchanged for 50m", operatorUnchanged("dns", 50*m).past(longestOperator("dns", 25*m)), stuck},
		{"operator that took 5h before, unchanged for 4h", operatorUnchanged("dns", 240*m).past(longestOperator("dns", 300*m)), stuck},
		{"machine-config unchanged for 89m", operatorUnchanged("machine-config", 89*m), progressing},
		{"machine-config unchanged for 90m", operatorUnchanged("machine-config", 90*m), stuck},
		{"machine-config unchanged for 100m, its node for 10m", operatorUnchanged("machine-config", 100*m).masterChanged(10 * m), progressing},
		{"machine-config and its node unchanged for 31m", operatorUnchanged("machine-config", 31*m).masterChanged(31 * m), stuck},
		{"drain unchanged for 59m", nodeUnchanged("NodeDraining", 59*m), progressing},
		{"drain unchanged for 60m", nodeUnchanged("NodeDraining", 60*m), stuck},
		{"reboot unchanged for 29m", nodeUnchanged("NodeRebooting", 29*m), progressing},
		{"reboot unchanged for 30m", nodeUnchanged("NodeRebooting", 30*m), stuck},
		{"reboot that took 40m before, unchanged for 79m", nodeUnchanged("NodeRebooting", 79*m).past(longestNode(40 * m)), progressing},
		{"reboot that took 40m before, unchanged for 80m", nodeUnchanged("NodeRebooting", 80*m).past(longestNode(40 * m)), stuck},
		{"stale insight about a node that was rebooted meanwhile", nodeUnchanged("NodeRebooting", 40*m).rebooted(2 * m).stale(), progressing},
		{"stale insight about a node that still reboots", seenBefore(nodeUnchanged("NodeRebooting", 40*m).stale(), "rebooting", 40*m), stuck},
		{"pool unchanged for 29m", poolUnchanged(29 * m), progressing},
		{"pool unchanged for 30m", poolUnchanged(30 * m), stuck},

		{"warning", nodeUnchanged("NodeRebooting", m).reporting(checks.InformerNodes, updatev1beta1.LevelWarning, "NodeNotReady"), progressing},
		{"unknown level", nodeUnchanged("NodeRebooting", m).reporting("stranger", "apocalyptic", "Odd"), progressing},
		{"error", nodeUnchanged("NodeRebooting", m).reporting(checks.InformerNodes, updatev1beta1.LevelError, "NodeDegraded"), progressing},
		{"error of a third party", nodeUnchanged("NodeRebooting", m).reporting("stranger", updatev1beta1.LevelError, "Odd"), progressing},
		{"critical", nodeUnchanged("NodeRebooting", m).reporting("stranger", updatev1beta1.LevelCritical, "Odd"), progressing},
		{"third party reports progress of a pool that is stuck", poolUnchanged(31*m).reporting("stranger", updatev1beta1.LevelStatus, "NodeRebooting"), stuck},

		{"drain that is forced later", nodeUnchanged("NodeDraining", 70*m).forced(90*m, held(unchanged)), waiting},
		{"drain that should have been forced 2m ago", nodeUnchanged("NodeDraining", 70*m).forced(68*m, held(unchanged)), waiting},
		{"drain that should have been forced 4m ago", nodeUnchanged("NodeDraining", 70*m).forced(66*m, held(unchanged)), stuck},
		{"drain that is never forced", nodeUnchanged("NodeDraining", 70*m).forced(-1, held(unchanged)), stuck},
		{"drain of a pod that is exempt", nodeUnchanged("NodeDraining", 70*m).forced(90*m, held(unchanged), held(func(p *clusterstate.DrainedPod) { p.IgnoredNamespace = true })), stuck},
		{"drain of a pod without a budget", nodeUnchanged("NodeDraining", 70*m).forced(90*m, held(func(p *clusterstate.DrainedPod) { p.PDBs = nil })), stuck},
		{"drain whose pods were not read, and are forced later", nodeUnchanged("NodeDraining", 70*m).forced(90 * m).unread(), waiting},
		{"drain whose pods were not read, and should have been forced 4m ago", nodeUnchanged("NodeDraining", 70*m).forced(66 * m).unread(), stuck},
		{"drain whose pods were not read, and are never forced", nodeUnchanged("NodeDraining", 70*m).forced(-1).unread(), stuck},
		{"drain whose pods cannot be read", nodeUnchanged("NodeDraining", 70*m).forced(90 * m).unread().without(checks.SourcePods), stuck},
		{"drain whose pods are not known", nodeUnchanged("NodeDraining", 70*m).forced(90 * m), stuck},

		{"paused", pausedCluster(updatev1beta1.ReasonPaused), waiting},
		{"outside of its window", pausedCluster(updatev1beta1.ReasonAwaitingWindow), waiting},
		{"paused pool with an error", pausedCluster(updatev1beta1.ReasonPaused).reporting(checks.InformerNodes, updatev1beta1.LevelError, "NodeDegraded"), waiting},
		{"pool that cannot be observed", unobserved(updatev1beta1.ConditionUpdatePending), unknown},
		{"pause that cannot be observed", unobserved(updatev1beta1.ConditionUpdateActive), unknown},
		{"status without sections", newFixture("4.20.6"), unknown},
		{"first change in the future", nodeUnchanged("NodeRebooting", -3*time.Hour), progressing},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := tc.cluster.assess()
			if got.State != tc.want {
				t.Errorf("%s, not %s: %s\n%s", got.State, tc.want, got.Summary, cmp.Diff([]updatev1beta1.SectionAssessment{}, got.Sections))
			}
			if got.State == stuck && (len(got.Causes) == 0 || got.Remedy == nil || got.Remedy.Type == updatev1beta1.RemedyNone || got.Summary == "" || !got.ActionRequired) {
				t.Errorf("stuck without a cause, a remedy, or a summary: %+v", got)
			}
		})
	}
}

func pausedCluster(reason string) *fixture {
	f := nodeUnchanged("NodeRebooting", time.Minute)
	f.pool().Conditions = nil
	pausedBy(f.pool(), reason)
	f.paused[worker] = true
	return f
}

func unobserved(conditionType string) *fixture {
	f := nodeUnchanged("NodeRebooting", time.Minute)
	for i := range f.pool().Conditions {
		if f.pool().Conditions[i].Type == conditionType {
			f.pool().Conditions[i].Status = metav1.ConditionUnknown
		}
	}
	return f
}

func TestPause_without_an_end_names_its_remedy(t *testing.T) {
	t.Parallel()
	got := pausedCluster(updatev1beta1.ReasonPaused).assess()
	want := &updatev1beta1.Remedy{
		Type: updatev1beta1.RemedyFixes, Text: "Unpause the pool when its nodes may reboot:",
		Commands: []string{`oc patch machineconfigpool worker --type=merge -p '{"spec":{"paused":false}}'`},
	}
	if diff := cmp.Diff(want, got.Remedy); diff != "" || !got.ActionRequired || got.Summary != "Pool worker is paused" {
		t.Errorf("action required: %t, summary: %s (-want +got):\n%s", got.ActionRequired, got.Summary, diff)
	}
}

func TestForced_drain_resumes_when_its_pods_are_forced(t *testing.T) {
	t.Parallel()
	got := nodeUnchanged("NodeDraining", 70*time.Minute).forced(90*time.Minute, held(unchanged)).assess()
	if got.Resumes == nil || !got.Resumes.Time.Time.Equal(now.Add(20*time.Minute)) || got.ActionRequired || got.Summary != "Pool worker waits until the pods are forced off its node" {
		t.Errorf("resumes: %v, action required: %t, summary: %s", got.Resumes, got.ActionRequired, got.Summary)
	}
}

// TestMissing_sources_are_never_good_news removes each required source from each cluster.
func TestMissing_sources_are_never_good_news(t *testing.T) {
	t.Parallel()
	clusters := map[string]func() *fixture{}
	for name, screen := range screens() {
		clusters[name] = screen.cluster
	}
	clusters["operator without a change"] = func() *fixture { return operatorUnchanged("dns", time.Hour) }
	clusters["pool without a change"] = func() *fixture { return poolUnchanged(time.Hour) }
	clusters["paused"] = func() *fixture { return pausedCluster(updatev1beta1.ReasonPaused) }
	for name, cluster := range clusters {
		for _, source := range checks.Required() {
			t.Run(name+" without "+string(source), func(t *testing.T) {
				t.Parallel()
				f := cluster()
				f.facts.Missing = map[checks.FactSource]checks.Missing{source: {Reason: checks.MissingUnavailable, Message: "no answer"}}
				got := f.assess()
				if got.State != unknown && got.State != stuck {
					t.Errorf("%s", got.State)
				}
				if got.State == unknown && (got.Remedy == nil || len(got.Remedy.Commands) == 0) {
					t.Errorf("no diagnostic: %+v", got.Remedy)
				}
			})
		}
	}
}

// TestChange_needs_data checks that a temporarily missing source does not count as a change.
func TestChange_needs_data(t *testing.T) {
	t.Parallel()
	f := poolUnchanged(31 * time.Minute)
	f.facts.Missing = map[checks.FactSource]checks.Missing{checks.SourceNodes: {Message: "no answer"}}
	status, in := f.build()
	in.Facts.Nodes = nil
	status.WorkerPools[0].Progress = nil
	blind := assessOnce(status, in)
	if blind.State != unknown {
		t.Errorf("%s without nodes", blind.State)
	}
	f.facts.Missing = nil
	f.in.Previous = &blind
	if got := f.assess(); got.State != stuck {
		t.Errorf("%s after the nodes can be read again: %+v", got.State, got.Sections)
	}
}

// TestPauses_of_several_sections checks that the summary names the pause of the control plane, because every
// pool waits for it.
func TestPauses_of_several_sections(t *testing.T) {
	t.Parallel()
	plane := progressingCluster()
	plane.plane().Conditions, plane.pool().Conditions = nil, nil
	pausedBy(plane.plane(), updatev1beta1.ReasonPaused)
	pausedBy(plane.pool(), updatev1beta1.ReasonPaused)
	if got := plane.assess(); got.Summary != "The control plane is paused" {
		t.Errorf("summary %q", got.Summary)
	}
	window := pausedCluster(updatev1beta1.ReasonAwaitingWindow)
	pool := updatev1beta1.ResourceReference{APIVersion: "machineconfiguration.openshift.io/v1", Kind: "MachineConfigPool", Name: worker}
	window.in.Resumes = map[updatev1beta1.ResourceReference]time.Time{pool: now.Add(time.Hour)}
	if got := window.assess().Resumes; got == nil || got.By == nil || *got.By != pool {
		t.Errorf("resumes %+v, want the pool that waits", got)
	}
	pools := pausedCluster(updatev1beta1.ReasonPaused)
	pools.pools = append(pools.pools, "infra")
	pools.addNodes("infra", 2, 0)
	pools.paused["infra"] = true
	pools.status.WorkerPools = append(pools.status.WorkerPools, updatev1beta1.WorkerPoolStatus{APIVersion: "machineconfiguration.openshift.io/v1", Kind: "MachineConfigPool", Name: "infra"})
	pausedBy(&pools.status.WorkerPools[1].Section, updatev1beta1.ReasonPaused)
	if got := pools.assess().Summary; got != "Pools infra, worker are paused" {
		t.Errorf("summary %q", got)
	}
}

// TestDrain_without_a_start checks that such a drain counts as progress only if the last assessment shows how
// long it has been running.
func TestDrain_without_a_start(t *testing.T) {
	t.Parallel()
	cluster := func() *fixture {
		f := nodeUnchanged("NodeDraining", 10*time.Minute)
		f.facts.Drains = map[string]checks.DrainingNode{"worker-2": {Node: "worker-2"}}
		return f
	}
	if got := cluster().assess(); got.State != unknown || !slices.Contains(got.Remedy.Commands, "oc describe node worker-2") {
		t.Errorf("%s at first, %+v: %+v", got.State, got.Remedy, got.Sections)
	}
	if got := seenBefore(cluster(), "draining", 10*time.Minute).assess(); got.State != progressing {
		t.Errorf("%s later: %+v", got.State, got.Sections)
	}
}

// TestNodes_that_are_done checks that the time of a completed node is recorded once the node is ready.
func TestNodes_that_are_done(t *testing.T) {
	t.Parallel()
	for _, ready := range []bool{true, false} {
		f := seenBefore(poolUnchanged(time.Hour), "rebooting", 20*time.Minute)
		node := f.node("worker-2")
		for _, key := range []string{"currentConfig", "desiredConfig"} {
			node.Annotations["machineconfiguration.openshift.io/"+key] = "rendered-worker-new"
		}
		if !ready {
			node.Status.Conditions[0].Status = corev1.ConditionFalse
		}
		section := f.assess().Sections[1]
		if want := map[bool][]int32{true: {20 * 60}}[ready]; !slices.Equal(section.NodeSeconds, want) {
			t.Errorf("ready is %t: the nodes took %v s, want %v", ready, section.NodeSeconds, want)
		}
	}
}

// TestSummary_names_the_section_of_the_first_cause checks this with two stuck sections.
func TestSummary_names_the_section_of_the_first_cause(t *testing.T) {
	t.Parallel()
	f := poolUnchanged(time.Hour)
	f.pools = append(f.pools, "infra")
	f.addNodes("infra", 2, 0)
	f.status.WorkerPools = append(f.status.WorkerPools, updatev1beta1.WorkerPoolStatus{APIVersion: "machineconfiguration.openshift.io/v1", Kind: "MachineConfigPool", Name: "infra"})
	infra := &f.status.WorkerPools[1].Section
	pending(infra)
	f.insight(infra, checks.InformerNodes, newInsight(updatev1beta1.LevelCritical, "NodeDegraded", "odd", before(time.Minute), ref("Node", "", "infra-0")))
	got := f.assess()
	if got.Sections[1].State != stuck || got.Summary != "Pool infra has made no progress" {
		t.Errorf("summary %q of %+v", got.Summary, got.Sections)
	}
}
