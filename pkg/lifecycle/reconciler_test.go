// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// timedKind is a kind whose objects request a time.
type timedKind struct{ stubKind }

func (timedKind) Request(obj *upgradev1alpha1.UpgradeConfig) AttemptRequest {
	at, err := time.Parse(time.RFC3339, obj.Spec.UpgradeAt)
	if err != nil {
		return AttemptRequest{InvalidTime: err.Error()}
	}
	return AttemptRequest{Version: desired, At: at}
}

// An upgrade whose time has come is served before a backlog of other objects: when it changes, and in the
// pass that waits for its time.
func TestPriority(t *testing.T) {
	t.Parallel()
	r := &Reconciler[testObject]{Kind: timedKind{}, Clock: testingclock.NewFakePassiveClock(noon)}
	isUrgent := r.Controller(Declaration{Objects: manager.Kind{Object: &upgradev1alpha1.UpgradeConfig{}}}).Reads[0].IsUrgent
	for name, tc := range map[string]struct {
		at     time.Time
		phase  history.Phase
		within time.Duration // of the next pass
		now    bool
		next   int
	}{
		"due":                      {at: noon, now: true, next: manager.UrgentPriority},
		"in progress":              {at: noon.Add(-time.Hour), phase: history.PhaseUpgrading, now: true, next: manager.UrgentPriority},
		"ended":                    {at: noon.Add(-time.Hour), phase: history.PhaseUpgraded},
		"due at the next pass":     {at: noon.Add(time.Minute), within: time.Minute, next: manager.UrgentPriority},
		"not due at the next pass": {at: noon.Add(time.Minute), within: 59 * time.Second},
		"without a time":           {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := &upgradev1alpha1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
			if !tc.at.IsZero() {
				obj.Spec.UpgradeAt = tc.at.Format(time.RFC3339)
			}
			if tc.phase != "" {
				record := newRecord(desired, tc.at)
				record.Phase, record.StartTime = tc.phase, toMetaTime(tc.at)
				if tc.phase == history.PhaseUpgraded {
					record.CompleteTime = toMetaTime(noon)
				}
				obj.Status.History = []history.Record{record}
			}
			if got := isUrgent(obj); got != tc.now {
				t.Errorf("urgent: %t, want %t", got, tc.now)
			}
			if got := r.priority(obj, noon.Add(tc.within)); got == nil || *got != tc.next {
				t.Errorf("priority of the next pass: %v, want %d", got, tc.next)
			}
		})
	}
}

func TestRequeueAfter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		next time.Time
		want time.Duration
	}{
		"nothing requested":      {want: maxRequeue},
		"soon":                   {next: noon.Add(20 * time.Millisecond), want: 20 * time.Millisecond},
		"later than is good":     {next: noon.Add(time.Hour), want: maxRequeue},
		"now":                    {next: noon, want: minRequeue},
		"in the past":            {next: noon.Add(-time.Hour), want: minRequeue},
		"a nanosecond ago":       {next: noon.Add(-1), want: minRequeue},
		"exactly at the longest": {next: noon.Add(maxRequeue), want: maxRequeue},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := requeueAfter(c.next, noon); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
