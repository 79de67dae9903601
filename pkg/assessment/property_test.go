// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/assessment"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
)

// maxJSON limits the size of an assessment. The status may use 900 KiB.
const maxJSON = 512 << 10

var (
	someKinds     = []string{"PodDisruptionBudget", "Pod", "Node", "MachineConfigPool", "ClusterOperator", "ClusterVersion", "Disk", ""}
	someInformers = []string{checks.InformerNodes, checks.InformerControlPlane, checks.InformerAlerts, updatev1beta1.StatusControllerInformer, "stranger", "other", ""}
	someLevels    = []updatev1beta1.Level{updatev1beta1.LevelStatus, updatev1beta1.LevelInfo, updatev1beta1.LevelWarning, updatev1beta1.LevelError, updatev1beta1.LevelCritical, "odd", ""}
	someReasons   = []string{"NodeNotReady", "PodHeldByBudget", "NodeDraining", "OperatorDegraded", "AlertFiring", "Odd", "Odder", ""}
)

func drawTime(t *rapid.T, name string) metav1.Time {
	if rapid.IntRange(0, 5).Draw(t, name+" absent") == 0 {
		return metav1.Time{}
	}
	return at(now.Add(time.Duration(rapid.IntRange(-20000, 300).Draw(t, name)) * time.Minute))
}

func drawRef(t *rapid.T) updatev1beta1.ResourceReference {
	return updatev1beta1.ResourceReference{
		APIVersion: rapid.SampledFrom([]string{"", "v1", "policy/v1", "\x1b[31m/v1"}).Draw(t, "apiVersion"),
		Kind:       rapid.SampledFrom(someKinds).Draw(t, "kind"),
		Namespace:  rapid.SampledFrom([]string{"", "shop", "bank"}).Draw(t, "namespace"),
		Name:       rapid.SampledFrom([]string{"a", "b", "worker-1", "worker-2", "authentication", "version", "x y\u202e", ""}).Draw(t, "name"),
	}
}

func drawInsight(t *rapid.T) updatev1beta1.Insight {
	return updatev1beta1.Insight{
		UID:  fmt.Sprint("uid-", rapid.IntRange(0, 30).Draw(t, "uid")),
		UUID: fmt.Sprint("uuid-", rapid.IntRange(0, 30).Draw(t, "uuid")), AcquisitionTime: drawTime(t, "acquired"), FirstObservedTime: drawTime(t, "first"),
		Scope: updatev1beta1.InsightScope{Resources: rapid.SliceOfN(rapid.Custom(drawRef), 0, 4).Draw(t, "resources")},
		Impact: updatev1beta1.InsightImpact{
			Level: rapid.SampledFrom(someLevels).Draw(t, "level"), Reason: rapid.SampledFrom(someReasons).Draw(t, "reason"),
			Summary: rapid.SampledFrom([]string{"", "a cable\nis loose", "\xff\xfe"}).Draw(t, "summary"),
		},
		Remediation: updatev1beta1.InsightRemediation{EstimatedFinish: rapid.SampledFrom([]string{"", "15m", "-1h", "9999999h", "2026-11-22T14:00:00Z", "soon"}).Draw(t, "finish")},
		CausedBy:    rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string { return fmt.Sprint("uuid-", rapid.IntRange(0, 30).Draw(t, "cause")) }), 0, 3).Draw(t, "causedBy"),
	}
}

// drawCluster draws a cluster that may contradict itself and may have hostile insights.
func drawCluster(t *rapid.T) *fixture {
	bases := clusters()
	f := bases[rapid.SampledFrom(slices.Sorted(maps.Keys(bases))).Draw(t, "cluster")]()
	sections := []*updatev1beta1.Section{f.plane(), f.pool()}
	for range rapid.IntRange(0, 12).Draw(t, "insights") {
		f.insight(rapid.SampledFrom(sections).Draw(t, "section"), rapid.SampledFrom(someInformers).Draw(t, "informer"), drawInsight(t))
	}
	if rapid.Bool().Draw(t, "odd conditions") {
		s := rapid.SampledFrom(sections).Draw(t, "of")
		s.Conditions = nil
		for _, name := range []string{updatev1beta1.ConditionUpdatePending, updatev1beta1.ConditionUpdateActive} {
			s.Conditions = append(s.Conditions, metav1.Condition{
				Type: name, Status: rapid.SampledFrom([]metav1.ConditionStatus{"True", "False", "Unknown", ""}).Draw(t, "status"),
				Reason: rapid.SampledFrom([]string{updatev1beta1.ReasonPaused, updatev1beta1.ReasonAwaitingWindow, ""}).Draw(t, "why"),
			})
		}
	}
	if rapid.Bool().Draw(t, "previous") {
		f.in.Previous = drawPrevious(t)
	}
	f.in.Resumes = map[updatev1beta1.ResourceReference]time.Time{{}: drawTime(t, "resumes").Time}
	f.status.PastUpdates = append(f.status.PastUpdates, updatev1beta1.PastUpdate{
		StartedTime: drawTime(t, "past start"), CompletionTime: drawTime(t, "past end"),
		Operators: []updatev1beta1.OperatorOffset{{Name: "dns", Seconds: rapid.Int32().Draw(t, "offset")}},
		Pools:     []updatev1beta1.PoolDurations{{Name: worker, Nodes: rapid.Int32().Draw(t, "nodes"), LowerSeconds: rapid.Int32().Draw(t, "lower"), UpperSeconds: rapid.Int32().Draw(t, "upper"), LongestSeconds: rapid.Int32().Draw(t, "longest")}},
	})
	return f
}

func drawPrevious(t *rapid.T) *updatev1beta1.Assessment {
	odd := func(name string) *metav1.Time { return new(drawTime(t, name)) }
	return &updatev1beta1.Assessment{
		State:       rapid.SampledFrom([]updatev1beta1.AssessmentState{progressing, stuck, unknown, waiting, "Odd", ""}).Draw(t, "state"),
		FromRelease: "4.20.5", Release: rapid.SampledFrom([]string{"4.20.6", "4.21.2", ""}).Draw(t, "release"), StartedTime: odd("started"), Since: drawTime(t, "since"),
		Estimate: &updatev1beta1.Estimate{From: updatev1beta1.EstimateFromNow, Earliest: odd("earliest"), Latest: odd("latest")},
		Sections: []updatev1beta1.SectionAssessment{
			{Name: "control plane", Total: rapid.Int32().Draw(t, "total"), LastChangeTime: odd("change")},
			{Name: worker, LastChangeTime: odd("change"), Parts: []updatev1beta1.SectionPart{{Name: "worker-2", Phase: "draining", StartedTime: drawTime(t, "part")}}, NodeSeconds: []int32{-1, 5, 1 << 30}},
		},
	}
}

// clusters returns the clusters of the other tests.
func clusters() map[string]func() *fixture {
	all := map[string]func() *fixture{
		"operator": func() *fixture { return operatorUnchanged("dns", 10*time.Minute) }, "operator stuck": func() *fixture { return operatorUnchanged("dns", time.Hour) },
		"drain": func() *fixture { return nodeUnchanged("NodeDraining", 5*time.Minute) }, "pool stuck": func() *fixture { return poolUnchanged(time.Hour) },
		"forced": func() *fixture {
			return nodeUnchanged("NodeDraining", 70*time.Minute).forced(90*time.Minute, held(unchanged))
		},
		"paused": func() *fixture { return pausedCluster(updatev1beta1.ReasonPaused) }, "window": func() *fixture { return pausedCluster(updatev1beta1.ReasonAwaitingWindow) },
	}
	for name, screen := range screens() {
		all[name] = screen.cluster
	}
	return all
}

func encode(t interface{ Fatal(...any) }, a updatev1beta1.Assessment) []byte {
	encoded, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// TestHundred_runs_are_equal computes each assessment a hundred times.
func TestHundred_runs_are_equal(t *testing.T) {
	t.Parallel()
	for name, cluster := range clusters() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := cluster()
			for _, object := range []string{"a", "b", "c", "d"} {
				f.insight(f.pool(), "stranger", newInsight(updatev1beta1.LevelError, "Odd", object, before(time.Minute), ref("Pod", "shop", object), ref("Node", "", "worker-1")))
				f.insight(f.pool(), checks.InformerNodes, newInsight(updatev1beta1.LevelError, "NodeDegraded", object, before(time.Minute), ref("Node", "", object)))
			}
			status, in := f.build()
			want := encode(t, assessment.Assess(status, in))
			for range 100 {
				if got := encode(t, assessment.Assess(status, in)); !bytes.Equal(want, got) {
					t.Fatalf("two runs differ:\n%s\n%s", want, got)
				}
			}
		})
	}
}

// TestProperties checks properties that hold for every cluster, even a contradictory one.
func TestProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := drawCluster(t)
		got := f.assess()
		checkBounded(t, got)
		checkNoObjectLost(t, f, got)
		checkStrangersImproveNothing(t, f, got)
		checkMissingImprovesNothing(t, f)
		if e := got.Estimate; e != nil && e.Latest != nil && e.Earliest != nil && e.Earliest.After(e.Latest.Time) {
			t.Fatalf("earliest %s after latest %s", e.Earliest, e.Latest)
		}
		f.in.Previous = &got
		f.now = f.now.Add(time.Minute)
		checkBounded(t, f.assess())
	})
}

func checkBounded(t *rapid.T, a updatev1beta1.Assessment) {
	if n := len(encode(t, a)); n > maxJSON {
		t.Fatalf("%d bytes", n)
	}
	if a.State == "" || len(a.Causes) > 256 || len(a.Summary) > 1024 || a.Remedy == nil || a.Remedy.Text == "" {
		t.Fatalf("invalid: %+v", a)
	}
	for _, c := range a.Causes {
		if len(c.Chain) == 0 || len(c.Chain) > 64 || c.Remedy == nil || c.Remedy.Text == "" {
			t.Fatalf("invalid cause: %+v", c)
		}
	}
}

type objectName struct{ kind, namespace, name string }

// checkNoObjectLost checks that the causes contain all objects of insights of at least level warning, in the
// sections that need an explanation.
func checkNoObjectLost(t *rapid.T, f *fixture, a updatev1beta1.Assessment) {
	listed := map[objectName]bool{}
	for _, c := range a.Causes {
		for _, l := range c.Chain {
			for _, g := range l.Objects {
				for _, name := range g.Names {
					listed[objectName{g.Kind, g.Namespace, name}] = true
				}
			}
		}
	}
	for section, s := range map[string]*updatev1beta1.Section{"control plane": f.plane(), worker: f.pool()} {
		if !slices.ContainsFunc(a.Sections, func(s updatev1beta1.SectionAssessment) bool { return s.Name == section && s.State == stuck }) {
			continue
		}
		for _, informer := range s.UpdateInformers {
			for _, i := range informer.Insights {
				if slices.Index([]updatev1beta1.Level{updatev1beta1.LevelStatus, updatev1beta1.LevelInfo}, i.Impact.Level) >= 0 {
					continue
				}
				for _, r := range i.Scope.Resources {
					isNode := informer.Name == checks.InformerNodes && section == "control plane" && slices.ContainsFunc(i.Scope.Resources, func(r updatev1beta1.ResourceReference) bool {
						return r.Kind == "Node" || r.Kind == "MachineConfigPool"
					})
					o := objectName{r.Kind, r.Namespace, clean(r.Name)}
					if !listed[o] && !isNode { // nodes of the control plane have their own section
						t.Fatalf("%+v of section %s is lost: %+v", o, section, a.Causes)
					}
				}
			}
		}
	}
}

func clean(name string) string {
	if name == "x y\u202e" {
		return "x y"
	}
	return name
}

// good reports whether a state is good news.
func good(s updatev1beta1.AssessmentState) bool {
	return s == updatev1beta1.StateIdle || s == progressing
}

// checkStrangersImproveNothing removes the reports of third parties.
func checkStrangersImproveNothing(t *rapid.T, f *fixture, with updatev1beta1.Assessment) {
	status, in := f.build()
	stripped := *status.DeepCopy()
	sections := []*updatev1beta1.Section{&stripped.ControlPlane.Section, &stripped.WorkerPools[0].Section}
	for _, s := range sections {
		s.UpdateInformers = slices.DeleteFunc(s.UpdateInformers, func(i updatev1beta1.InformerInsights) bool { return i.Name == "stranger" || i.Name == "other" })
	}
	without := assessment.Assess(stripped, in)
	if without.State != with.State && with.State != stuck {
		t.Fatalf("%s with third parties, %s without", with.State, without.State)
	}
	if own := ownChains(without); fmt.Sprint(own) != fmt.Sprint(ownChains(with)) && without.State == with.State && without.State == stuck {
		stuckBefore := sectionsOf(without)
		if fmt.Sprint(stuckBefore) == fmt.Sprint(sectionsOf(with)) {
			t.Fatalf("third parties change our causes:\n%v\n%v", own, ownChains(with))
		}
	}
}

func sectionsOf(a updatev1beta1.Assessment) (states []updatev1beta1.AssessmentState) {
	for _, s := range a.Sections {
		states = append(states, s.State)
	}
	return states
}

// ownChains returns the chains of the built-in informers and the assessment.
func ownChains(a updatev1beta1.Assessment) (own []string) {
	for _, c := range a.Causes {
		if c.UpdateInformer != "stranger" && c.UpdateInformer != "other" {
			own = append(own, fmt.Sprint(c.Reason, c.Section, c.Chain))
		}
	}
	slices.Sort(own)
	return own
}

// checkMissingImprovesNothing removes each source.
func checkMissingImprovesNothing(t *rapid.T, f *fixture) {
	status, in := f.build()
	before := assessment.Assess(status, in).State
	for _, source := range append(checks.Required(), checks.SourceConfigs, checks.SourcePDBs, checks.SourcePods, checks.SourceAlerts, checks.SourceUpgradeJobs) {
		less := in
		less.Facts.Missing = maps.Clone(in.Facts.Missing)
		if less.Facts.Missing == nil {
			less.Facts.Missing = map[checks.FactSource]checks.Missing{}
		}
		less.Facts.Missing[source] = checks.Missing{Reason: checks.MissingUnavailable, Message: "no answer"}
		after := assessment.Assess(status, less).State
		if good(after) && (slices.Contains(checks.Required(), source) || !good(before)) {
			t.Fatalf("%s becomes %s without %s", before, after, source)
		}
	}
}
