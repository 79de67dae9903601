// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
)

func TestEndPhase(t *testing.T) {
	t.Parallel()
	complete := new(metav1.NewTime(time.Unix(1, 0)))
	first := func(phase history.Phase) history.Record {
		return history.Record{Attempt: 1, Phase: phase, CompleteTime: complete}
	}
	retry := map[string]string{maintenancev1beta1.RetryAnnotation: "again"}
	for name, tc := range map[string]struct {
		job  maintenancev1beta1.UpgradeJob
		want history.Phase
	}{
		"no attempt":    {},
		"upgraded":      {maintenancev1beta1.UpgradeJob{Status: maintenancev1beta1.UpgradeJobStatus{History: []history.Record{first(history.PhaseUpgraded)}}}, history.PhaseUpgraded},
		"skipped":       {maintenancev1beta1.UpgradeJob{Status: maintenancev1beta1.UpgradeJobStatus{History: []history.Record{first(maintenancev1beta1.PhaseSkipped)}}}, maintenancev1beta1.PhaseSkipped},
		"failed":        {maintenancev1beta1.UpgradeJob{Status: maintenancev1beta1.UpgradeJobStatus{History: []history.Record{first(history.PhaseFailed)}}}, history.PhaseFailed},
		"unknown phase": {maintenancev1beta1.UpgradeJob{Status: maintenancev1beta1.UpgradeJobStatus{History: []history.Record{first("Other")}}}, ""},
		"not complete":  {maintenancev1beta1.UpgradeJob{Status: maintenancev1beta1.UpgradeJobStatus{History: []history.Record{{Attempt: 1, Phase: history.PhaseFailed, UpgradeAt: complete}}}}, ""},
		"later attempt": {maintenancev1beta1.UpgradeJob{Status: maintenancev1beta1.UpgradeJobStatus{History: []history.Record{{Attempt: 2, Phase: history.PhaseUpgrading}, first(history.PhaseFailed)}}}, ""},
		"finalizer": {maintenancev1beta1.UpgradeJob{
			ObjectMeta: metav1.ObjectMeta{Finalizers: []string{maintenancev1beta1.Finalizer}}, Status: maintenancev1beta1.UpgradeJobStatus{History: []history.Record{first(history.PhaseFailed)}},
		}, ""},
		"retry requested": {maintenancev1beta1.UpgradeJob{
			ObjectMeta: metav1.ObjectMeta{Annotations: retry}, Status: maintenancev1beta1.UpgradeJobStatus{History: []history.Record{first(history.PhaseFailed)}},
		}, ""},
		"retry answered": {maintenancev1beta1.UpgradeJob{
			ObjectMeta: metav1.ObjectMeta{Annotations: retry},
			Status:     maintenancev1beta1.UpgradeJobStatus{Retry: &maintenancev1beta1.RetryStatus{Token: "again"}, History: []history.Record{first(history.PhaseFailed)}},
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
		latest     int32 // 0 for none
		want       bool
	}{
		"no attempt":                     {},
		"ended":                          {history: []history.Record{ended}, latest: 1, want: true},
		"finalizer":                      {history: []history.Record{ended}, finalizers: []string{maintenancev1beta1.Finalizer}, latest: 1},
		"finalizer of another client":    {history: []history.Record{ended}, finalizers: []string{"foregroundDeletion"}, latest: 1, want: true},
		"retry in progress":              {history: []history.Record{running, ended}, latest: 2},
		"retry in progress, other order": {history: []history.Record{ended, running}, latest: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := &maintenancev1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{Finalizers: tc.finalizers}, Status: maintenancev1beta1.UpgradeJobStatus{History: tc.history}}
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
