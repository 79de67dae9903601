// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

const desired = "4.4.6"

// noon is not at a whole second, as a real clock never is.
var (
	noon    = time.Date(2026, 3, 1, 12, 0, 0, 700_000_000, time.UTC)
	tenPast = noon.Truncate(time.Minute).Add(10 * time.Minute)
)

func TestCurrentRecord(t *testing.T) {
	t.Parallel()
	at, later := toMetaTime(tenPast), toMetaTime(tenPast.Add(time.Hour))
	step := []history.StepCondition{
		{Type: "VersionPinned", Status: metav1.ConditionTrue, CompleteTime: at},
		{Type: "PreHealthCheck", Status: metav1.ConditionFalse, CompleteTime: later},
	}
	waiting := history.Record{Version: desired, Phase: history.PhasePending, Attempt: 1, UpgradeAt: at, Reason: "Paused"}
	running := history.Record{Version: desired, Phase: history.PhaseUpgrading, Attempt: 2, UpgradeAt: at, StartTime: at, Conditions: step}
	failed := history.Record{
		Version: desired, Phase: history.PhaseFailed, Attempt: 3, UpgradeAt: at, StartTime: at, CommenceTime: at, CompleteTime: later,
		Reason: "WindowMissed", Message: "late", Conditions: step,
	}
	summary := history.PreviousAttempt{
		Attempt: 3, Phase: history.PhaseFailed, UpgradeAt: at, StartTime: at, CommenceTime: at, CompleteTime: later,
		Reason: "WindowMissed", Message: "late", FailedStep: "PreHealthCheck",
	}
	failedOften := failed
	failedOften.PreviousAttempts = []history.PreviousAttempt{{Attempt: 2}, {Attempt: 1}, {Attempt: 7}}
	cleaning := failed
	cleaning.CompleteTime = nil
	upgraded := history.Record{Version: desired, Phase: history.PhaseUpgraded, Attempt: 1, UpgradeAt: at, StartTime: at, CompleteTime: later}
	former := history.Record{Version: desired, Phase: history.PhaseFailed, StartTime: at, Conditions: step}
	formerNow := former
	formerNow.UpgradeAt, formerNow.CompleteTime = later, later // of its last step
	formerRunning := history.Record{Version: desired, Phase: history.PhaseUpgrading, StartTime: at}
	formerResumed := formerRunning
	formerResumed.UpgradeAt = later
	fresh := func(attempt int32, at time.Time, previous ...history.PreviousAttempt) history.Record {
		h := history.Record{Version: desired, Phase: history.PhaseNew, Attempt: attempt, PreviousAttempts: previous}
		if !at.IsZero() {
			h.UpgradeAt = toMetaTime(at)
		}
		return h
	}
	elsewhere := upgraded
	elsewhere.Version = "4.4.4"

	for name, c := range map[string]struct {
		all  []history.Record
		at   time.Time
		want history.Record
	}{
		"empty history":                              {at: tenPast, want: fresh(1, tenPast)},
		"invalid time":                               {want: fresh(1, time.Time{})},
		"history of another version":                 {all: []history.Record{elsewhere}, at: tenPast, want: fresh(1, tenPast)},
		"pending":                                    {all: []history.Record{waiting}, at: tenPast, want: waiting},
		"pending, time changed":                      {all: []history.Record{waiting}, at: tenPast.Add(time.Hour), want: fresh(1, tenPast.Add(time.Hour))},
		"in progress":                                {all: []history.Record{elsewhere, running}, at: tenPast, want: running},
		"in progress, time changed":                  {all: []history.Record{running}, at: tenPast.Add(time.Hour), want: running},
		"cleaning up, time changed":                  {all: []history.Record{cleaning}, at: tenPast.Add(time.Hour), want: cleaning},
		"failed":                                     {all: []history.Record{failed}, at: tenPast, want: failed},
		"failed, same time in another zone":          {all: []history.Record{failed}, at: tenPast.In(time.FixedZone("", 3600)), want: failed},
		"failed, same second":                        {all: []history.Record{failed}, at: tenPast.Add(time.Second / 2), want: failed},
		"failed, time changed":                       {all: []history.Record{failed}, at: tenPast.Add(time.Hour), want: fresh(4, tenPast.Add(time.Hour), summary)},
		"failed, time invalid":                       {all: []history.Record{failed}, want: fresh(4, time.Time{}, summary)},
		"failed a fifth time":                        {all: []history.Record{failedOften}, want: fresh(4, time.Time{}, summary, failedOften.PreviousAttempts[0], failedOften.PreviousAttempts[1])},
		"upgraded, time changed":                     {all: []history.Record{upgraded}, at: tenPast.Add(time.Hour), want: upgraded},
		"failed in a release without recorded time":  {all: []history.Record{former}, at: tenPast.Add(time.Hour), want: formerNow},
		"running in a release without recorded time": {all: []history.Record{formerRunning}, at: tenPast.Add(time.Hour), want: formerResumed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := make([]history.Record, len(c.all))
			for i := range c.all {
				before[i] = *c.all[i].DeepCopy()
			}
			if diff := cmp.Diff(c.want, currentRecord(Status{History: &c.all}, AttemptRequest{Version: desired, At: c.at}, ByVersion)); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(append([]history.Record(nil), before...), append([]history.Record(nil), c.all...)); diff != "" {
				t.Errorf("the history was changed:\n%s", diff)
			}
		})
	}
}

func TestUpsertRecord(t *testing.T) {
	t.Parallel()
	versions := func(all []history.Record) (v []string) {
		for _, h := range all {
			v = append(v, h.Version)
		}
		return v
	}
	at := metav1.NewTime(time.Unix(1_600_000_000, 0))
	all := []history.Record{
		{Version: "c", PreviousAttempts: []history.PreviousAttempt{{Attempt: 1}}}, {Version: "b", StartTime: &at}, {Version: "a", CompleteTime: &at},
	}
	postponed := append([]history.Record{{Version: "x", Phase: history.PhasePending}}, all...)
	for name, c := range map[string]struct {
		all    []history.Record
		record string
		limit  int
		want   []string
	}{
		"an attempt that never started is dropped": {all: postponed, record: "d", limit: 9, want: []string{"d", "c", "b", "a"}},
		"the present attempt stays":                {all: postponed, record: "x", limit: 9, want: []string{"x", "c", "b", "a"}},
		"a new version comes first":                {all: all, record: "d", limit: 9, want: []string{"d", "c", "b", "a"}},
		"the first stays first":                    {all: all, record: "c", limit: 9, want: []string{"c", "b", "a"}},
		"an earlier version becomes first":         {all: all, record: "a", limit: 9, want: []string{"a", "c", "b"}},
		"the oldest are dropped":                   {all: all, record: "d", limit: 2, want: []string{"d", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, versions(upsertRecord(c.all, nil, history.Record{Version: c.record}, ByVersion, c.limit))); diff != "" {
				t.Errorf("versions (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"x", "c", "b", "a"}, versions(postponed)); diff != "" {
				t.Errorf("the argument was changed:\n%s", diff)
			}
		})
	}
}

// A stranger's history may name one attempt twice: as a record, and as the attempt before a retry that has not started.
func TestUpsertRecord_has_each_attempt_once(t *testing.T) {
	t.Parallel()
	ended := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	failed := history.Record{Version: "4.20.6", Attempt: 17, Phase: history.PhaseFailed, CompleteTime: &ended}
	retry := history.Record{Version: "4.20.6", Attempt: 18, PreviousAttempts: []history.PreviousAttempt{{Attempt: 17, Phase: history.PhaseFailed, CompleteTime: &ended}}}
	for name, records := range map[string][]history.Record{
		"as the record":  {retry},
		"in the history": {retry, failed},
	} {
		record := failed
		if name == "in the history" {
			record = history.Record{Version: "4.20.6", Attempt: 19}
		}
		got := upsertRecord(records, nil, record, ByAttempt, 5)
		seen := map[int32]int{}
		for _, r := range got {
			seen[r.Attempt]++
		}
		if seen[17] != 1 || seen[18] != 0 {
			t.Errorf("%s: attempts %v", name, seen)
		}
	}
}

func TestAttemptFinished(t *testing.T) {
	t.Parallel()
	at, later := toMetaTime(tenPast), toMetaTime(tenPast.Add(time.Hour))
	records := []history.Record{
		{Version: "4.4.6", UpgradeAt: later, StartTime: at, PreviousAttempts: []history.PreviousAttempt{{UpgradeAt: at}}},
		{Version: "4.4.5", UpgradeAt: at, StartTime: at, CompleteTime: later},
	}
	for name, tc := range map[string]struct {
		records      []history.Record
		version, key string
		want         bool
	}{
		"no history":                       {version: "4.4.6", key: text.FormatTime(tenPast)},
		"no history, unknown attempt":      {},
		"in progress":                      {records: records, version: "4.4.6", key: text.FormatTime(later.Time)},
		"earlier attempt":                  {records: records, version: "4.4.6", key: text.FormatTime(tenPast), want: true},
		"finished":                         {records: records, version: "4.4.5", key: text.FormatTime(tenPast), want: true},
		"not mentioned":                    {records: records, version: "4.4.5", key: text.FormatTime(later.Time)},
		"unknown attempt, one in progress": {records: records},
		"unknown attempt, none":            {records: records[1:], want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := history.AttemptFinished(tc.records, tc.version, tc.key); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
