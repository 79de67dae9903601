// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateplan_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(offset time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(offset)} }

// insight returns an insight first observed at noon.
func insight(uid, uuid string, level updatev1beta1.Level) updatev1beta1.Insight {
	return updatev1beta1.Insight{UID: uid, UUID: uuid, Impact: updatev1beta1.InsightImpact{Level: level}, FirstObservedTime: *at(0)}
}

// reported returns a status in which one informer reports the insights.
func reported(insights ...updatev1beta1.Insight) updatev1beta1.UpdatePlanStatus {
	return updatev1beta1.UpdatePlanStatus{ControlPlane: &updatev1beta1.ControlPlaneStatus{Section: updatev1beta1.Section{
		UpdateInformers: []updatev1beta1.InformerInsights{{Name: "i", Insights: insights}},
	}}}
}

func entry(uid, uuid string, accepted bool) updatev1beta1.AcceptedInsight {
	return updatev1beta1.AcceptedInsight{UpdateInformer: "i", UID: uid, UUID: uuid, Accepted: accepted}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	const warning, critical = updatev1beta1.LevelWarning, updatev1beta1.LevelCritical
	dated := func(offset time.Duration) updatev1beta1.AcceptedInsight {
		e := entry("a", "", true)
		e.AcceptedTime = at(offset)
		return e
	}
	reasoned := entry("a", "1", true)
	reasoned.Reason = "because"
	reasonOnly := entry("a", "", true)
	reasonOnly.Reason = "because"
	other := entry("a", "1", true)
	other.UpdateInformer = "j"
	for name, tc := range map[string]struct {
		insights []updatev1beta1.Insight
		entries  []updatev1beta1.AcceptedInsight
		undated  bool
		want     []updateplan.AcceptanceVerdict
	}{
		"nothing accepted":        {[]updatev1beta1.Insight{insight("a", "1", warning)}, nil, false, []updateplan.AcceptanceVerdict{"Unaccepted"}},
		"no acceptance needed":    {[]updatev1beta1.Insight{insight("a", "1", "info"), insight("b", "2", "status")}, nil, false, nil},
		"unknown level needs it":  {[]updatev1beta1.Insight{insight("a", "1", "fatal"), insight("b", "2", "")}, nil, false, []updateplan.AcceptanceVerdict{"Unaccepted", "Unaccepted"}},
		"by uid":                  {[]updatev1beta1.Insight{insight("a", "1", warning)}, []updatev1beta1.AcceptedInsight{entry("a", "", true)}, false, []updateplan.AcceptanceVerdict{"Accepted"}},
		"by uuid":                 {[]updatev1beta1.Insight{insight("a", "1", warning)}, []updatev1beta1.AcceptedInsight{entry("a", "1", true)}, false, []updateplan.AcceptanceVerdict{"Accepted"}},
		"by another uuid":         {[]updatev1beta1.Insight{insight("a", "1", warning)}, []updatev1beta1.AcceptedInsight{entry("a", "2", true)}, false, []updateplan.AcceptanceVerdict{"Unaccepted"}},
		"by uuid and another uid": {[]updatev1beta1.Insight{insight("a", "1", warning)}, []updatev1beta1.AcceptedInsight{entry("b", "1", true)}, false, []updateplan.AcceptanceVerdict{"Unaccepted"}},
		"of another informer":     {[]updatev1beta1.Insight{insight("a", "1", warning)}, []updatev1beta1.AcceptedInsight{other}, false, []updateplan.AcceptanceVerdict{"Unaccepted"}},
		"ambiguous accepts neither": {
			[]updatev1beta1.Insight{insight("a", "1", warning), insight("a", "2", warning)},
			[]updatev1beta1.AcceptedInsight{entry("a", "", true)},
			false,
			[]updateplan.AcceptanceVerdict{"Ambiguous", "Ambiguous"},
		},
		"ambiguous with one that needs none": {
			[]updatev1beta1.Insight{insight("a", "1", warning), insight("a", "2", "info")}, []updatev1beta1.AcceptedInsight{entry("a", "", true)}, false, []updateplan.AcceptanceVerdict{"Ambiguous"},
		},
		"ambiguous, one by uuid": {
			[]updatev1beta1.Insight{insight("a", "1", warning), insight("a", "2", warning)},
			[]updatev1beta1.AcceptedInsight{entry("a", "", true), entry("a", "2", true)},
			false,
			[]updateplan.AcceptanceVerdict{"Ambiguous", "Accepted"},
		},
		"one insight in two places": {
			[]updatev1beta1.Insight{insight("a", "1", warning), insight("a", "1", warning)}, []updatev1beta1.AcceptedInsight{entry("a", "", true)}, false, []updateplan.AcceptanceVerdict{"Accepted"},
		},
		"withdrawn":            {[]updatev1beta1.Insight{insight("a", "1", warning)}, []updatev1beta1.AcceptedInsight{entry("a", "", false)}, false, []updateplan.AcceptanceVerdict{"Refused"}},
		"withdrawn by uuid":    {[]updatev1beta1.Insight{insight("a", "1", warning)}, []updatev1beta1.AcceptedInsight{entry("a", "", true), entry("a", "1", false)}, false, []updateplan.AcceptanceVerdict{"Refused"}},
		"withdrawn by uid":     {[]updatev1beta1.Insight{insight("a", "1", warning)}, []updatev1beta1.AcceptedInsight{entry("a", "1", true), entry("a", "", false)}, false, []updateplan.AcceptanceVerdict{"Refused"}},
		"critical":             {[]updatev1beta1.Insight{insight("a", "1", critical)}, []updatev1beta1.AcceptedInsight{entry("a", "1", true)}, false, []updateplan.AcceptanceVerdict{"Incomplete"}},
		"critical with reason": {[]updatev1beta1.Insight{insight("a", "1", critical)}, []updatev1beta1.AcceptedInsight{reasonOnly}, false, []updateplan.AcceptanceVerdict{"Incomplete"}},
		"critical with both":   {[]updatev1beta1.Insight{insight("a", "1", critical)}, []updatev1beta1.AcceptedInsight{reasoned}, false, []updateplan.AcceptanceVerdict{"Accepted"}},
		"accepted when seen":   {[]updatev1beta1.Insight{insight("a", "1", warning)}, []updatev1beta1.AcceptedInsight{dated(0)}, false, []updateplan.AcceptanceVerdict{"Accepted"}},
		"accepted before":      {[]updatev1beta1.Insight{insight("a", "1", warning)}, []updatev1beta1.AcceptedInsight{dated(-time.Second)}, false, []updateplan.AcceptanceVerdict{"Stale"}},
		"accepted ahead":       {[]updatev1beta1.Insight{insight("a", "1", warning)}, []updatev1beta1.AcceptedInsight{dated(2 * time.Hour)}, false, []updateplan.AcceptanceVerdict{"Ahead"}},
		"undated is dropped":   {[]updatev1beta1.Insight{insight("a", "1", warning)}, []updatev1beta1.AcceptedInsight{entry("a", "", true)}, true, []updateplan.AcceptanceVerdict{"Stale"}},
		"dated is kept":        {[]updatev1beta1.Insight{insight("a", "1", warning)}, []updatev1beta1.AcceptedInsight{dated(0)}, true, []updateplan.AcceptanceVerdict{"Accepted"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status := reported(tc.insights...)
			judged := updateplan.Judge(tc.entries, updateplan.Insights(&status), updateplan.Scope{Now: noon.Add(time.Hour), IgnoreUndated: tc.undated})
			var got []updateplan.AcceptanceVerdict
			for _, j := range judged {
				got = append(got, j.Verdict)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
			}
		})
	}
}

// TestJudge_never_widens draws insights and acceptances and compares the result with the simplest reading of
// the rules: an insight is accepted only if a single entry names it, and nothing else, and no entry revokes
// it. Adding an insight may end an acceptance but never creates one.
func TestJudge_never_widens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		levels := []updatev1beta1.Level{"status", "info", "warning", "error", "critical", "odd"}
		ids := rapid.SampledFrom([]string{"a", "b"})
		draw := func(i int) updatev1beta1.Insight {
			in := insight(ids.Draw(t, "uid"), strconv.Itoa(i), rapid.SampledFrom(levels).Draw(t, "level"))
			in.FirstObservedTime = *at(time.Duration(rapid.IntRange(-2, 2).Draw(t, "first")) * time.Minute)
			return in
		}
		var insights []updatev1beta1.Insight
		for i := range rapid.IntRange(0, 4).Draw(t, "insights") {
			insights = append(insights, draw(i))
		}
		var spec updatev1beta1.UpdatePlanSpec
		for range rapid.IntRange(0, 4).Draw(t, "entries") {
			e := entry(ids.Draw(t, "uid"), rapid.SampledFrom([]string{"", "0", "1", "2"}).Draw(t, "uuid"), rapid.Bool().Draw(t, "accepted"))
			if rapid.Bool().Draw(t, "reason") {
				e.Reason = "x"
			}
			if rapid.Bool().Draw(t, "dated") {
				e.AcceptedTime = at(time.Duration(rapid.IntRange(-3, 300).Draw(t, "at")) * time.Minute)
			}
			spec.AcceptedInsights = append(spec.AcceptedInsights, e)
		}
		scope := updateplan.Scope{Now: noon.Add(time.Hour)}
		accepted := func(all []updatev1beta1.Insight, scope updateplan.Scope) []string {
			status := reported(all...)
			var uuids []string
			for _, j := range updateplan.Judge(spec.AcceptedInsights, updateplan.Insights(&status), scope) {
				if j.Verdict == updateplan.VerdictAccepted {
					uuids = append(uuids, j.Insight.UUID)
				}
			}
			return uuids
		}
		before := accepted(insights, scope)
		for _, uuid := range before {
			i := slices.IndexFunc(insights, func(in updatev1beta1.Insight) bool { return in.UUID == uuid })
			if !named(insights, spec.AcceptedInsights, insights[i]) {
				t.Fatalf("%s is accepted by no entry", uuid)
			}
		}
		added := append(slices.Clone(insights), draw(9))
		for _, uuid := range accepted(added, scope) {
			if uuid != "9" && !slices.Contains(before, uuid) {
				t.Fatalf("%s is accepted because another insight was added", uuid)
			}
		}
		for _, uuid := range accepted(insights, updateplan.Scope{Now: scope.Now, IgnoreUndated: true}) {
			if !slices.Contains(before, uuid) {
				t.Fatalf("%s is accepted because undated entries are dropped", uuid)
			}
		}
	})
}

// named reports whether an entry accepts an insight and no entry revokes it.
func named(all []updatev1beta1.Insight, entries []updatev1beta1.AcceptedInsight, in updatev1beta1.Insight) bool {
	alike, yes := 0, false
	for i := range all {
		if all[i].UID == in.UID {
			alike++
		}
	}
	for _, e := range entries {
		if e.UID != in.UID || e.UUID != "" && e.UUID != in.UUID {
			continue
		}
		if !e.Accepted {
			return false
		}
		timely := e.AcceptedTime == nil || !e.AcceptedTime.Before(&in.FirstObservedTime) && e.AcceptedTime.Sub(noon) < 66*time.Minute
		exact := e.UUID == in.UUID || alike == 1
		enough := in.Impact.Level != updatev1beta1.LevelCritical || e.UUID != "" && e.Reason != ""
		yes = yes || timely && exact && enough
	}
	return yes
}

func TestUnaccepted_lists_the_most_severe_first(t *testing.T) {
	t.Parallel()
	status := reported(insight("w", "1", "warning"), insight("c", "2", "critical"), insight("o", "3", "odd"), insight("e", "4", "error"), insight("a", "5", "warning"))
	spec := updatev1beta1.UpdatePlanSpec{AcceptedInsights: []updatev1beta1.AcceptedInsight{entry("a", "", true)}}
	judged := updateplan.Judge(spec.AcceptedInsights, updateplan.Insights(&status), updateplan.Scope{Now: noon})
	if diff := cmp.Diff(updatev1beta1.InsightCounts{Total: 5, Accepted: 1, Unaccepted: 4}, updateplan.Count(judged)); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	var uids []string
	for _, j := range updateplan.Unaccepted(judged) {
		uids = append(uids, j.Insight.UID)
	}
	if diff := cmp.Diff([]string{"c", "e", "w", "o"}, uids); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}
