// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// The controller of a finished upgrade releases its lock itself. If it cannot, because nothing reconciles the object,
// this answer breaks the lock.
func TestHolderInProgress(t *testing.T) {
	t.Parallel()
	record := func(finished bool, at time.Time) history.Record {
		r := history.Record{Version: desired, Phase: history.PhaseUpgrading, Attempt: 1, UpgradeAt: toMetaTime(at), StartTime: toMetaTime(at)}
		if finished {
			r.Phase, r.CompleteTime = history.PhaseUpgraded, toMetaTime(at.Add(time.Hour))
		}
		return r
	}
	object := func(records ...history.Record) client.Object {
		return &upgradev1alpha1.UpgradeConfig{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", UID: "1"},
			Status:     upgradev1alpha1.UpgradeConfigStatus{History: records},
		}
	}
	held := lock.Attempt{Version: desired, Key: record(false, tenPast).Key()}
	for name, tc := range map[string]struct {
		cached, live client.Object
		uid          string
		attempt      lock.Attempt
		want         bool
	}{
		"no object":                              {attempt: held, want: false},
		"another object of the name":             {cached: object(record(false, tenPast)), uid: "2", attempt: held, want: false},
		"attempt in progress":                    {cached: object(record(false, tenPast)), attempt: held, want: true},
		"attempt that is not recorded yet":       {cached: object(), attempt: held, want: true},
		"finished attempt":                       {cached: object(record(true, tenPast)), attempt: held, want: false},
		"finished attempt, any is asked for":     {cached: object(record(true, tenPast)), want: false},
		"another attempt than the finished one":  {cached: object(record(true, noon)), attempt: held, want: true},
		"finished attempt in an old cache":       {cached: object(record(false, tenPast)), live: object(record(true, tenPast)), attempt: held, want: true},
		"attempt in progress, object not cached": {live: object(record(false, tenPast)), attempt: held, want: true},
		"finished attempt, object not cached":    {live: object(record(true, tenPast)), attempt: held, want: false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reader := func(objects ...client.Object) client.WithWatch {
				if objects[0] == nil {
					objects = nil
				}
				return simulation.NewFakeClient(t, objects...)
			}
			r := &Reconciler[testObject]{Kind: stubKind{}, Client: reader(tc.cached), Live: reader(tc.live)}
			got, err := r.holderInProgress(t.Context(), lock.Holder{Kind: "UpgradeConfig", Namespace: "a", Name: "b", UID: cmp.Or(tc.uid, "1")}, tc.attempt)
			if err != nil || got != tc.want {
				t.Errorf("got %t, %v, want %t", got, err, tc.want)
			}
		})
	}
}
