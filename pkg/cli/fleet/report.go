// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/report"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
)

// States returns the states of clusters in the order in which clusters go through them.
func States() []string {
	return []string{
		string(rollout.NotStarted), string(rollout.Initialized), string(rollout.PartialUpgrade), string(rollout.Complete), string(rollout.Failed),
	}
}

// Report returns the page contents for the upgrade. It keeps none of the objects.
func (p *Printer) Report(s *Snapshot) report.Fleet {
	v := s.Verdict()
	f := report.Fleet{
		Name: s.Upgrade.Name, Namespace: s.Upgrade.Namespace, Target: target(s.Upgrade), Verdict: v.Text, Tone: toneOf(v.State), Detail: v.Detail,
		Facts: s.facts(), Groups: s.groups(&v), States: States(), Now: s.Now,
	}
	if v.Verb != "" {
		f.Advice, f.Command = v.Advice, p.Command(v.Verb)
	}
	for _, m := range s.counted() {
		f.Clusters = append(f.Clusters, clusterOf(m).Clip())
	}
	tones := map[string]report.Tone{"FAILED": report.ToneFailed, "GONE": report.ToneFailed, "SLOW": report.ToneWarning, "BLOCKED": report.ToneWarning}
	for _, r := range append(causeRows(s), goneRows(s)...) {
		f.Causes = append(f.Causes, report.FleetCause{
			Tone: cmp.Or(tones[r.label], report.ToneNone), Label: r.label, Count: r.count, Text: r.text, Clusters: r.names,
		})
	}
	if s.Unreadable != nil {
		f.Missing = append(f.Missing, "clusters that have not started, slots, and the time left: "+s.Unreadable.Error())
	}
	return f
}

func toneOf(state VerdictState) report.Tone {
	switch state {
	case Done:
		return report.ToneDone
	case Progressing, Waiting:
		return report.ToneRunning
	default:
		return report.ToneFailed
	}
}

// facts returns figures about the rollout.
func (s *Snapshot) facts() []report.Fact {
	var all []report.Fact
	if s.Unreadable == nil {
		slots, failures := s.usage()
		all = append(all, report.Fact{Name: "Slots", Value: slots}, report.Fact{Name: "Failures", Value: failures})
		if left := s.left(); left != "" {
			all = append(all, report.Fact{Name: "Time left", Value: left})
		}
	}
	all = append(all, report.Fact{Name: "Order", Value: string(cmp.Or(s.Upgrade.Spec.UpgradeStrategy.RolloutType, fleetv1beta1.RolloutProgressive))})
	const layout = "2006-01-02 15:04 UTC"
	published := &s.Upgrade.Status
	for _, f := range []struct {
		name string
		at   *metav1.Time
	}{{"Started", published.StartTime}, {"Ended", published.CompletionTime}, {"Next change", published.NextTime}} {
		if f.at != nil {
			all = append(all, report.Fact{Name: f.name, Value: f.at.UTC().Format(layout)})
		}
	}
	return all
}

// groups returns the counters of the fleet, the canaries, and the groups.
func (s *Snapshot) groups(v *Verdict) []report.Group {
	published := s.Upgrade.Status.ClustersSummery
	if published == nil {
		return nil
	}
	all := []part{{label: "All clusters", counters: *published, text: describe(published)}}
	var groups []report.Group
	for _, p := range append(all, parts(s, v)...) {
		c, separator := &p.counters, ", "
		if strings.HasPrefix(p.text, "complete") {
			separator = " "
		}
		groups = append(groups, report.Group{
			Name: p.label, Text: grouped(int(c.Complete)) + " of " + grouped(int(c.Total)) + separator + p.text,
			Complete: int(c.Complete - c.Finishing), Active: int(c.InFlight() + c.Finishing), Failed: int(c.Failed), Pending: int(c.Pending),
		})
	}
	return groups
}

// ReadDetail reads the page contents for a cluster.
func ReadDetail(ctx context.Context, reader client.Reader, upgrade *fleetv1beta1.ManagedClustersUpgrade, c report.Cluster, now time.Time) (report.Report, error) {
	run := &fleetv1alpha1.ClusterUpgradeRun{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: c.Name, Name: admission.RunName(upgrade)}, run)
	switch {
	case apierrors.IsNotFound(err):
		return Detail(upgrade, c, nil, now), nil
	case err != nil:
		return report.Report{}, fmt.Errorf("reading the ClusterUpgradeRun of cluster %s: %w", c.Name, err)
	}
	return Detail(upgrade, c, run, now), nil
}

// Details returns the page contents for clusters in the snapshot.
func Details(s *Snapshot, clusters []report.Cluster) []report.Report {
	runs := make(map[string]*fleetv1alpha1.ClusterUpgradeRun, len(s.Members))
	for i := range s.Members {
		runs[s.Members[i].Name] = s.Members[i].Run
	}
	all := make([]report.Report, len(clusters))
	for i, c := range clusters {
		all[i] = Detail(s.Upgrade, c, runs[c.Name], s.Now)
	}
	return all
}

// Detail returns the page contents for a cluster. A cluster without a run has not started.
func Detail(upgrade *fleetv1beta1.ManagedClustersUpgrade, c report.Cluster, run *fleetv1alpha1.ClusterUpgradeRun, now time.Time) report.Report {
	r := report.Report{
		Cluster: c.Name, Upgrade: "managedclustersupgrade/" + upgrade.Name, Namespace: upgrade.Namespace, Now: now, StepsOnly: true,
		Facts:  []report.Fact{{Name: "State", Value: c.State}, {Name: "Group", Value: c.Group}},
		Record: history.Record{Version: target(upgrade), Phase: phaseOf(c.State), Message: c.Message, Reason: c.Reason},
	}
	if run == nil {
		return r
	}
	if outcome := run.Spec.Outcome; outcome != nil {
		r.Record.Message = cmp.Or(outcome.Message, outcome.Reason)
		return r
	}
	if run.Status.Attempt == run.Spec.Attempt && len(run.Status.History) > 0 {
		r.Record = run.Status.History[0]
		r.Record.Message = cmp.Or(r.Record.Message, c.Message)
	}
	for i := range run.Status.Conditions {
		if slow := &run.Status.Conditions[i]; slow.Type == fleetv1alpha1.ConditionSlow && slow.Status == metav1.ConditionTrue {
			r.Causes = append(r.Causes, report.Cause{Chain: []string{slow.Message}})
		}
	}
	return r
}

// phaseOf returns the phase of a cluster without a record.
func phaseOf(state string) history.Phase {
	switch rollout.MemberState(state) {
	case rollout.Complete:
		return history.PhaseUpgraded
	case rollout.Failed:
		return history.PhaseFailed
	case rollout.NotStarted, rollout.Initialized, rollout.PartialUpgrade:
	}
	return history.PhasePending
}
