// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// printed holds the parts of an assessment that appear on the six screens of the design.
type printed struct {
	State                      updatev1beta1.AssessmentState
	Summary                    string
	From, To                   string
	SummarySince, Started      *time.Time
	Installed, LastChange      *time.Time
	Resumes, Next              *updatev1beta1.ScheduledTime
	Earliest, Latest           *time.Time
	Min, Max                   int64
	Base                       updatev1beta1.EstimateBase
	Estimates, Progress, Chain []string
	Since                      map[string]time.Time
	Remedy                     string
	Commands                   []string
	Missing                    []string
	LastKnown                  string
	ActionRequired             bool
}

func printedOf(a updatev1beta1.Assessment) printed {
	p := printed{
		State: a.State, Summary: a.Summary, From: a.FromRelease, To: a.Release, ActionRequired: a.ActionRequired, Next: a.Next, Resumes: a.Resumes,
		Since: map[string]time.Time{},
	}
	if a.SummarySince != nil {
		p.SummarySince = &a.SummarySince.Time
	}
	if a.StartedTime != nil {
		p.Started = &a.StartedTime.Time
	}
	if a.InstalledTime != nil {
		p.Installed = &a.InstalledTime.Time
	}
	if a.LastChangeTime != nil {
		p.LastChange = &a.LastChangeTime.Time
	}
	if e := a.Estimate; e != nil {
		p.Base, p.Min, p.Max = e.From, e.MinSeconds, e.MaxSeconds
		if e.Earliest != nil {
			p.Earliest, p.Latest = &e.Earliest.Time, &e.Latest.Time
		}
		for _, s := range e.Sections {
			p.Estimates = append(p.Estimates, s.Name+": "+s.Basis+s.Reason)
		}
	}
	if a.State != updatev1beta1.StateIdle && a.State != updatev1beta1.StateUnknown {
		for _, s := range a.Sections {
			p.Progress = append(p.Progress, s.Name+" "+count(s)+" "+s.Detail)
			if s.DetailSince != nil {
				p.Since[s.Name] = s.DetailSince.Time
			}
		}
	}
	for _, c := range a.Causes {
		for _, l := range c.Chain {
			p.Chain = append(p.Chain, l.Message)
		}
	}
	if a.Remedy != nil {
		p.Remedy, p.Commands = string(a.Remedy.Type)+" "+a.Remedy.Text, a.Remedy.Commands
	}
	for _, s := range a.Sources {
		if !s.Current {
			p.Missing = append(p.Missing, s.Name+": "+s.Message)
		}
	}
	if a.LastKnown != nil {
		p.LastKnown = a.LastKnown.Text
	}
	return p
}

// TestScreens checks that each line of the six screens of the design follows from the state of a cluster.
func TestScreens(t *testing.T) {
	t.Parallel()
	for name, screen := range screens() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := screen.cluster()
			if diff := cmp.Diff(screen.want, printedOf(f.assess()), cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

type screenCase struct {
	cluster func() *fixture
	want    printed
}

func screens() map[string]screenCase {
	return map[string]screenCase{
		"idle": {idleCluster, printed{
			State: updatev1beta1.StateIdle, To: "4.20.6", Installed: new(before(8 * 24 * time.Hour)),
			Next: &updatev1beta1.ScheduledTime{
				Time: at(now.Add(141 * time.Hour)), Release: "4.20.8",
				By: &updatev1beta1.ResourceReference{APIVersion: "upgrade.managed.openshift.io/v1alpha1", Kind: "UpgradeConfig", Namespace: "ops", Name: "weekly"},
			},
			Remedy: "None Nothing. Check it ahead:", Commands: []string{"oc update pre-checks --version 4.20.8"}, Since: map[string]time.Time{},
		}},
		"progressing": {progressingCluster, printed{
			State: updatev1beta1.StateProgressing, From: "4.20.5", To: "4.20.6", Started: new(before(38 * time.Minute)), LastChange: new(before(3 * time.Minute)),
			Base: updatev1beta1.EstimateFromNow, Earliest: new(now.Add(27 * time.Minute)), Latest: new(now.Add(72 * time.Minute)),
			Estimates: []string{"control plane: 3 earlier updates took 52m to 71m", "worker: 9m to 13m per node in the last update"},
			Progress: []string{
				"control plane 29 of 33 operators network, dns updating", "master 1 of 3 nodes master-1 rebooting", "worker 0 of 6 nodes pending, 2 at a time",
			},
			Since:  map[string]time.Time{"control plane": before(6 * time.Minute), "master": before(3 * time.Minute)},
			Remedy: "None Nothing.",
		}},
		"waiting": {waitingCluster, printed{
			State: updatev1beta1.StateWaiting, From: "4.20.5", To: "4.20.6", Summary: "Pool worker waits for its window", Started: new(before(26 * time.Hour)),
			Resumes: &updatev1beta1.ScheduledTime{
				Time: at(now.Add(141 * time.Hour)),
				By:   &updatev1beta1.ResourceReference{APIVersion: "managedupgrade.appuio.io/v1beta1", Kind: "UpgradeJob", Namespace: "ops", Name: "weekly"},
			},
			Base: updatev1beta1.EstimateFromResumption, Min: 108 * 60, Max: 156 * 60, Estimates: []string{"worker: 9m to 13m per node in the last update"},
			Progress: []string{"control plane 33 of 33 operators done after 62m", "worker 0 of 12 nodes paused, then 1 at a time"},
			Since:    map[string]time.Time{}, Remedy: "None Nothing before then.",
		}},
		"stuck drain": {stuckDrainCluster, printed{
			State: updatev1beta1.StateStuck, From: "4.20.5", To: "4.20.6", Summary: "Pool worker has made no progress", SummarySince: new(before(64 * time.Minute)),
			Started: new(before(180 * time.Minute)), LastChange: new(before(64 * time.Minute)), ActionRequired: true,
			Base: updatev1beta1.EstimateFromRemedy, Min: 72 * 60, Max: 104 * 60, Estimates: []string{"worker: 9m to 13m per node in the last update"},
			Progress: []string{"control plane 33 of 33 operators done after 62m", "worker 4 of 12 nodes worker-4 draining"},
			Since:    map[string]time.Time{"worker": before(64 * time.Minute)},
			Chain: []string{
				"PodDisruptionBudget shop/api allows 0 disruptions (2 of 2 required)", "pod shop/api-7c9f4-x2k1p cannot be evicted",
				"drain of node worker-4 cannot finish, and nothing forces it", "pool worker waits: 1 node at a time",
			},
			Remedy: "Remedy Add a replica; the update then continues on its own:", Commands: []string{"oc -n shop scale deployment/api --replicas=3"},
		}},
		"stuck operator": {stuckOperatorCluster, printed{
			State: updatev1beta1.StateStuck, From: "4.20.5", To: "4.21.2", Summary: "Operator authentication has been failing", SummarySince: new(before(42 * time.Minute)),
			Started: new(before(50 * time.Minute)), LastChange: new(before(42 * time.Minute)), ActionRequired: true,
			Base: updatev1beta1.EstimateFromRemedy, Estimates: []string{
				"control plane: no earlier update of this cluster is known", "worker: no update of pool worker was observed",
			},
			Progress: []string{"control plane 28 of 33 operators authentication failing; 4 waiting", "worker 0 of 12 nodes pending"},
			Since:    map[string]time.Time{},
			Chain: []string{
				"ClusterOperator authentication is degraded (OAuthServerDeployment): 1 of 3 pods is not ready", "ClusterVersion is failing",
			},
			Remedy: "Diagnostic Find out why the pod is not ready:", Commands: []string{"oc -n openshift-authentication get pods -o wide"},
		}},
		"unknown": {unknownCluster, printed{
			State: updatev1beta1.StateUnknown, From: "4.20.5", To: "4.20.6", Summary: "Too much data is missing to judge this cluster",
			Started: new(before(38 * time.Minute)),
			Base:    updatev1beta1.EstimateFromNow, LastKnown: "Updating 4.20.5 to 4.20.6, 21 of 33 operators",
			Remedy: "Diagnostic Start with the controller:", Commands: []string{"oc -n managed-upgrade-operator get pods"}, Since: map[string]time.Time{},
			Missing: []string{"operators: ", "nodes: you are not allowed to list them", "pools: ", "Update Status Controller: no sign of life", "informer mco-update-informer: no answer"},
		}},
	}
}

func idleCluster() *fixture {
	f := newFixture("4.20.6")
	f.history[0].State, f.history[0].CompletionTime = "Completed", ago(8*24*time.Hour)
	f.addNodes(worker, 6, 6)
	reconciled(f.plane())
	reconciled(f.pool())
	f.facts.Upgrades = []checks.Upgrade{{
		Resource: checks.Resource{Kind: "UpgradeConfig", Namespace: "ops", Name: "weekly"}, APIVersion: "upgrade.managed.openshift.io/v1alpha1",
		To: "4.20.8", Phase: history.PhasePending, Start: now.Add(141 * time.Hour),
	}}
	return f
}

// progressingCluster returns a cluster with three earlier updates of the same kind and an outlier that took
// too long to count.
func progressingCluster() *fixture {
	f := newFixture("4.20.6")
	f.history[0].StartedTime = at(before(38 * time.Minute))
	f.history = f.history[:1]
	for i, took := range []time.Duration{52 * time.Minute, 71 * time.Minute, 60 * time.Minute, 10 * time.Hour, 20 * time.Minute} {
		start := before(time.Duration(i+1) * 30 * 24 * time.Hour)
		f.addHistory([]string{"4.20.5", "4.20.4", "4.20.3", "4.20.2", "4.20.1"}[i], start, start.Add(took))
	}
	f.pendingOperators("network", "dns", "machine-config", "monitoring")
	f.progressing("network", before(6*time.Minute))
	f.progressing("dns", before(5*time.Minute))
	f.addNodes(master, 3, 1)
	f.reboot(master, "master-1")
	f.addNodes(worker, 6, 0)
	f.slots[worker] = 2
	pending(f.plane())
	pending(f.pool())
	f.insight(f.plane(), checks.InformerNodes, newInsight(updatev1beta1.LevelStatus, "Rebooting", "nodes rebooting", before(3*time.Minute), ref("Node", "", "master-1")))
	f.status.PastUpdates = pastWorker()
	return f
}

// pastWorker returns the last update, in which each worker node took 9 to 13 minutes.
func pastWorker() []updatev1beta1.PastUpdate {
	return []updatev1beta1.PastUpdate{{ToRelease: "4.20.5", Pools: []updatev1beta1.PoolDurations{{Name: worker, Nodes: 6, LowerSeconds: 9 * 60, UpperSeconds: 13 * 60, LongestSeconds: 15 * 60}}}}
}

func waitingCluster() *fixture {
	f := newFixture("4.20.6")
	f.history[0].StartedTime = at(before(26 * time.Hour))
	f.history[0].State, f.history[0].CompletionTime = "Completed", ago(26*time.Hour-62*time.Minute)
	f.addNodes(worker, 12, 0)
	reconciled(f.plane())
	pausedBy(f.pool(), updatev1beta1.ReasonAwaitingWindow)
	f.status.PastUpdates = pastWorker()
	f.in.Resumes = map[updatev1beta1.ResourceReference]time.Time{
		{APIVersion: "machineconfiguration.openshift.io/v1", Kind: "MachineConfigPool", Name: worker}: now.Add(141 * time.Hour),
	}
	f.facts.Upgrades = []checks.Upgrade{{
		Resource: checks.Resource{Kind: "UpgradeJob", Namespace: "ops", Name: "weekly"}, APIVersion: "managedupgrade.appuio.io/v1beta1",
		Phase: history.PhasePaused, Record: &history.Record{Phase: history.PhasePaused, StartTime: ago(26 * time.Hour)}, Pools: []checks.UpgradePool{{Name: worker}},
	}}
	return f
}

func stuckDrainCluster() *fixture {
	f := newFixture("4.20.6")
	f.history[0].StartedTime = at(before(180 * time.Minute))
	f.history[0].State, f.history[0].CompletionTime = "Completed", ago(118*time.Minute)
	f.addNodes(worker, 12, 4)
	f.drain("worker-4", before(64*time.Minute))
	reconciled(f.plane())
	pending(f.pool())
	f.insight(f.pool(), checks.InformerNodes, newInsight(updatev1beta1.LevelStatus, "Draining", "nodes draining", before(64*time.Minute), ref("Node", "", "worker-4")))
	f.shop("worker-4", before(64*time.Minute))
	f.status.PastUpdates = pastWorker()
	return f
}

func stuckOperatorCluster() *fixture {
	f := newFixture("4.21.2")
	f.history[0].StartedTime = at(before(50 * time.Minute))
	f.history = f.history[:2]
	f.history[1].CompletionTime = nil
	f.pendingOperators("authentication", "machine-config", "dns", "monitoring", "network")
	for i := range f.operators {
		f.operators[i].Progressing.Since = before(45 * time.Minute)
		if f.operators[i].Name == "authentication" {
			f.operators[i].Degraded = clusterstate.Condition{
				Status: "True", Reason: "OAuthServerDeployment", Message: "1 of 3 pods is not ready", Since: before(42 * time.Minute),
			}
		}
	}
	f.conditions[0] = configv1.ClusterOperatorStatusCondition{Type: "Failing", Status: configv1.ConditionTrue, LastTransitionTime: at(before(40 * time.Minute)), Message: "Cluster operator authentication is degraded"}
	f.addNodes(worker, 12, 0)
	pending(f.plane())
	pending(f.pool())
	f.insight(f.plane(), checks.InformerControlPlane, newInsight(updatev1beta1.LevelError, "OperatorDegraded", "cluster operators degraded", before(42*time.Minute), ref("ClusterOperator", "", "authentication")))
	f.insight(f.plane(), checks.InformerControlPlane, newInsight(updatev1beta1.LevelWarning, "ClusterVersionFailing", "the cluster version operator is failing", before(40*time.Minute), ref("ClusterVersion", "", "version")))
	return f
}

func unknownCluster() *fixture {
	f := newFixture("4.20.6")
	f.history[0].StartedTime = at(before(38 * time.Minute))
	f.operators = nil
	pending(f.plane())
	condition(f.pool(), updatev1beta1.ConditionUpdatePending, false, updatev1beta1.ReasonCannotObserve)
	f.pool().Conditions[0].Status = "Unknown"
	f.facts.Missing = map[checks.FactSource]checks.Missing{
		checks.SourceNodes: {Reason: checks.MissingForbidden, Message: "you are not allowed to list them"},
	}
	f.in.Sources = []updatev1beta1.Source{
		{Name: "operators"},
		{Name: "pools"},
		{Name: updatev1beta1.SourceStatusController, Message: "no sign of life", Since: ago(7 * time.Minute)},
		{Name: "informer mco-update-informer", Message: "no answer", Since: ago(9 * time.Minute), Detail: "timeout"},
	}
	f.in.Previous = &updatev1beta1.Assessment{
		State: updatev1beta1.StateProgressing, FromRelease: "4.20.5", Release: "4.20.6", StartedTime: ago(38 * time.Minute), Since: at(before(38 * time.Minute)),
		Sections: []updatev1beta1.SectionAssessment{{Name: "control plane", State: updatev1beta1.StateProgressing, Updated: 21, Total: 33, Unit: "operators"}},
	}
	f.in.PreviousTime = before(7 * time.Minute)
	return f
}

func count(s updatev1beta1.SectionAssessment) string {
	return itoa(s.Updated) + " of " + itoa(s.Total) + " " + s.Unit
}

// The next update is the one that starts first, either an existing upgrade or the next start of a schedule.
func TestNext(t *testing.T) {
	t.Parallel()
	scheduled := func(in time.Duration) []checks.Schedule {
		return []checks.Schedule{{
			Resource:   checks.Resource{Group: "managedupgrade.appuio.io", Kind: "UpgradeConfig", Namespace: "ops", Name: "nightly"},
			APIVersion: "managedupgrade.appuio.io/v1beta1", Start: now.Add(in), To: "4.20.7",
		}}
	}
	next := func(in time.Duration, apiVersion, name, release string) *updatev1beta1.ScheduledTime {
		return &updatev1beta1.ScheduledTime{Time: at(now.Add(in)), Release: release, By: &updatev1beta1.ResourceReference{
			APIVersion: apiVersion, Kind: "UpgradeConfig", Namespace: "ops", Name: name,
		}}
	}
	upgrade := next(141*time.Hour, "upgrade.managed.openshift.io/v1alpha1", "weekly", "4.20.8")
	for name, tc := range map[string]struct {
		cluster   func() *fixture
		schedules []checks.Schedule
		want      *updatev1beta1.ScheduledTime
	}{
		"upgrade":                           {idleCluster, nil, upgrade},
		"schedule that starts before it":    {idleCluster, scheduled(time.Hour), next(time.Hour, "managedupgrade.appuio.io/v1beta1", "nightly", "4.20.7")},
		"upgrade at the time of a schedule": {idleCluster, scheduled(141 * time.Hour), upgrade},
		"schedule that is past":             {idleCluster, scheduled(0), upgrade},
		"update in progress":                {progressingCluster, scheduled(time.Hour), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := tc.cluster()
			f.facts.Schedules = tc.schedules
			if diff := cmp.Diff(tc.want, printedOf(f.assess()).Next, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
