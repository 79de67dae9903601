// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
)

func TestAttemptOf(t *testing.T) {
	t.Parallel()
	at, later := toMetaTime(tenPast), toMetaTime(tenPast.Add(time.Hour))
	step := []history.StepCondition{{Type: "VersionPinned"}}
	waiting := history.Record{Version: desired, Phase: history.PhasePending, Attempt: 1, UpgradeAt: at}
	running := history.Record{Version: desired, Phase: history.PhaseUpgrading, Attempt: 2, UpgradeAt: at, StartTime: at, Conditions: step}
	failed := history.Record{Version: desired, Phase: history.PhaseFailed, Attempt: 3, UpgradeAt: at, StartTime: at, CompleteTime: later, Conditions: step}
	cleaning := failed
	cleaning.CompleteTime = nil
	upgraded := history.Record{Version: desired, Phase: history.PhaseUpgraded, Attempt: 1, UpgradeAt: at, StartTime: at, CompleteTime: later}
	fresh := func(attempt int32, at time.Time) history.Record {
		h := history.Record{Version: desired, Phase: history.PhaseNew, Attempt: attempt}
		if !at.IsZero() {
			h.UpgradeAt = toMetaTime(at)
		}
		return h
	}
	moved := waiting
	moved.UpgradeAt = later
	elsewhere := upgraded
	elsewhere.Version = "4.4.4"

	for name, c := range map[string]struct {
		all  []history.Record
		at   time.Time
		want history.Record
	}{
		"nothing was recorded":                           {at: tenPast, want: fresh(1, tenPast)},
		"the time cannot be read":                        {want: fresh(1, time.Time{})},
		"only another version was recorded":              {all: []history.Record{elsewhere}, at: tenPast, want: fresh(1, tenPast)},
		"it waits":                                       {all: []history.Record{waiting}, at: tenPast, want: waiting},
		"it waits, and was moved":                        {all: []history.Record{waiting}, at: tenPast.Add(time.Hour), want: moved},
		"it is under way":                                {all: []history.Record{elsewhere, running}, at: tenPast, want: running},
		"it is under way, and the spec has changed":      {all: []history.Record{running}, at: tenPast.Add(time.Hour), want: running},
		"it is being cleaned up after, and was moved":    {all: []history.Record{cleaning}, at: tenPast.Add(time.Hour), want: cleaning},
		"it has failed":                                  {all: []history.Record{failed}, at: tenPast, want: failed},
		"it has failed, and the time has another zone":   {all: []history.Record{failed}, at: tenPast.In(time.FixedZone("", 3600)), want: failed},
		"it has failed, and the time has a fraction":     {all: []history.Record{failed}, at: tenPast.Add(time.Second / 2), want: failed},
		"it has failed, and was moved":                   {all: []history.Record{failed}, at: tenPast.Add(time.Hour), want: fresh(4, tenPast.Add(time.Hour))},
		"it has failed, and the time cannot be read now": {all: []history.Record{failed}, want: fresh(4, time.Time{})},
		"it was upgraded, and was moved":                 {all: []history.Record{upgraded}, at: tenPast.Add(time.Hour), want: upgraded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := &v1alpha1.UpgradeConfig{}
			cfg.Spec.Desired.Version = desired
			cfg.Status.History = c.all
			before := cfg.DeepCopy()
			if diff := cmp.Diff(c.want, currentAttempt(cfg, c.at)); diff != "" {
				t.Errorf("attempt (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, cfg); diff != "" {
				t.Errorf("what was given was changed:\n%s", diff)
			}
		})
	}
}

func TestWithAttempt(t *testing.T) {
	t.Parallel()
	versions := func(all []history.Record) (v []string) {
		for _, h := range all {
			v = append(v, h.Version)
		}
		return v
	}
	at := metav1.NewTime(time.Unix(1_600_000_000, 0))
	all := []history.Record{{Version: "c", Attempt: 2}, {Version: "b", Attempt: 1, StartTime: &at}, {Version: "a", Attempt: 1, CompleteTime: &at}}
	putOff := append([]history.Record{{Version: "x", Attempt: 1, Phase: history.PhasePending}}, all...)
	for name, c := range map[string]struct {
		all    []history.Record
		record string
		want   []string
	}{
		"one that never began leaves nothing behind": {all: putOff, record: "d", want: []string{"d", "c", "b", "a"}},
		"one that has not begun yet stays":           {all: putOff, record: "x", want: []string{"x", "c", "b", "a"}},
		"a new version comes first":                  {all: all, record: "d", want: []string{"d", "c", "b", "a"}},
		"the first stays the first":                  {all: all, record: "c", want: []string{"c", "b", "a"}},
		"one that was there becomes first":           {all: all, record: "a", want: []string{"a", "c", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, versions(upsertAttempt(c.all, history.Record{Version: c.record}))); diff != "" {
				t.Errorf("versions (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"x", "c", "b", "a"}, versions(putOff)); diff != "" {
				t.Errorf("what was given was changed:\n%s", diff)
			}
		})
	}
}
