// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package insight_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
)

// event is an answer of the informer "mco" a number of seconds after the start, or just the passage of time.
type event struct {
	after    int
	result   insight.Result
	insights []updatev1beta1.Insight
	edit     func(*insight.Answer)
}

// reported returns an insight acquired a number of seconds after the start. A negative number leaves the
// acquisition time unset.
func reported(uid string, acquired int, edits ...func(*updatev1beta1.Insight)) updatev1beta1.Insight {
	i := updatev1beta1.Insight{UID: uid, Impact: updatev1beta1.InsightImpact{Level: updatev1beta1.LevelWarning, Summary: "Summary of " + uid}}
	if acquired >= 0 {
		i.AcquisitionTime = metav1.NewTime(second(acquired))
	}
	for _, edit := range edits {
		edit(&i)
	}
	return i
}

func second(n int) time.Time { return received.Add(time.Duration(n) * time.Second) }

func play(events []event) insight.Store {
	store := insight.NewStore()
	for _, e := range events {
		apply(store, e)
	}
	return store
}

func apply(store insight.Store, e event) {
	now := second(e.after)
	if e.result != "" {
		answer := insight.Answer{Informer: "mco", Result: e.result, Message: "message", Insights: e.insights, At: now}
		if e.edit != nil {
			e.edit(&answer)
		}
		store.Apply(answer, now)
	}
	store.Settle(now)
}

// shown formats the insights of an informer as "uid first+seconds stale+seconds flaps".
func shown(store insight.Store, informer string) []string {
	var all []string
	for _, of := range store.Insights() {
		for _, i := range of.Insights {
			if of.Name != informer {
				continue
			}
			text := fmt.Sprintf("%s first %d", i.UID, int(i.FirstObservedTime.Sub(received).Seconds()))
			if i.StaleSince != nil {
				text += fmt.Sprintf(" stale %d", int(i.StaleSince.Sub(received).Seconds()))
			}
			if i.Flaps > 0 {
				text += fmt.Sprintf(" flaps %d", i.Flaps)
			}
			all = append(all, text)
		}
	}
	return all
}

// resolvedIn formats the resolved insights as "summary reason+seconds".
func resolvedIn(store insight.Store) []string {
	var all []string
	for _, r := range store.RecentlyResolved() {
		all = append(all, fmt.Sprintf("%s: %s %d", r.Summary, r.Reason, int(r.ResolvedTime.Sub(received).Seconds())))
	}
	return all
}

// TestStore_ProblemThatReturns lets a node fail twice within a day. The status shows since when it has failed,
// so the first failure does not count.
func TestStore_ProblemThatReturns(t *testing.T) {
	t.Parallel()
	store := insight.NewStore()
	pass := func(after int, since ...int) {
		answer := insight.Answer{Informer: checks.InformerNodes, Result: insight.Success, Live: true, At: second(after)}
		for _, at := range since {
			answer.Insights = append(answer.Insights, insight.FromFinding(answer.Informer, checks.Finding{
				Scope: checks.ScopeControlPlane, Reason: "NodeNotReady", Level: checks.LevelWarning, Since: second(at),
				Resources: []checks.Resource{{Kind: "Node", Name: "worker-1"}},
			}, answer.At))
		}
		store.Apply(answer, answer.At)
	}
	pass(700, 0)
	pass(800)
	pass(4300, 3600)
	if diff := cmp.Diff([]string{"NodeNotReady/Node/worker-1 first 3600 flaps 1"}, shown(store, checks.InformerNodes)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStore_LifeCycle(t *testing.T) {
	t.Parallel()
	const day = 24 * 3600
	a := func(acquired int) []updatev1beta1.Insight { return []updatev1beta1.Insight{reported("a", acquired)} }
	b := func(acquired int) []updatev1beta1.Insight { return []updatev1beta1.Insight{reported("b", acquired)} }
	live := func(answer *insight.Answer) { answer.Live = true }
	unread := func(answer *insight.Answer) { answer.Live, answer.Unread = true, []string{"Pod"} }
	status := func(i *updatev1beta1.Insight) { i.Impact.Level = updatev1beta1.LevelStatus }
	aboutPod := func(i *updatev1beta1.Insight) {
		i.Scope.Resources = []updatev1beta1.ResourceReference{{Kind: "Pod", Namespace: "n", Name: "p"}}
	}
	cases := map[string]struct {
		events   []event
		want     []string
		resolved []string
	}{
		"reported":                                     {[]event{{0, insight.Success, a(0), nil}}, []string{"a first 0"}, nil},
		"reported again":                               {[]event{{0, insight.Success, a(0), nil}, {15, insight.Success, a(15), nil}}, []string{"a first 0"}, nil},
		"gone, acquired later":                         {[]event{{0, insight.Success, a(0), nil}, {15, insight.Success, b(15), nil}}, []string{"b first 15"}, []string{"Summary of a: Resolved 15"}},
		"gone, acquired earlier":                       {[]event{{0, insight.Success, a(0), nil}, {3600, insight.Success, b(-0 - 1), func(x *insight.Answer) { x.Insights[0].AcquisitionTime = metav1.NewTime(second(-60)) }}}, []string{"a first 0 stale 3600", "b first 3600"}, nil},
		"gone, acquired at the same time":              {[]event{{0, insight.Success, a(0), nil}, {15, insight.Success, b(0), nil}}, []string{"a first 0", "b first 15"}, nil},
		"gone, acquired at the same time, for long":    {[]event{{0, insight.Success, a(0), nil}, {15, insight.Success, b(0), nil}, {75, "", nil, nil}}, []string{"b first 15"}, []string{"Summary of a: Resolved 75"}},
		"gone from an empty answer":                    {[]event{{0, insight.Success, a(0), nil}, {15, insight.Success, nil, nil}, {74, "", nil, nil}}, []string{"a first 0"}, nil},
		"gone from empty answers for a minute":         {[]event{{0, insight.Success, a(0), nil}, {15, insight.Success, nil, nil}, {30, insight.Success, nil, nil}, {75, insight.Success, nil, nil}}, nil, []string{"Summary of a: Resolved 75"}},
		"gone from an empty live answer":               {[]event{{0, insight.Success, a(0), nil}, {15, insight.Success, nil, live}}, nil, []string{"Summary of a: Resolved 15"}},
		"a step is over":                               {[]event{{0, insight.Success, []updatev1beta1.Insight{reported("a", 0, status)}, nil}, {15, insight.Success, nil, live}}, nil, nil},
		"gone, back within the minute":                 {[]event{{0, insight.Success, a(0), nil}, {15, insight.Success, nil, nil}, {30, insight.Success, a(30), nil}, {90, "", nil, nil}}, []string{"a first 0"}, nil},
		"gone, then the informer fails":                {[]event{{0, insight.Success, a(0), nil}, {15, insight.Success, nil, nil}, {30, insight.Unreachable, nil, nil}, {300, "", nil, nil}}, []string{"a first 0 stale 30"}, nil},
		"gone, as its objects cannot be read":          {[]event{{0, insight.Success, []updatev1beta1.Insight{reported("a", 0, aboutPod), reported("b", 0)}, nil}, {15, insight.Success, nil, unread}}, []string{"a first 0 stale 15"}, []string{"Summary of b: Resolved 15"}},
		"failure":                                      {[]event{{0, insight.Success, a(0), nil}, {15, insight.Failure, nil, nil}, {3600, insight.Failure, nil, nil}}, []string{"a first 0 stale 15"}, nil},
		"failure with an insight of its own":           {[]event{{0, insight.Success, a(0), nil}, {15, insight.Failure, b(15), nil}}, []string{"a first 0 stale 15", "b first 15"}, nil},
		"failure, then success":                        {[]event{{0, insight.Success, a(0), nil}, {15, insight.Failure, b(15), nil}, {30, insight.Success, a(30), nil}}, []string{"a first 0"}, []string{"Summary of b: Resolved 30"}},
		"wait":                                         {[]event{{0, insight.Success, a(0), nil}, {15, insight.Wait, b(15), nil}, {3600, insight.Wait, nil, nil}}, []string{"a first 0 stale 15"}, nil},
		"unreachable":                                  {[]event{{0, insight.Success, a(0), nil}, {15, insight.Unreachable, nil, nil}, {day, insight.Unreachable, nil, nil}}, []string{"a first 0 stale 15"}, nil},
		"invalid":                                      {[]event{{0, insight.Success, a(0), nil}, {15, insight.Invalid, b(15), nil}}, []string{"a first 0 stale 15"}, nil},
		"not queried":                                  {[]event{{0, insight.Success, a(0), nil}, {15, insight.NotQueried, nil, nil}}, []string{"a first 0"}, nil},
		"disabled":                                     {[]event{{0, insight.Success, a(0), nil}, {15, insight.Disabled, nil, nil}, {74, "", nil, nil}}, []string{"a first 0 stale 15"}, nil},
		"disabled for a minute":                        {[]event{{0, insight.Success, a(0), nil}, {15, insight.Disabled, nil, nil}, {75, insight.Disabled, nil, nil}}, nil, []string{"Summary of a: InformerDisabled 75"}},
		"disabled for a moment":                        {[]event{{0, insight.Success, a(0), nil}, {15, insight.Disabled, nil, nil}, {30, insight.Success, a(30), nil}, {90, "", nil, nil}}, []string{"a first 0"}, nil},
		"disabled, and enabled later":                  {[]event{{0, insight.Success, a(0), nil}, {15, insight.Disabled, nil, nil}, {75, "", nil, nil}, {600, insight.Success, a(600), nil}}, []string{"a first 0"}, nil},
		"deleted":                                      {[]event{{0, insight.Success, a(0), nil}, {15, insight.Deleted, nil, nil}, {75, "", nil, nil}}, nil, []string{"Summary of a: InformerDeleted 75"}},
		"an answer from before the deletion":           {[]event{{0, insight.Success, a(0), nil}, {15, insight.Deleted, nil, nil}, {20, insight.Success, a(10), func(x *insight.Answer) { x.At = second(10) }}, {75, "", nil, nil}}, nil, []string{"Summary of a: InformerDeleted 75"}},
		"back within a day":                            {[]event{{0, insight.Success, a(0), nil}, {15, insight.Success, nil, live}, {15 + day - 1, insight.Success, a(15 + day - 1), nil}}, []string{"a first 0 flaps 1"}, []string{}},
		"back twice":                                   {[]event{{0, insight.Success, a(0), nil}, {1, insight.Success, nil, live}, {2, insight.Success, a(2), nil}, {3, insight.Success, nil, live}, {4, insight.Success, a(4), nil}}, []string{"a first 0 flaps 2"}, []string{}},
		"back after a day":                             {[]event{{0, insight.Success, a(0), nil}, {15, insight.Success, nil, live}, {15 + day, insight.Success, a(15 + day), nil}}, []string{fmt.Sprintf("a first %d", 15+day)}, nil},
		"an older answer arrives later":                {[]event{{15, insight.Success, a(15), nil}, {16, insight.Success, nil, func(x *insight.Answer) { x.At, x.Live = second(10), true }}}, []string{"a first 15"}, nil},
		"the clock of the controller is set back":      {[]event{{7200, insight.Success, a(7200), nil}, {0, insight.Success, nil, nil}, {59, insight.Success, nil, nil}}, []string{"a first 7200"}, nil},
		"the clock is set back, then it is resolved":   {[]event{{7200, insight.Success, a(7200), nil}, {0, insight.Success, nil, nil}, {60, insight.Success, nil, nil}}, nil, []string{"Summary of a: Resolved 60"}},
		"the clock of the informer is ahead by a year": {[]event{{0, insight.Success, a(365 * day), nil}, {15, insight.Success, b(365 * day), nil}, {74, "", nil, nil}}, []string{"a first 0", "b first 15"}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := play(c.events)
			if diff := cmp.Diff(c.want, shown(store, "mco")); diff != "" {
				t.Errorf("insights (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.resolved, slices.DeleteFunc(resolvedIn(store), func(r string) bool { return strings.HasPrefix(r, "Informer mco") }), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("resolved (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStore_Reports(t *testing.T) {
	t.Parallel()
	many := func(prefix string, n int) []updatev1beta1.Insight {
		var all []updatev1beta1.Insight
		for i := range n {
			all = append(all, reported(fmt.Sprintf("%s-%03d", prefix, i), -1))
		}
		return all
	}
	inScope := func(name string) func(*updatev1beta1.Insight) {
		return func(i *updatev1beta1.Insight) {
			i.Scope.Resources = []updatev1beta1.ResourceReference{{Kind: "Node", Name: name}}
		}
	}
	degraded := func(x *insight.Answer) { x.Degraded = "cannot connect" }
	cases := map[string]struct {
		events []event
		want   []string
	}{
		"success":                        {[]event{{0, insight.Success, nil, nil}}, nil},
		"failure":                        {[]event{{0, insight.Failure, nil, nil}}, []string{"InformerFailed/mco first 0"}},
		"unreachable":                    {[]event{{0, insight.Unreachable, nil, nil}, {60, insight.Unreachable, nil, nil}}, []string{"InformerUnreachable/mco first 0"}},
		"invalid":                        {[]event{{0, insight.Invalid, nil, nil}}, []string{"InformerInvalid/mco first 0"}},
		"disabled":                       {[]event{{0, insight.Disabled, nil, degraded}}, []string{"InformerDisabled/mco first 0"}},
		"deleted":                        {[]event{{0, insight.Unreachable, nil, nil}, {1, insight.Deleted, nil, nil}}, nil},
		"degraded":                       {[]event{{0, insight.Success, nil, degraded}}, []string{"InformerDegraded/mco first 0"}},
		"degraded and unreachable":       {[]event{{0, insight.Unreachable, nil, degraded}}, []string{"InformerDegraded/mco first 0", "InformerUnreachable/mco first 0"}},
		"waiting":                        {[]event{{0, insight.Wait, nil, nil}, {119, insight.Wait, nil, nil}}, nil},
		"waiting for long":               {[]event{{0, insight.Wait, nil, nil}, {120, insight.Wait, nil, nil}}, []string{"InformerWaiting/mco first 120"}},
		"waiting again":                  {[]event{{0, insight.Wait, nil, nil}, {60, insight.Success, nil, nil}, {100, insight.Wait, nil, nil}, {200, "", nil, nil}}, nil},
		"well again":                     {[]event{{0, insight.Unreachable, nil, nil}, {60, insight.Success, nil, nil}}, nil},
		"back after a moment":            {[]event{{0, insight.Unreachable, nil, nil}, {60, insight.Success, nil, nil}, {90, insight.Unreachable, nil, nil}}, []string{"InformerUnreachable/mco first 0 flaps 1"}},
		"no uid":                         {[]event{{0, insight.Success, []updatev1beta1.Insight{reported("", 0)}, nil}}, []string{"InformerInvalid/mco first 0"}},
		"a uid twice":                    {[]event{{0, insight.Success, []updatev1beta1.Insight{reported("a", 0), reported("a", 0)}, nil}}, []string{"InformerInvalid/mco first 0"}},
		"a uid in two scopes":            {[]event{{0, insight.Success, []updatev1beta1.Insight{reported("a", 0, inScope("x")), reported("a", 0, inScope("y"))}, nil}}, nil},
		"too many":                       {[]event{{0, insight.Success, many("a", 321), nil}}, []string{"InformerInvalid/mco first 0"}},
		"another scope":                  {[]event{{0, insight.Success, []updatev1beta1.Insight{reported("a", 0, inScope("x"))}, nil}, {15, insight.Success, []updatev1beta1.Insight{reported("a", 15, inScope("y"))}, nil}}, []string{"ScopeMutated/mco first 15"}},
		"another scope, long ago":        {[]event{{0, insight.Success, []updatev1beta1.Insight{reported("a", 0, inScope("x"))}, nil}, {15, insight.Success, []updatev1beta1.Insight{reported("a", 15, inScope("y"))}, nil}, {615, "", nil, nil}}, nil},
		"the first answer is not new":    {[]event{{0, insight.Success, many("a", 100), nil}}, nil},
		"20 new insights":                {[]event{{0, insight.Success, nil, nil}, {15, insight.Success, many("a", 20), nil}}, nil},
		"21 new insights":                {[]event{{0, insight.Success, nil, nil}, {15, insight.Success, many("a", 21), nil}}, []string{"UnstableIdentifiers/mco first 15"}},
		"21 new insights, in 10 minutes": {[]event{{0, insight.Success, nil, nil}, {15, insight.Success, many("a", 20), nil}, {614, insight.Success, many("b", 1), nil}}, []string{"UnstableIdentifiers/mco first 614"}},
		"21 new insights, in more":       {[]event{{0, insight.Success, nil, nil}, {15, insight.Success, many("a", 20), nil}, {615, insight.Success, many("b", 1), nil}}, nil},
		"new insights that stay":         {[]event{{0, insight.Success, nil, nil}, {15, insight.Success, many("a", 21), nil}, {615, insight.Success, many("a", 21), nil}}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := play(c.events)
			if diff := cmp.Diff(c.want, shown(store, updatev1beta1.StatusControllerInformer)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, of := range store.Insights() {
				for _, i := range of.Insights {
					want := updatev1beta1.LevelWarning
					if i.Impact.Reason == updatev1beta1.ReasonInformerDisabled {
						want = updatev1beta1.LevelInfo
					}
					if of.Name == updatev1beta1.StatusControllerInformer && i.Impact.Level != want {
						t.Errorf("%s has level %s", i.UID, i.Impact.Level)
					}
				}
			}
		})
	}
}

// TestStore_UnstableIdentifiers checks that the most severe insights are shown if there are too many new
// ones.
func TestStore_UnstableIdentifiers(t *testing.T) {
	t.Parallel()
	var news []updatev1beta1.Insight
	for i := range 30 {
		news = append(news, reported(fmt.Sprintf("new-%02d", i), -1))
	}
	news[29].Impact.Level = updatev1beta1.LevelCritical
	store := play([]event{{0, insight.Success, nil, nil}, {15, insight.Success, news, nil}})
	got := shown(store, "mco")
	if len(got) != 20 || got[0] != "new-29 first 15" {
		t.Errorf("got %d: %v", len(got), got)
	}
}

// publish returns a status with everything that the store publishes.
func publish(store insight.Store, observed time.Time) updatev1beta1.UpdateStatusStatus {
	status := updatev1beta1.UpdateStatusStatus{
		ControlPlane:     &updatev1beta1.ControlPlaneStatus{Section: updatev1beta1.Section{UpdateInformers: store.Insights()}},
		RecentlyResolved: store.RecentlyResolved(), AfterUpdate: store.Retained(), ObservedTime: new(metav1.NewTime(observed)),
	}
	return *status.DeepCopy()
}

func TestStore_Restore(t *testing.T) {
	t.Parallel()
	first := play([]event{
		{0, insight.Success, []updatev1beta1.Insight{reported("a", 0), reported("b", 0), reported("c", 0)}, nil},
		{15, insight.Success, []updatev1beta1.Insight{reported("a", 15), reported("c", 15)}, nil},
		{20, insight.Unreachable, nil, nil},
	})
	restored := insight.NewStore()
	for range 2 {
		restored.Restore(publish(first, second(30)))
		restored.Settle(second(40))
	}
	if diff := cmp.Diff([]string{"a first 0 stale 20", "c first 0 stale 20"}, shown(restored, "mco")); diff != "" {
		t.Errorf("restored (-want +got):\n%s", diff)
	}
	apply(restored, event{50, insight.Success, []updatev1beta1.Insight{reported("a", 50), reported("b", 50)}, nil})
	if diff := cmp.Diff([]string{"a first 0", "b first 0 flaps 1"}, shown(restored, "mco")); diff != "" {
		t.Errorf("after an answer (-want +got):\n%s", diff)
	}
	restored.Restore(publish(first, second(30)))
	if diff := cmp.Diff([]string{"a first 0", "b first 0 flaps 1"}, shown(restored, "mco")); diff != "" {
		t.Errorf("a resolved insight is restored (-want +got):\n%s", diff)
	}
}

func TestStore_RestoreMarksStale(t *testing.T) {
	t.Parallel()
	first := play([]event{{0, insight.Success, []updatev1beta1.Insight{reported("a", 0)}, nil}})
	restored := insight.NewStore()
	restored.Restore(publish(first, second(30)))
	restored.Settle(second(3600))
	if diff := cmp.Diff([]string{"a first 0 stale 30"}, shown(restored, "mco")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An insight shows what its informer reported last. Data acquired earlier replaces nothing unless the
// controller's clock was set back.
func TestStore_TakesOverChanges(t *testing.T) {
	t.Parallel()
	const none = -1 // no acquisition time
	worse := func(i *updatev1beta1.Insight) { i.Impact.Level = updatev1beta1.LevelCritical }
	for name, tc := range map[string]struct {
		received, acquired           int // of the first answer
		receivedAgain, acquiredAgain int
		want                         updatev1beta1.Level
	}{
		"acquired later":              {60, 60, 90, 90, updatev1beta1.LevelCritical},
		"acquired at the same time":   {60, 60, 90, 60, updatev1beta1.LevelCritical},
		"acquired earlier":            {60, 60, 90, 45, updatev1beta1.LevelWarning},
		"acquired at no time":         {60, 60, 90, none, updatev1beta1.LevelCritical},
		"informer ahead by an hour":   {60, 3660, 90, 90, updatev1beta1.LevelCritical},
		"informer ahead by seconds":   {60, 119, 90, 90, updatev1beta1.LevelWarning},
		"clock set back by two hours": {7260, 7260, 90, 90, updatev1beta1.LevelCritical},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := play([]event{
				{tc.received, insight.Success, []updatev1beta1.Insight{reported("a", tc.acquired)}, nil},
				{tc.receivedAgain, insight.Success, []updatev1beta1.Insight{reported("a", tc.acquiredAgain, worse)}, nil},
			})
			got := store.Insights()[0].Insights[0]
			if got.Impact.Level != tc.want || !got.FirstObservedTime.Time.Equal(second(tc.received)) {
				t.Errorf("the level is %s, first observed at %s", got.Impact.Level, got.FirstObservedTime)
			}
		})
	}
}

// TestStore_RestoreOwn checks that an insight about an informer keeps its time of first observation across a
// restart, because a user may have accepted it since.
func TestStore_RestoreOwn(t *testing.T) {
	t.Parallel()
	const days = 3 * 24 * 3600 // the status is not written while no update is in progress
	own := func(store insight.Store) []string { return shown(store, updatev1beta1.StatusControllerInformer) }
	first := play([]event{{0, insight.Unreachable, nil, nil}})
	restored := insight.NewStore()
	restored.Restore(publish(first, second(30)))
	restored.Settle(second(days))
	if diff := cmp.Diff([]string(nil), own(restored)); diff != "" {
		t.Errorf("before an answer (-want +got):\n%s", diff)
	}
	apply(restored, event{days + 10, insight.Unreachable, nil, nil})
	if diff := cmp.Diff([]string{"InformerUnreachable/mco first 0"}, own(restored)); diff != "" {
		t.Errorf("after an answer (-want +got):\n%s", diff)
	}
	restored = insight.NewStore()
	restored.Restore(publish(first, second(30)))
	restored.Settle(second(days))
	apply(restored, event{days + 24*3600, insight.Unreachable, nil, nil})
	if diff := cmp.Diff([]string{fmt.Sprintf("InformerUnreachable/mco first %d", days+24*3600)}, own(restored)); diff != "" {
		t.Errorf("a day later (-want +got):\n%s", diff)
	}
}

func TestStore_EndUpdate(t *testing.T) {
	t.Parallel()
	const day = 24 * 3600
	unresolved := func(i *updatev1beta1.Insight) { i.Remediation.Resolved = new(false) }
	store := play([]event{{0, insight.Success, []updatev1beta1.Insight{reported("a", 0), reported("b", 0, unresolved), reported("c", 0, unresolved), reported("d", 0, unresolved)}, nil}})
	acknowledged := []string{insight.UUID("mco", updatev1beta1.InsightScope{Type: updatev1beta1.ScopeControlPlane}, "d")}
	retained := func() []string {
		var all []string
		for _, r := range store.Retained() {
			all = append(all, fmt.Sprintf("%s since %d", r.Insight.UID, int(r.RetainedSince.Sub(received).Seconds())))
		}
		return all
	}
	check := func(name string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, retained()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	check("during the update")
	store.EndUpdate(acknowledged, second(10))
	check("after the update", "b since 10", "c since 10")
	if got := resolvedIn(store); got != nil {
		t.Errorf("resolved by the end of the update: %v", got)
	}
	restored := insight.NewStore()
	restored.Restore(publish(store, second(10)))
	if diff := cmp.Diff(store.Retained()[0].RetainedSince, restored.Retained()[0].RetainedSince); diff != "" || len(restored.Retained()) != 2 {
		t.Errorf("restored: %+v", restored.Retained())
	}
	apply(store, event{900, insight.Success, []updatev1beta1.Insight{reported("c", 900, unresolved)}, nil})
	store.EndUpdate(acknowledged, second(900))
	check("one is resolved", "c since 10")
	store.EndUpdate(acknowledged, second(10+14*day-1))
	check("before 14 days", "c since 10")
	store.EndUpdate(acknowledged, second(10+14*day))
	check("after 14 days")
	store.EndUpdate(acknowledged, second(11+14*day))
	check("for good")
}

// TestStore_EndUpdateOfOddInformer ends an update in which the informer was degraded and violated the protocol. It is not
// queried until the next update, so no answer would end the insights about it.
func TestStore_EndUpdateOfOddInformer(t *testing.T) {
	t.Parallel()
	store := insight.NewStore()
	answer := insight.Answer{Informer: "mco", Result: insight.Success, Degraded: "it is degraded", Insights: []updatev1beta1.Insight{reported("a", 0), reported("", 0)}, At: second(0)}
	for after, want := range [][]string{{"InformerDegraded/mco first 0", "InformerInvalid/mco first 0"}, nil, nil} {
		store.Apply(answer, second(after))
		if after > 0 {
			store.EndUpdate(nil, second(after))
		}
		store.Settle(second(after))
		if diff := cmp.Diff(want, shown(store, updatev1beta1.StatusControllerInformer)); diff != "" {
			t.Errorf("after %d s (-want +got):\n%s", after, diff)
		}
	}
}

// TestStore_BoundsInsights checks that no sequence of answers makes the controller keep an unlimited number
// of insights.
func TestStore_BoundsInsights(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		results []insight.Result
		want    int
	}{
		"failures without a success":      {[]insight.Result{insight.Failure, insight.Failure, insight.Failure}, 20},
		"failures after a success":        {[]insight.Result{insight.Success, insight.Failure, insight.Failure}, insight.MaxInsights},
		"a success that resolves nothing": {[]insight.Result{insight.Failure, insight.Success, insight.Success}, insight.MaxInsights},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := insight.NewStore()
			for n, result := range tc.results {
				var insights []updatev1beta1.Insight
				for i := range insight.MaxInsights {
					insights = append(insights, reported(fmt.Sprintf("%d-%d", n, i), 0))
				}
				apply(store, event{n, result, insights, nil})
			}
			if got := len(shown(store, "mco")); got != tc.want {
				t.Errorf("got %d insights, want %d", got, tc.want)
			}
			if got := shown(store, updatev1beta1.StatusControllerInformer); !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "UnstableIdentifiers/mco") }) {
				t.Errorf("what is left out is not reported: %v", got)
			}
		})
	}
}

// TestStore_NotQueried checks that an informer no longer queried has no problems and that its
// insights do not change.
func TestStore_NotQueried(t *testing.T) {
	t.Parallel()
	problems := map[string][]event{
		"waiting":     {{15, insight.Wait, nil, nil}, {200, insight.Wait, nil, nil}},
		"failed":      {{15, insight.Failure, nil, nil}},
		"unreachable": {{15, insight.Unreachable, nil, nil}},
	}
	for name, events := range problems {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := play(append([]event{{0, insight.Success, []updatev1beta1.Insight{reported("a", 0)}, nil}}, events...))
			if got := shown(store, updatev1beta1.StatusControllerInformer); len(got) != 1 {
				t.Fatalf("the problem: %v", got)
			}
			apply(store, event{210, insight.NotQueried, nil, nil})
			if got := shown(store, updatev1beta1.StatusControllerInformer); got != nil {
				t.Errorf("the problem is still shown: %v", got)
			}
			if diff := cmp.Diff([]string{"a first 0 stale 15"}, shown(store, "mco")); diff != "" {
				t.Errorf("what it reported (-want +got):\n%s", diff)
			}
		})
	}
	store := play([]event{{0, insight.Success, []updatev1beta1.Insight{reported("a", 0)}, nil}, {10, insight.Disabled, nil, nil}, {20, insight.NotQueried, nil, nil}, {70, "", nil, nil}})
	if got := shown(store, "mco"); got != nil {
		t.Errorf("disabled for a minute without an answer since: %v", got)
	}
}

// TestStore_BoundsAnswer checks that the most severe insights of an answer are kept, that insights over the
// limit do not count as resolved, and that built-in informers have no limit.
func TestStore_BoundsAnswer(t *testing.T) {
	t.Parallel()
	level := func(level updatev1beta1.Level) func(*updatev1beta1.Insight) {
		return func(i *updatev1beta1.Insight) { i.Impact.Level = level }
	}
	old := reported("old", 0)
	insights := []updatev1beta1.Insight{old}
	for i := range insight.MaxInsights - 1 {
		insights = append(insights, reported(fmt.Sprintf("error-%03d", i), 0, level(updatev1beta1.LevelError)))
	}
	insights = append(insights, reported("critical", 0, level(updatev1beta1.LevelCritical)))
	fresh := play([]event{{10, insight.Success, insights, nil}})
	if got := shown(fresh, "mco"); len(got) != insight.MaxInsights || !strings.HasPrefix(got[0], "critical") || slices.Contains(got, "old first 10") {
		t.Errorf("%d insights, the first is %s", len(got), got[0])
	}
	if got := shown(fresh, updatev1beta1.StatusControllerInformer); len(got) != 1 || !strings.HasPrefix(got[0], "InformerInvalid/mco") {
		t.Errorf("what is left out is not reported: %v", got)
	}

	store := play([]event{{0, insight.Success, insights[:1], nil}, {10, insight.Success, insights, func(a *insight.Answer) { a.Live = true }}})
	if got := resolvedIn(store); got != nil {
		t.Errorf("what is left out is resolved: %v", got)
	}

	store = insight.NewStore()
	store.Apply(insight.Answer{Informer: "builtin-nodes", Result: insight.Success, Insights: trusted(insights), At: received, Live: true}, received)
	if got := shown(store, "builtin-nodes"); len(got) != len(insights) {
		t.Errorf("%d insights of a built-in informer, want %d", len(got), len(insights))
	}
}

// trusted returns insights as if a built-in informer had reported them.
func trusted(insights []updatev1beta1.Insight) []updatev1beta1.Insight {
	var all []updatev1beta1.Insight
	for _, i := range insights {
		all = append(all, insight.Clean("builtin-nodes", i, received))
	}
	return all
}

// TestStore_RetainLimit checks that an insight retained for 14 days returns with the next update, but not
// while the answer stays the same.
func TestStore_RetainLimit(t *testing.T) {
	t.Parallel()
	const day = 24 * 3600
	left := []updatev1beta1.Insight{reported("left", 0, func(i *updatev1beta1.Insight) { i.Remediation.Resolved = new(false) })}
	store := insight.NewStore()
	retained := func(at int) int {
		apply(store, event{at, insight.Success, left, func(a *insight.Answer) { a.At = received }})
		store.EndUpdate(nil, second(at))
		return len(store.Retained()) + len(shown(store, "mco"))
	}
	for _, at := range []int{0, 14*day - 1} {
		if got := retained(at); got != 2 {
			t.Errorf("after %d seconds: %d", at, got)
		}
	}
	for _, at := range []int{14 * day, 14*day + 1, 15*day + 2} {
		if got := retained(at); got != 0 {
			t.Errorf("after %d seconds: %d", at, got)
		}
	}
	store.BeginUpdate(second(16 * day))
	if got := retained(16*day + 1); got != 2 {
		t.Errorf("after another update: %d", got)
	}
	store.BeginUpdate(second(16*day + 2))
	if got := store.Retained()[0].RetainedSince; !got.Time.Equal(second(16*day + 1)) {
		t.Errorf("retained since %s", got)
	}
}

func TestStore_KeepOnly(t *testing.T) {
	t.Parallel()
	store := play([]event{{0, insight.Success, []updatev1beta1.Insight{reported("a", 0)}, nil}})
	store.Apply(insight.Answer{Informer: "builtin-nodes", Result: insight.Success, Insights: []updatev1beta1.Insight{reported("n", 0)}, At: second(0)}, second(0))
	store.KeepOnly([]string{"mco"}, second(10))
	store.Settle(second(100))
	if got := shown(store, "mco"); len(got) != 1 {
		t.Errorf("an informer that exists: %v", got)
	}
	for _, now := range []int{100, 130, 160} {
		store.KeepOnly(nil, second(now))
		store.Settle(second(now))
	}
	if got := append(shown(store, "mco"), shown(store, "builtin-nodes")...); len(got) != 1 {
		t.Errorf("got %v, want only the insight of the built-in informer", got)
	}
	if diff := cmp.Diff([]string{"Summary of a: InformerDeleted 160"}, resolvedIn(store)); diff != "" {
		t.Errorf("resolved (-want +got):\n%s", diff)
	}
}

func encode(t interface{ Fatal(...any) }, value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// BenchmarkState_Apply measures applying the same answer of 320 insights in each pass.
func BenchmarkState_Apply(b *testing.B) {
	var insights []updatev1beta1.Insight
	for i := range insight.MaxInsights {
		insights = append(insights, reported(fmt.Sprintf("insight-%03d", i), 0, func(i *updatev1beta1.Insight) { i.Impact.Description = strings.Repeat("Wörter ", 100) }))
	}
	store := insight.NewStore()
	for b.Loop() {
		store.Apply(insight.Answer{Informer: "mco", Result: insight.Success, Insights: insights, At: received}, received)
	}
}
