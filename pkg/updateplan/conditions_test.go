// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateplan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/kstatus"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

// analyzed returns the plan for an update from 4.14.8 to 4.14.9, analyzed at noon.
func analyzed(insights ...updatev1beta1.Insight) *updatev1beta1.UpdatePlan {
	plan := &updatev1beta1.UpdatePlan{ObjectMeta: metav1.ObjectMeta{Name: "update-plan-4.14.9", Generation: 3}, Spec: updatev1beta1.UpdatePlanSpec{TargetRelease: "4.14.9"}}
	plan.Status = reported(insights...)
	plan.Status.FromRelease, plan.Status.LastAnalysisTime = "4.14.8", at(0)
	return plan
}

func TestSettle(t *testing.T) {
	t.Parallel()
	warning := insight("a", "1", "warning")
	for name, tc := range map[string]struct {
		plan     func(*updatev1beta1.UpdatePlan)
		analysis updateplan.Analysis
		complete string
		start    string // reason of the condition Startable
		stale    string
	}{
		"nothing found": {complete: "AnalysisComplete", start: "AllInsightsAccepted", stale: "Current"},
		"unaccepted":    {plan: func(p *updatev1beta1.UpdatePlan) { p.Status = withStatus(p, warning) }, complete: "AnalysisComplete", start: "UnacceptedInsights", stale: "Current"},
		"accepted": {plan: func(p *updatev1beta1.UpdatePlan) {
			p.Status = withStatus(p, warning)
			p.Spec.AcceptedInsights = []updatev1beta1.AcceptedInsight{entry("a", "", true)}
		}, complete: "AnalysisComplete", start: "AllInsightsAccepted", stale: "Current"},
		"accepted too early": {plan: func(p *updatev1beta1.UpdatePlan) {
			p.Status = withStatus(p, warning)
			p.Spec.AcceptedInsights = []updatev1beta1.AcceptedInsight{{UpdateInformer: "i", UID: "a", Accepted: true, AcceptedTime: at(-time.Hour)}}
		}, complete: "AnalysisComplete", start: "UnacceptedInsights", stale: "InsightsChanged"},
		"accepted for another release": {plan: func(p *updatev1beta1.UpdatePlan) {
			p.Status = withStatus(p, warning)
			p.Spec.AcceptedInsights = []updatev1beta1.AcceptedInsight{entry("a", "", true)}
		}, analysis: updateplan.Analysis{FromReleaseChanged: true}, complete: "AnalysisComplete", start: "UnacceptedInsights", stale: "FromReleaseChanged"},
		"more severe than reviewed": {plan: func(p *updatev1beta1.UpdatePlan) {
			p.Status = withStatus(p, insight("a", "1", "error"))
			p.Spec.AcceptedInsights = []updatev1beta1.AcceptedInsight{entry("a", "", true)}
			p.Annotations = map[string]string{updatev1beta1.ReviewedAnnotation: "1=warning"}
		}, complete: "AnalysisComplete", start: "InsightsChanged", stale: "Current"},
		"less severe than reviewed, and a new one that is accepted": {plan: func(p *updatev1beta1.UpdatePlan) {
			p.Status = withStatus(p, warning, insight("b", "2", "error"))
			p.Spec.AcceptedInsights = []updatev1beta1.AcceptedInsight{entry("a", "", true), entry("b", "", true)}
			p.Annotations = map[string]string{updatev1beta1.ReviewedAnnotation: "1=error"}
		}, complete: "AnalysisComplete", start: "AllInsightsAccepted", stale: "Current"},
		"informer waits":     {analysis: updateplan.Analysis{Waiting: []string{"x"}}, complete: "WaitingForInformers", start: "WaitingForInformers", stale: "Current"},
		"never analyzed":     {plan: func(p *updatev1beta1.UpdatePlan) { p.Status.LastAnalysisTime = nil }, complete: "WaitingForInformers", start: "WaitingForInformers", stale: "Current"},
		"informer missing":   {analysis: updateplan.Analysis{Missing: []string{"x"}}, complete: "WaitingForInformers", start: "InformerMissing", stale: "Current"},
		"an hour later":      {analysis: updateplan.Analysis{Now: noon.Add(time.Hour)}, complete: "AnalysisComplete", start: "AnalysisTooOld", stale: "Current"},
		"in the future":      {analysis: updateplan.Analysis{Now: noon.Add(-2 * time.Minute)}, complete: "AnalysisComplete", start: "AnalysisTooOld", stale: "Current"},
		"no update":          {analysis: updateplan.Analysis{NotAnUpdate: "it is installed"}, complete: "AnalysisComplete", start: "NotAnUpdate", stale: "Current"},
		"other release":      {analysis: updateplan.Analysis{Current: "4.14.7"}, complete: "AnalysisComplete", start: "FromReleaseChanged", stale: "Current"},
		"unknown release":    {plan: func(p *updatev1beta1.UpdatePlan) { p.Status.FromRelease = "" }, analysis: updateplan.Analysis{Current: "?"}, complete: "AnalysisComplete", start: "FromReleaseChanged", stale: "Current"},
		"malformed release":  {plan: func(p *updatev1beta1.UpdatePlan) { p.Spec.TargetRelease = "latest" }, complete: "InvalidPlan", start: "InvalidPlan", stale: "Current"},
		"name of another":    {plan: func(p *updatev1beta1.UpdatePlan) { p.Name = "update-plan-4.14.10" }, complete: "InvalidPlan", start: "InvalidPlan", stale: "Current"},
		"seconds before end": {analysis: updateplan.Analysis{Now: noon.Add(time.Hour - time.Second)}, complete: "AnalysisComplete", start: "AllInsightsAccepted", stale: "Current"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := analyzed()
			if tc.plan != nil {
				tc.plan(plan)
			}
			if tc.analysis.Now.IsZero() {
				tc.analysis.Now = noon.Add(time.Minute)
			}
			switch tc.analysis.Current {
			case "":
				tc.analysis.Current = "4.14.8"
			case "?":
				tc.analysis.Current = ""
			}
			updateplan.Settle(plan, updateplan.Insights(&plan.Status), tc.analysis)
			var got []string
			for _, name := range []string{updatev1beta1.ConditionComplete, updatev1beta1.ConditionStartable, updatev1beta1.ConditionAcceptanceStale} {
				got = append(got, meta.FindStatusCondition(plan.Status.Conditions, name).Reason)
			}
			if diff := cmp.Diff([]string{tc.complete, tc.start, tc.stale}, got); diff != "" {
				t.Errorf("reasons (-want +got):\n%s\n%+v", diff, plan.Status.Conditions)
			}
			if message := plan.Status.Conditions[2].Message; tc.stale == "InsightsChanged" && message != "accept again: i a (accepted before it was observed)" {
				t.Errorf("message %q", message)
			}
			for i, holds := range []bool{tc.complete == "AnalysisComplete", tc.start == "AllInsightsAccepted", tc.stale != "Current"} {
				if c := plan.Status.Conditions[i]; (c.Status == metav1.ConditionTrue) != holds {
					t.Errorf("%s is %s with reason %s", c.Type, c.Status, c.Reason)
				}
			}
			want := map[string]string{"AnalysisComplete": "Current", "InvalidPlan": "Failed", "WaitingForInformers": "InProgress"}[tc.complete]
			plan.Generation = plan.Status.ObservedGeneration
			if health, err := kstatus.Of(plan); err != nil || health.Status != want {
				t.Errorf("%+v, %v, want %s", health, err, want)
			}
			if startable := meta.IsStatusConditionTrue(plan.Status.Conditions, updatev1beta1.ConditionStartable); startable != (tc.start == "AllInsightsAccepted") || startable != updateplan.IsStartable(plan, tc.analysis.Now) {
				t.Errorf("startable is %t", startable)
			}
		})
	}
}

func withStatus(p *updatev1beta1.UpdatePlan, insights ...updatev1beta1.Insight) updatev1beta1.UpdatePlanStatus {
	status := reported(insights...)
	status.FromRelease, status.LastAnalysisTime = p.Status.FromRelease, p.Status.LastAnalysisTime
	return status
}

// TestSettle_undated_acceptances follows a plan after the cluster has changed its release. Undated
// acceptances no longer count until the spec is changed.
func TestSettle_undated_acceptances(t *testing.T) {
	t.Parallel()
	plan := analyzed(insight("a", "1", "warning"))
	plan.Spec.AcceptedInsights = []updatev1beta1.AcceptedInsight{entry("a", "", true)}
	settle := func(a updateplan.Analysis, want bool) {
		t.Helper()
		a.Now, a.Current = noon.Add(time.Minute), "4.14.8"
		updateplan.Settle(plan, updateplan.Insights(&plan.Status), a)
		if got := updateplan.IsStartable(plan, a.Now); got != want {
			t.Errorf("startable is %t: %+v", got, plan.Status.Conditions)
		}
	}
	settle(updateplan.Analysis{}, true)
	settle(updateplan.Analysis{FromReleaseChanged: true}, false)
	settle(updateplan.Analysis{}, false)
	settle(updateplan.Analysis{}, false)
	plan.Generation++
	settle(updateplan.Analysis{}, true)
	settle(updateplan.Analysis{}, true)
}

func TestIsStartable_needs_the_current_spec(t *testing.T) {
	t.Parallel()
	plan := analyzed()
	updateplan.Settle(plan, updateplan.Insights(&plan.Status), updateplan.Analysis{Now: noon, Current: "4.14.8"})
	if !updateplan.IsStartable(plan, noon) {
		t.Fatal("it is not startable")
	}
	plan.Generation++
	if updateplan.IsStartable(plan, noon) {
		t.Error("it is startable although an acceptance may have been withdrawn")
	}
}

func TestStartableReleases(t *testing.T) {
	t.Parallel()
	plan := func(version string, change func(*updatev1beta1.UpdatePlan)) updatev1beta1.UpdatePlan {
		p := analyzed()
		p.Spec.TargetRelease, p.Name = version, updateplan.Name(version)
		updateplan.Settle(p, updateplan.Insights(&p.Status), updateplan.Analysis{Now: noon, Current: "4.14.8"})
		if change != nil {
			change(p)
		}
		return *p
	}
	plans := []updatev1beta1.UpdatePlan{
		plan("4.14.9", nil), plan("4.14.10", nil),
		plan("4.14.11", func(p *updatev1beta1.UpdatePlan) { p.Status.FromRelease = "4.14.7" }),
		plan("4.14.12", func(p *updatev1beta1.UpdatePlan) { p.DeletionTimestamp = at(0) }),
		plan("4.14.13", func(p *updatev1beta1.UpdatePlan) { p.Generation++ }),
		plan("4.14.14", func(p *updatev1beta1.UpdatePlan) { p.Status.LastAnalysisTime = at(-time.Hour) }),
		plan("4.14.15", func(p *updatev1beta1.UpdatePlan) { p.Name = "update-plan-4.14.9" }),
	}
	want := []updatev1beta1.StartableRelease{
		{Version: "4.14.10", FromRelease: "4.14.8", ExpirationTime: *at(time.Hour)}, {Version: "4.14.9", FromRelease: "4.14.8", ExpirationTime: *at(time.Hour)},
	}
	if diff := cmp.Diff(want, updateplan.StartableReleases(plans, "4.14.8", noon)); diff != "" {
		t.Errorf("releases (-want +got):\n%s", diff)
	}
	if got := updateplan.StartableReleases(plans, "", noon); len(got) != 0 {
		t.Errorf("without the release of the cluster, there are %v", got)
	}
	if got := updateplan.StartableReleases(plans, "4.14.8", noon.Add(time.Hour)); len(got) != 0 {
		t.Errorf("an hour later, there are %v", got)
	}
	if got := updateplan.StartableReleases(plans, "4.14.8", noon.Add(-24*time.Hour)); len(got) != 0 {
		t.Errorf("after the clock was set back, there are %v", got)
	}
}

func TestName(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"4.14.4":           "update-plan-4.14.4",
		"4.15.0-rc.1":      "update-plan-4.15.0-rc.1",
		"4.15.0+Build.7":   "update-plan-4.15.0-build.7-44ea92ee",
		"4.15.0-build.7":   "update-plan-4.15.0-build.7",
		"4.15.0-RC.1":      "update-plan-4.15.0-rc.1-fa339beb",
		"4.15.0-0.nightly": "update-plan-4.15.0-0.nightly",
	} {
		if got := updateplan.Name(target); got != want {
			t.Errorf("%s: got %s, want %s", target, got, want)
		}
	}
	if got := updateplan.Name("4.15.0-" + strings.Repeat("x", 300)); len(got) > 253 {
		t.Errorf("a name of %d bytes", len(got))
	}
}

// A dormant plan is judged by the insights in its status. Insights that the status does not show still count.
func TestSettle_counts_what_a_status_does_not_show(t *testing.T) {
	t.Parallel()
	published := updatev1beta1.InsightCounts{Total: 80, Accepted: 70, Unaccepted: 10}
	accept := func(plan *updatev1beta1.UpdatePlan) {
		plan.Generation++
		plan.Spec.AcceptedInsights = []updatev1beta1.AcceptedInsight{entry("a", "", true)}
	}
	for name, tc := range map[string]struct {
		change    func(*updatev1beta1.UpdatePlan)
		published bool
		want      updatev1beta1.InsightCounts
	}{
		"dormant":                          {published: true, want: published},
		"dormant, and the spec changed":    {change: accept, published: true, want: updatev1beta1.InsightCounts{Total: 80, Accepted: 1, Unaccepted: 79}},
		"dormant, and fewer were counted":  {change: func(plan *updatev1beta1.UpdatePlan) { plan.Status.Counts = &updatev1beta1.InsightCounts{} }, published: true, want: updatev1beta1.InsightCounts{Total: 2, Unaccepted: 2}},
		"dormant, and nothing was counted": {change: func(plan *updatev1beta1.UpdatePlan) { plan.Status.Counts = nil }, published: true, want: updatev1beta1.InsightCounts{Total: 2, Unaccepted: 2}},
		"analyzed":                         {change: accept, want: updatev1beta1.InsightCounts{Total: 2, Accepted: 1, Unaccepted: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := analyzed(insight("a", "1", "warning"), insight("b", "2", "warning"))
			plan.Status.Counts, plan.Status.ObservedGeneration = new(published), plan.Generation
			if tc.change != nil {
				tc.change(plan)
			}
			for range 2 { // the second pass changes nothing
				updateplan.Settle(plan, updateplan.Insights(&plan.Status), updateplan.Analysis{Now: noon, Current: "4.14.8", Published: tc.published})
				if diff := cmp.Diff(&tc.want, plan.Status.Counts); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for name, tc := range map[string]struct {
		keep   bool
		age    updateplan.Age
		reason updateplan.PruneReason
		next   time.Duration // after noon, when the plan was requested; 0 if it is never pruned
	}{
		"new":                     {age: updateplan.Age{Now: noon}, next: 30 * day},
		"installed":               {age: updateplan.Age{Now: noon, Installed: true}, reason: "Installed"},
		"installed, kept":         {keep: true, age: updateplan.Age{Now: noon, Installed: true}},
		"under way":               {age: updateplan.Age{Now: noon.Add(99 * day), UnderWay: true}},
		"not requested":           {age: updateplan.Age{Now: noon.Add(30 * day)}, reason: "NotRequested"},
		"not requested for long":  {age: updateplan.Age{Now: noon.Add(30*day - time.Second)}, next: 30 * day},
		"not offered":             {age: updateplan.Age{Now: noon.Add(8 * day), NotOfferedSince: noon.Add(day)}, reason: "NotOffered"},
		"not offered for long":    {age: updateplan.Age{Now: noon.Add(2 * day), NotOfferedSince: noon.Add(day)}, next: 8 * day},
		"not offered lately":      {age: updateplan.Age{Now: noon.Add(29 * day), NotOfferedSince: noon.Add(28 * day)}, next: 30 * day},
		"not requested, kept":     {keep: true, age: updateplan.Age{Now: noon.Add(99 * day)}},
		"not offered, under way":  {age: updateplan.Age{Now: noon.Add(99 * day), NotOfferedSince: noon, UnderWay: true}},
		"installed and under way": {age: updateplan.Age{Now: noon, Installed: true, UnderWay: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := &updatev1beta1.UpdatePlan{Status: updatev1beta1.UpdatePlanStatus{LastRequestedTime: at(0)}}
			if tc.keep {
				plan.Annotations = map[string]string{updatev1beta1.KeepAnnotation: ""}
			}
			reason, next := updateplan.Prune(plan, tc.age)
			var want time.Time
			if tc.next != 0 {
				want = noon.Add(tc.next)
			}
			if reason != tc.reason || !next.Equal(want) {
				t.Errorf("got %q and %s, want %q and %s", reason, next, tc.reason, want)
			}
		})
	}
}

func TestSurplus(t *testing.T) {
	t.Parallel()
	var plans []updatev1beta1.UpdatePlan
	for i := range 24 {
		plan := updatev1beta1.UpdatePlan{ObjectMeta: metav1.ObjectMeta{Name: string(rune('a' + i)), CreationTimestamp: *at(time.Duration(i) * time.Minute)}}
		switch i {
		case 0:
			plan.Annotations = map[string]string{updatev1beta1.KeepAnnotation: ""}
		case 3: // requested again
			plan.Status.LastRequestedTime = at(time.Hour)
		}
		plans = append(plans, plan)
	}
	underWay := func(p *updatev1beta1.UpdatePlan) bool { return p.Name == "b" }
	if diff := cmp.Diff([]string{"e", "c"}, updateplan.Surplus(plans, underWay)); diff != "" {
		t.Errorf("surplus (-want +got):\n%s", diff)
	}
}

// A plan is analyzed when its latest requested analysis is complete.
func TestIsAnalyzed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*updatev1beta1.UpdatePlan)
		want   bool
	}{
		"complete": {func(*updatev1beta1.UpdatePlan) {}, true},
		"another one is requested": {func(p *updatev1beta1.UpdatePlan) {
			p.Annotations = map[string]string{updatev1beta1.RefreshAnnotation: "2"}
		}, false},
		"an informer waits": {func(p *updatev1beta1.UpdatePlan) { p.Status.Conditions[0].Status = metav1.ConditionFalse }, false},
		"never begun":       {func(p *updatev1beta1.UpdatePlan) { p.Status.FromRelease = "" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := analyzed()
			updateplan.Settle(plan, nil, updateplan.Analysis{Now: noon.Add(time.Minute), Current: "4.14.8"})
			tc.change(plan)
			if got := updateplan.IsAnalyzed(plan); got != tc.want {
				t.Errorf("analyzed is %t: %+v", got, plan.Status)
			}
		})
	}
}
