// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updatestatus"
)

// about returns an insight about pools and objects.
func about(uid string, scope updatev1beta1.ScopeType, pools []updatev1beta1.ResourceReference, resources ...updatev1beta1.ResourceReference) updatev1beta1.Insight {
	return updatev1beta1.Insight{
		UID: uid, Scope: updatev1beta1.InsightScope{Type: scope, WorkerPool: pools, Resources: resources},
		Impact: updatev1beta1.InsightImpact{Level: updatev1beta1.LevelWarning, Summary: uid},
	}
}

// answered returns a state after an answer from the informer "mco".
func answered(insights ...updatev1beta1.Insight) insight.Store {
	state := insight.NewStore()
	state.Apply(insight.Answer{Informer: "mco", Result: insight.Success, Insights: insights, At: now}, now)
	return state
}

// uidsOf returns the uids of the insights of an informer in a section.
func uidsOf(section *updatev1beta1.Section, informer string) []string {
	var uids []string
	if section != nil {
		for _, of := range section.UpdateInformers {
			for _, i := range of.Insights {
				if of.Name == informer {
					uids = append(uids, i.UID)
				}
			}
		}
	}
	return uids
}

func TestCompute_PlacesInsights(t *testing.T) {
	t.Parallel()
	ref := func(kind, name string) updatev1beta1.ResourceReference {
		return updatev1beta1.ResourceReference{Kind: kind, Name: name}
	}
	pools := func(refs ...updatev1beta1.ResourceReference) []updatev1beta1.ResourceReference { return refs }
	c := newCluster(4, 0)
	c.pools = append(c.pools, newPool("infra"))
	c.nodes = append(c.nodes, newNode("infra", 0, true))
	c.node("worker-2").Labels = nil
	c.others = append(c.others, machinePool("machine.openshift.io/v1beta1", "MachineSet", "worker-set"), machinePool("machine.openshift.io/v1beta1", "MachineSet", "unnamed"))
	state := answered(
		about("control plane", updatev1beta1.ScopeControlPlane, nil, ref("Node", "worker-1")),
		about("pool", updatev1beta1.ScopeWorkerPool, pools(ref("MachineConfigPool", "worker")), ref("Node", "infra-0")),
		about("two pools", updatev1beta1.ScopeWorkerPool, pools(ref("MachineConfigPool", "worker"), ref("MachineConfigPool", "infra"))),
		about("another group", updatev1beta1.ScopeWorkerPool, pools(updatev1beta1.ResourceReference{APIVersion: "example.com/v1", Kind: "MachineConfigPool", Name: "worker"})),
		about("node", updatev1beta1.ScopeWorkerPool, nil, ref("Node", "infra-0")),
		about("node in no pool", updatev1beta1.ScopeWorkerPool, nil, ref("Node", "worker-2")),
		about("node of the control plane", updatev1beta1.ScopeWorkerPool, nil, ref("Node", "master-0")),
		about("machine set", updatev1beta1.ScopeWorkerPool, pools(updatev1beta1.ResourceReference{Kind: "MachineSet", Namespace: "openshift-machine-api", Name: "worker-set"})),
		about("unknown pool", updatev1beta1.ScopeWorkerPool, pools(ref("MachineConfigPool", "gone"))),
		about("unknown kind", updatev1beta1.ScopeWorkerPool, pools(ref("Herd", "worker"))),
		about("no pool", updatev1beta1.ScopeWorkerPool, nil),
	)
	status := updatestatus.Compute(updatestatus.Input{Facts: c.facts(t), Insights: state})
	got := map[string][]string{}
	for _, name := range []string{"", "worker", "infra", "unassigned", "worker-set", "unnamed"} {
		got[name] = uidsOf(section(status, name), "mco")
		slices.Sort(got[name])
	}
	want := map[string][]string{
		"":       {"another group", "control plane", "no pool", "node of the control plane", "unknown kind", "unknown pool"},
		"worker": {"pool", "two pools"}, "infra": {"node", "two pools"}, "unassigned": {"node in no pool"}, "worker-set": {"machine set"}, "unnamed": nil,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCompute_MissingSources checks that nothing is resolved because a built-in informer cannot read a
// source, and that the status names the source.
func TestCompute_MissingSources(t *testing.T) {
	t.Parallel()
	c := newCluster(4, 0)
	c.node("worker-1").Annotations["machineconfiguration.openshift.io/state"] = "Degraded"
	c.node("worker-1").Annotations["machineconfiguration.openshift.io/reason"] = "disk full"
	first := updatestatus.Compute(updatestatus.Input{Facts: c.facts(t)})
	before := uidsOf(section(first, "worker"), checks.InformerNodes)
	if len(before) == 0 {
		t.Fatal("nothing is reported about a degraded node")
	}
	facts := newCluster(4, 3).factsAt(t, now.Add(time.Minute))
	facts.Missing[checks.SourceConfigs] = checks.Missing{Message: "no answer in time"}
	second := updatestatus.Compute(updatestatus.Input{Facts: facts, Previous: first})
	if diff := cmp.Diff(before, uidsOf(section(second, "worker"), checks.InformerNodes)); diff != "" {
		t.Errorf("with data missing (-want +got):\n%s", diff)
	}
	missing := updatev1beta1.Source{Name: "machine configs", Message: "no answer in time"}
	if sources := second.Assessment.Sources; !slices.Contains(sources, missing) || second.Assessment.State == updatev1beta1.StateUnknown {
		t.Errorf("state %s, sources %+v, want a known state and %+v", second.Assessment.State, sources, missing)
	}
	third := updatestatus.Compute(updatestatus.Input{Facts: newCluster(4, 3).factsAt(t, now.Add(2*time.Minute)), Previous: second})
	if got := uidsOf(section(third, "worker"), checks.InformerNodes); got != nil {
		t.Errorf("with all data: %v", got)
	}
}

// withoutTimes returns a status without the values that change with every pass: times when facts were read
// and estimates relative to now.
func withoutTimes(t *testing.T, status updatev1beta1.UpdateStatusStatus) string {
	t.Helper()
	s := status.DeepCopy()
	s.ObservedTime, s.Assessment.Estimate = nil, nil
	for i := range s.Assessment.Sources {
		s.Assessment.Sources[i].ObservedTime = nil
	}
	sections := []*updatev1beta1.Section{&s.ControlPlane.Section}
	for i := range s.WorkerPools {
		sections = append(sections, &s.WorkerPools[i].Section)
	}
	for _, section := range sections {
		for _, of := range section.UpdateInformers {
			for i := range of.Insights {
				of.Insights[i].AcquisitionTime = metav1.Time{}
			}
		}
	}
	return encode(t, s)
}

func encode(tb testing.TB, value any) string {
	tb.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	return string(encoded)
}

// TestCompute_Quiet checks that a pass changes nothing if nothing happened, and that a hundred passes over
// the same input produce the same bytes.
func TestCompute_Quiet(t *testing.T) {
	t.Parallel()
	for _, c := range []*cluster{newCluster(2, 0), newCluster(4, 1), newCluster(4, 3)} {
		c.node("worker-2").Annotations["machineconfiguration.openshift.io/state"] = "Degraded"
		many := func() insight.Store {
			return answered(about("a", updatev1beta1.ScopeControlPlane, nil), about("b", updatev1beta1.ScopeWorkerPool, nil), about("c", updatev1beta1.ScopeControlPlane, nil))
		}
		facts, later := c.facts(t), c.factsAt(t, now.Add(10*time.Second))
		first := updatestatus.Compute(updatestatus.Input{Facts: facts, Insights: many()})
		for range 100 {
			if again := updatestatus.Compute(updatestatus.Input{Facts: facts, Insights: many()}); encode(t, again) != encode(t, first) {
				t.Fatalf("(-first +again):\n%s", cmp.Diff(first, again))
			}
		}
		state := many()
		settled := updatestatus.Compute(updatestatus.Input{Facts: facts, Insights: state})
		settled = updatestatus.Compute(updatestatus.Input{Facts: facts, Insights: state, Previous: settled})
		next := updatestatus.Compute(updatestatus.Input{Facts: later, Insights: state, Previous: settled})
		if withoutTimes(t, next) != withoutTimes(t, settled) {
			t.Errorf("a quiet pass (-before +after):\n%s", cmp.Diff(settled, next))
		}
	}
}

// TestCompute_Restart checks that a restarted controller publishes the same status as before.
func TestCompute_Restart(t *testing.T) {
	t.Parallel()
	c := newCluster(4, 1)
	state := answered(about("a", updatev1beta1.ScopeControlPlane, nil), about("b", updatev1beta1.ScopeWorkerPool, []updatev1beta1.ResourceReference{{Kind: "MachineConfigPool", Name: "worker"}}))
	first := updatestatus.Compute(updatestatus.Input{Facts: c.facts(t), Insights: state})
	second := updatestatus.Compute(updatestatus.Input{Facts: c.factsAt(t, now.Add(time.Hour)), Previous: first})
	for _, name := range []string{"", "worker"} {
		for _, informer := range []string{"mco", checks.InformerNodes, checks.InformerControlPlane} {
			if diff := cmp.Diff(uidsOf(section(first, name), informer), uidsOf(section(second, name), informer)); diff != "" {
				t.Errorf("%s of %q (-before +after):\n%s", informer, name, diff)
			}
		}
	}
	for _, of := range section(second, "worker").UpdateInformers {
		for _, i := range of.Insights {
			if stale := i.StaleSince != nil; stale != (of.Name == "mco") {
				t.Errorf("%s of %s is stale: %t", i.UID, of.Name, stale)
			}
			if of.Name == "mco" && !i.FirstObservedTime.Time.Equal(now) {
				t.Errorf("%s was first observed at %s", i.UID, i.FirstObservedTime)
			}
		}
	}
}

func TestCompute_AfterUpdate(t *testing.T) {
	t.Parallel()
	left := about("left", updatev1beta1.ScopeControlPlane, nil)
	left.Remediation.Resolved = new(false)
	state := answered(left, about("other", updatev1beta1.ScopeControlPlane, nil))
	during := updatestatus.Compute(updatestatus.Input{Facts: newCluster(4, 2).facts(t), Insights: state})
	if got := uidsOf(section(during, ""), "mco"); len(got) != 2 || len(during.AfterUpdate) != 0 {
		t.Errorf("during the update: %v and %d after it", got, len(during.AfterUpdate))
	}
	after := updatestatus.Compute(updatestatus.Input{Facts: newCluster(4, 3).factsAt(t, now.Add(time.Minute)), Insights: state, Previous: during})
	if len(after.AfterUpdate) != 1 || after.AfterUpdate[0].Insight.UID != "left" || after.AfterUpdate[0].UpdateInformer != "mco" {
		t.Fatalf("after the update: %+v", after.AfterUpdate)
	}
	if got := uidsOf(section(after, ""), "mco"); got != nil {
		t.Errorf("after the update, its section has %v", got)
	}
	restarted := updatestatus.Compute(updatestatus.Input{Facts: newCluster(4, 3).factsAt(t, now.Add(2*time.Minute)), Previous: after})
	if len(restarted.AfterUpdate) != 1 || !restarted.AfterUpdate[0].RetainedSince.Equal(&after.AfterUpdate[0].RetainedSince) {
		t.Errorf("after a restart: %+v", restarted.AfterUpdate)
	}
}

// TestCompute_Acknowledged acknowledges insights that the informer keeps reporting. They stay hidden until the next update.
func TestCompute_Acknowledged(t *testing.T) {
	t.Parallel()
	var left []updatev1beta1.Insight
	for _, uid := range []string{"one", "two"} {
		of := about(uid, updatev1beta1.ScopeControlPlane, nil)
		of.Remediation.Resolved = new(false)
		left = append(left, of)
	}
	state, object := answered(left...), &updatev1beta1.UpdateStatus{}
	compute := func(c *cluster, after time.Duration) []string {
		at := now.Add(after)
		state.Apply(insight.Answer{Informer: "mco", Result: insight.Success, Insights: left, At: at}, at)
		object.Status = updatestatus.Compute(updatestatus.Input{
			Facts: c.factsAt(t, at), Insights: state, Previous: object.Status, Acknowledged: object.Annotations[updatev1beta1.AcknowledgedAnnotation],
		})
		var shown []string
		for _, r := range object.Status.AfterUpdate {
			shown = append(shown, r.Insight.UID)
		}
		return shown
	}
	compute(newCluster(4, 2), 0)
	done := newCluster(4, 3)
	for i, want := range [][]string{{"one", "two"}, {"two"}, nil} {
		if diff := cmp.Diff(want, compute(done, time.Duration(i+1)*time.Minute)); diff != "" {
			t.Errorf("with %d acknowledged (-want +got):\n%s", i, diff)
		}
		if i < len(left) {
			object.Annotations = map[string]string{updatev1beta1.AcknowledgedAnnotation: updatestatus.Acknowledge(object, insight.UUID("mco", left[i].Scope, left[i].UID))}
		}
	}
	next := newCluster(4, 3)
	completed := metav1.NewTime(now.Add(2 * time.Hour))
	next.version.Status.History = append([]configv1.UpdateHistory{
		{State: configv1.CompletedUpdate, StartedTime: metav1.NewTime(now.Add(time.Hour)), CompletionTime: &completed, Version: newRelease, Image: "image/another"},
	}, next.version.Status.History...)
	if diff := cmp.Diff([]string{"one", "two"}, compute(next, 3*time.Hour)); diff != "" {
		t.Errorf("after the next update (-want +got):\n%s", diff)
	}
}

// TestCompute_AlertAfterUpdate checks that an alert that fires to the end of the update does not count as
// resolved, because alerts are not read after it.
func TestCompute_AlertAfterUpdate(t *testing.T) {
	t.Parallel()
	facts := newCluster(4, 2).facts(t)
	delete(facts.Missing, checks.SourceAlerts)
	facts.Alerts = []clusterstate.Alert{{Name: "EtcdSlow", Severity: "critical", Firing: true, Since: now.Add(-time.Minute)}}
	state := insight.NewStore()
	during := updatestatus.Compute(updatestatus.Input{Facts: facts, Insights: state})
	if got := uidsOf(section(during, ""), checks.InformerAlerts); len(got) != 1 {
		t.Fatalf("during the update: %v", got)
	}
	after := updatestatus.Compute(updatestatus.Input{Facts: newCluster(4, 3).factsAt(t, now.Add(time.Minute)), Insights: state, Previous: during})
	if got := uidsOf(section(after, ""), checks.InformerAlerts); got != nil || len(after.RecentlyResolved) != 0 {
		t.Errorf("after the update: %v, resolved %+v", got, after.RecentlyResolved)
	}
}

// TestCompute_BriefFindings checks that what each update shows for a moment is a problem only once it lasts. The machine
// config operator cordons a node shortly after its drain is requested.
func TestCompute_BriefFindings(t *testing.T) {
	t.Parallel()
	state := insight.NewStore()
	shown := func(after time.Duration, drain, unread bool) bool {
		facts := newCluster(4, 2).factsAt(t, now.Add(after))
		if unread {
			facts.Missing[checks.SourceNodes] = checks.Missing{Reason: checks.MissingUnavailable, Message: "no answer"}
		}
		for i := range facts.Nodes {
			if n := &facts.Nodes[i]; drain && n.Name == "worker-1" {
				n.DesiredDrain, n.Cordoned = "drain-rendered-worker", false
			}
		}
		status := updatestatus.Compute(updatestatus.Input{Facts: facts, Insights: state})
		return slices.ContainsFunc(uidsOf(section(status, "worker"), checks.InformerNodes), func(uid string) bool {
			return strings.HasPrefix(uid, "DrainNotCordoned/")
		})
	}
	for _, pass := range []struct {
		after               time.Duration
		drain, unread, want bool
	}{
		{0, false, false, false},
		{time.Second, true, false, false},
		{30 * time.Second, true, false, false},
		{31 * time.Second, true, false, true},
		{32 * time.Second, true, true, true},
		{33 * time.Second, true, false, true},
		{34 * time.Second, false, false, false},
		{35 * time.Second, true, false, false}, // another drain
	} {
		if got := shown(pass.after, pass.drain, pass.unread); got != pass.want {
			t.Errorf("after %s, shown: %t, want %t", pass.after, got, pass.want)
		}
	}
	state = insight.NewStore()
	if !shown(0, true, false) {
		t.Error("a command that looks once does not show a node that can be scheduled during its drain")
	}
}

// TestCompute_PastUpdates checks the record of a finished update.
func TestCompute_PastUpdates(t *testing.T) {
	t.Parallel()
	c := newCluster(4, 2)
	c.node("worker-2").Annotations["machineconfiguration.openshift.io/desiredConfig"] = rendered("worker", newRelease)
	c.node("worker-2").Annotations["machineconfiguration.openshift.io/state"] = "Working"
	status := updatestatus.Compute(updatestatus.Input{Facts: c.facts(t)})
	for i := range status.Assessment.Sections {
		if s := &status.Assessment.Sections[i]; s.Name == "worker" {
			s.NodeSeconds = []int32{600, 480}
			s.Parts = []updatev1beta1.SectionPart{{Name: "worker-2", Phase: "rebooting", StartedTime: metav1.NewTime(now.Add(-4 * time.Minute))}}
		}
		status.Assessment.Sections[i].Operators = nil
	}
	if len(status.PastUpdates) != 0 {
		t.Fatalf("during the update: %+v", status.PastUpdates)
	}
	for n := range 3 {
		status = updatestatus.Compute(updatestatus.Input{Facts: newCluster(4, 3).factsAt(t, now.Add(time.Duration(n+1)*5*time.Minute)), Previous: status})
		if n == 0 {
			status.Assessment.StartedTime = new(metav1.NewTime(now.Add(-time.Hour))) // as if the status had not been written
		}
	}
	want := []updatev1beta1.PastUpdate{{
		FromRelease: oldRelease, ToRelease: newRelease, StartedTime: metav1.NewTime(now.Add(-time.Hour)), CompletionTime: metav1.NewTime(now.Add(-30 * time.Minute)),
		Pools: []updatev1beta1.PoolDurations{{Name: "worker", Nodes: 3, LowerSeconds: 480, MedianSeconds: 540, UpperSeconds: 600, LongestSeconds: 600}},
	}}
	if diff := cmp.Diff(want, status.PastUpdates); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// large returns a status that is too large: three sections with the given number of insights each.
func large(insights int) updatev1beta1.UpdateStatusStatus {
	status := updatev1beta1.UpdateStatusStatus{ControlPlane: &updatev1beta1.ControlPlaneStatus{}, WorkerPools: make([]updatev1beta1.WorkerPoolStatus, 2), ObservedTime: new(metav1.NewTime(now))}
	levels := []updatev1beta1.Level{updatev1beta1.LevelStatus, updatev1beta1.LevelWarning, updatev1beta1.LevelError}
	for n, section := range []*updatev1beta1.Section{&status.ControlPlane.Section, &status.WorkerPools[0].Section, &status.WorkerPools[1].Section} {
		var all []updatev1beta1.Insight
		for i := range insights {
			of := about(fmt.Sprintf("%d-%d", n, i), updatev1beta1.ScopeWorkerPool, nil, updatev1beta1.ResourceReference{Kind: "Node", Name: fmt.Sprintf("node-%d-%d", n, i)})
			of.Impact.Level, of.Impact.Reason, of.Impact.Description = levels[i%3], "Rebooting", strings.Repeat("<", 100)
			all = append(all, insight.Clean("mco", of, now))
		}
		section.UpdateInformers = []updatev1beta1.InformerInsights{{Name: "mco", Insights: all}}
	}
	return status
}

func TestFit(t *testing.T) {
	t.Parallel()
	small := large(10)
	before := encode(t, small)
	if updatestatus.Fit(&small, nil, now); encode(t, small) != before {
		t.Error("a small status was changed")
	}
	for _, insights := range []int{400, 1000, 2000} {
		status := large(insights)
		updatestatus.Fit(&status, nil, now)
		if size := len(encode(t, status)); size > updatestatus.MaxBytes || size < updatestatus.MaxBytes/20 {
			t.Errorf("%d insights: %d bytes", insights, size)
		}
		notes := uidsOf(&status.ControlPlane.Section, updatev1beta1.StatusControllerInformer)
		if !slices.Contains(notes, "Truncated/status") {
			t.Errorf("%d insights: no insight about what is missing: %v", insights, notes)
		}
		for _, of := range status.ControlPlane.UpdateInformers {
			for _, i := range of.Insights {
				if strings.HasPrefix(i.UID, "rolled-up/") && (i.Impact.Description == "" || !strings.Contains(i.Impact.Description, i.Scope.Resources[0].Name)) {
					t.Errorf("%d insights: %s does not name its nodes: %q", insights, i.UID, i.Impact.Description)
				}
			}
		}
	}
}

// TestFitPlan checks that a plan shows no insight that stands for others, because accepting it would have no effect.
func TestFitPlan(t *testing.T) {
	t.Parallel()
	for _, insights := range []int{400, 1500} {
		from, reported := large(insights), map[string]bool{}
		for _, section := range from.Sections() {
			for _, uid := range uidsOf(section, "mco") {
				reported[uid] = true
			}
		}
		plan := updatev1beta1.UpdatePlanStatus{ControlPlane: from.ControlPlane, WorkerPools: from.WorkerPools}
		updatestatus.FitPlan(&plan, nil, now)
		if size := len(encode(t, plan)); size > updatestatus.MaxBytes || size < updatestatus.MaxBytes/2 {
			t.Errorf("%d insights: %d bytes", insights, size)
		}
		for _, section := range plan.Sections() {
			for _, of := range section.UpdateInformers {
				for _, i := range of.Insights {
					if !reported[i.UID] && i.Impact.Level != updatev1beta1.LevelInfo {
						t.Errorf("%d insights: the %s %s of %s needs acceptance, and was not reported", insights, i.Impact.Level, i.UID, of.Name)
					}
				}
			}
		}
	}
}

// TestFit_Quiet checks that a status that is too large does not change while nothing else does.
func TestFit_Quiet(t *testing.T) {
	t.Parallel()
	before, after := large(1000), large(1000)
	updatestatus.Fit(&before, nil, now)
	updatestatus.Fit(&after, before.ControlPlane, now.Add(time.Hour))
	if changed, err := updatestatus.HasChanged(before, after); err != nil || changed {
		t.Errorf("the status has changed (%v):\n%s", err, cmp.Diff(before.ControlPlane, after.ControlPlane))
	}
}

// TestFit_LowestLevelFirst checks that severe insights keep their descriptions longer than others.
func TestFit_LowestLevelFirst(t *testing.T) {
	t.Parallel()
	status := large(500)
	updatestatus.Fit(&status, nil, now)
	kept := map[updatev1beta1.Level]int{}
	for _, i := range status.WorkerPools[1].UpdateInformers[0].Insights {
		if i.Impact.Description != "" {
			kept[i.Impact.Level]++
		}
	}
	if kept[updatev1beta1.LevelStatus] != 0 || kept[updatev1beta1.LevelWarning] != 167 || kept[updatev1beta1.LevelError] != 166 {
		t.Errorf("descriptions: %v", kept)
	}
}

// TestCompute_Limits checks that insights beyond the limits are counted.
func TestCompute_Limits(t *testing.T) {
	t.Parallel()
	var many []updatev1beta1.Insight
	for i := range 100 {
		many = append(many, about(fmt.Sprintf("plane-%d", i), updatev1beta1.ScopeControlPlane, nil))
	}
	many[99].Impact.Level = updatev1beta1.LevelCritical
	c := newCluster(4, 0)
	for i := range 40 {
		pool := newPool(fmt.Sprintf("pool-%02d", i))
		c.pools = append(c.pools, pool)
	}
	severe := about("severe", updatev1beta1.ScopeWorkerPool, []updatev1beta1.ResourceReference{{Kind: "MachineConfigPool", Name: "pool-39"}})
	severe.Impact.Level = updatev1beta1.LevelError
	status := updatestatus.Compute(updatestatus.Input{Facts: c.facts(t), Insights: answered(append(many, severe)...)})
	uids := uidsOf(section(status, ""), "mco")
	if len(uids) != 64 || uids[0] != "plane-99" {
		t.Errorf("%d insights, first %s", len(uids), uids[0])
	}
	if len(status.WorkerPools) != 32 || section(status, "worker") == nil || section(status, "pool-39") == nil {
		t.Errorf("%d pools", len(status.WorkerPools))
	}
	var summaries []string
	for _, of := range status.ControlPlane.UpdateInformers {
		for _, i := range of.Insights {
			if i.Impact.Reason == updatev1beta1.ReasonTruncated {
				summaries = append(summaries, i.Impact.Summary)
			}
		}
	}
	if diff := cmp.Diff([]string{"36 insights of informer mco are not shown.", "9 pools beyond the limit of 32 are not shown."}, summaries); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCompute_LimitOfPools checks that pools with pending updates take precedence over pools with more severe
// insights, because the pools in the status determine whether an update is in progress.
func TestCompute_LimitOfPools(t *testing.T) {
	t.Parallel()
	c := newCluster(4, 2)
	var warnings []updatev1beta1.Insight
	for i := range 40 {
		name := fmt.Sprintf("pool-%02d", i)
		c.pools = append(c.pools, newPool(name))
		warnings = append(warnings, about(name, updatev1beta1.ScopeWorkerPool, []updatev1beta1.ResourceReference{{Kind: "MachineConfigPool", Name: name}}))
		warnings[i].Impact.Level = updatev1beta1.LevelError
	}
	status := updatestatus.Compute(updatestatus.Input{Facts: c.facts(t), Insights: answered(warnings...)})
	if len(status.WorkerPools) != 32 || section(status, "worker") == nil {
		t.Errorf("%d pools, worker: %v", len(status.WorkerPools), section(status, "worker"))
	}
	if status.Assessment.State == updatev1beta1.StateIdle {
		t.Error("the assessment is Idle, but an update is pending")
	}
}

// TestCompute_ManyInformers checks that the informers with the most severe insights are shown.
func TestCompute_ManyInformers(t *testing.T) {
	t.Parallel()
	state := insight.NewStore()
	for n := range 100 {
		of := about("a", updatev1beta1.ScopeControlPlane, nil)
		if n == 99 {
			of.Impact.Level = updatev1beta1.LevelError
		}
		state.Apply(insight.Answer{Informer: fmt.Sprintf("informer-%02d", n), Result: insight.Success, Insights: []updatev1beta1.Insight{of}, At: now}, now)
	}
	status := updatestatus.Compute(updatestatus.Input{Facts: newCluster(2, 0).facts(t), Insights: state})
	shown := 0
	for _, of := range status.ControlPlane.UpdateInformers {
		if strings.HasPrefix(of.Name, "informer-") {
			shown++
		}
	}
	if shown != 64 || uidsOf(section(status, ""), "informer-99") == nil || !slices.Contains(uidsOf(section(status, ""), updatev1beta1.StatusControllerInformer), "Truncated/informers") {
		t.Errorf("%d informers are shown; the controller reports %v", shown, uidsOf(section(status, ""), updatev1beta1.StatusControllerInformer))
	}
}

// TestCompute_ResolvedStepStaysResolved checks that a finished step is not restored from a status published
// while the step was in progress.
func TestCompute_ResolvedStepStaysResolved(t *testing.T) {
	t.Parallel()
	step := about("step", updatev1beta1.ScopeControlPlane, nil)
	step.Impact.Level = updatev1beta1.LevelStatus
	state := answered(step)
	c := newCluster(4, 1)
	during := updatestatus.Compute(updatestatus.Input{Facts: c.facts(t), Insights: state})
	if got := uidsOf(section(during, ""), "mco"); len(got) != 1 {
		t.Fatalf("during the step: %v", got)
	}
	later := now.Add(time.Minute)
	state.Apply(insight.Answer{Informer: "mco", Result: insight.Success, At: later, Live: true}, later)
	after := updatestatus.Compute(updatestatus.Input{Facts: c.factsAt(t, later), Insights: state, Previous: during})
	if got := uidsOf(section(after, ""), "mco"); got != nil {
		t.Errorf("after the step: %v", got)
	}
}
