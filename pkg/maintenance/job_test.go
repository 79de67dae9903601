// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
)

func TestEndPhase(t *testing.T) {
	t.Parallel()
	complete := new(metav1.NewTime(time.Unix(1, 0)))
	first := func(phase history.Phase) history.Record {
		return history.Record{Attempt: 1, Phase: phase, CompleteTime: complete}
	}
	retry := map[string]string{v1beta1.RetryAnnotation: "again"}
	for name, tc := range map[string]struct {
		job  v1beta1.UpgradeJob
		want history.Phase
	}{
		"no attempt":    {},
		"upgraded":      {v1beta1.UpgradeJob{Status: v1beta1.UpgradeJobStatus{History: []history.Record{first(history.PhaseUpgraded)}}}, history.PhaseUpgraded},
		"skipped":       {v1beta1.UpgradeJob{Status: v1beta1.UpgradeJobStatus{History: []history.Record{first(v1beta1.PhaseSkipped)}}}, v1beta1.PhaseSkipped},
		"failed":        {v1beta1.UpgradeJob{Status: v1beta1.UpgradeJobStatus{History: []history.Record{first(history.PhaseFailed)}}}, history.PhaseFailed},
		"unknown phase": {v1beta1.UpgradeJob{Status: v1beta1.UpgradeJobStatus{History: []history.Record{first("Other")}}}, ""},
		"not complete":  {v1beta1.UpgradeJob{Status: v1beta1.UpgradeJobStatus{History: []history.Record{{Attempt: 1, Phase: history.PhaseFailed, UpgradeAt: complete}}}}, ""},
		"later attempt": {v1beta1.UpgradeJob{Status: v1beta1.UpgradeJobStatus{History: []history.Record{{Attempt: 2, Phase: history.PhaseUpgrading}, first(history.PhaseFailed)}}}, ""},
		"finalizer": {v1beta1.UpgradeJob{
			ObjectMeta: metav1.ObjectMeta{Finalizers: []string{v1beta1.Finalizer}}, Status: v1beta1.UpgradeJobStatus{History: []history.Record{first(history.PhaseFailed)}},
		}, ""},
		"retry requested": {v1beta1.UpgradeJob{
			ObjectMeta: metav1.ObjectMeta{Annotations: retry}, Status: v1beta1.UpgradeJobStatus{History: []history.Record{first(history.PhaseFailed)}},
		}, ""},
		"retry answered": {v1beta1.UpgradeJob{
			ObjectMeta: metav1.ObjectMeta{Annotations: retry},
			Status:     v1beta1.UpgradeJobStatus{Retry: &v1beta1.RetryStatus{Token: "again"}, History: []history.Record{first(history.PhaseFailed)}},
		}, history.PhaseFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ended := maintenance.EndPhase(&tc.job)
			if got != tc.want || ended != (tc.want != "") {
				t.Errorf("got %q, ended: %t, want %q", got, ended, tc.want)
			}
		})
	}
}

func TestIsOver(t *testing.T) {
	t.Parallel()
	at := new(metav1.NewTime(time.Unix(1, 0)))
	ended := history.Record{Attempt: 1, Phase: history.PhaseFailed, UpgradeAt: at, CompleteTime: at}
	running := history.Record{Attempt: 2, Phase: history.PhaseUpgrading, UpgradeAt: at, StartTime: at}
	for name, tc := range map[string]struct {
		history    []history.Record
		finalizers []string
		latest     int32 // 0 means none
		want       bool
	}{
		"no attempt":                     {},
		"ended":                          {history: []history.Record{ended}, latest: 1, want: true},
		"finalizer":                      {history: []history.Record{ended}, finalizers: []string{v1beta1.Finalizer}, latest: 1},
		"finalizer of another client":    {history: []history.Record{ended}, finalizers: []string{"foregroundDeletion"}, latest: 1, want: true},
		"retry in progress":              {history: []history.Record{running, ended}, latest: 2},
		"retry in progress, other order": {history: []history.Record{ended, running}, latest: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := &v1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{Finalizers: tc.finalizers}, Status: v1beta1.UpgradeJobStatus{History: tc.history}}
			if got := maintenance.IsOver(job); got != tc.want {
				t.Errorf("it is over: %t, want %t", got, tc.want)
			}
			latest := int32(0)
			if record := maintenance.LatestAttempt(job); record != nil {
				latest = record.Attempt
			}
			if latest != tc.latest {
				t.Errorf("the latest attempt is %d, want %d", latest, tc.latest)
			}
		})
	}
}
