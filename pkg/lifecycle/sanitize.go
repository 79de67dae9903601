// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// The limits of the API, or lower ones.
const (
	maxSteps         = 64
	maxRecordMessage = 2048
	maxYear          = 9999
)

// ownConditions returns the conditions that the lifecycle and the kind maintain. Other conditions could leave
// no room for these.
func ownConditions(all []metav1.Condition, ofKind []string) []metav1.Condition {
	own := append([]string{
		history.ConditionAccepted, history.ConditionProgressing, history.ConditionSucceeded, history.ConditionSlow,
		history.ConditionReady, history.ConditionReconciling, history.ConditionStalled,
		history.ConditionPaused, history.ConditionPreCheckPassed, history.ConditionDegraded,
	}, ofKind...)
	return slices.DeleteFunc(slices.Clone(all), func(c metav1.Condition) bool { return !slices.Contains(own, c.Type) })
}

// sanitizeHistory makes any history acceptable to the API server: it keeps the newest 64 steps of a record, and
// no time beyond the year 9999.
func sanitizeHistory(records []history.Record) []history.Record {
	records = slices.Clone(records)
	for i := range records {
		r := &records[i]
		r.Message = strings.ToValidUTF8(r.Message, "\uFFFD")
		for _, at := range []**metav1.Time{&r.UpgradeAt, &r.RequestTime, &r.StartTime, &r.CommenceTime, &r.CompleteTime, &r.WorkerStartTime, &r.WorkerCompleteTime, &r.NotifiedTime} {
			*at = clampTime(*at)
		}
		r.Conditions = sanitizeSteps(r.Conditions)
		r.PreviousAttempts = sanitizeAttempts(r.PreviousAttempts)
	}
	return records
}

func sanitizeAttempts(attempts []history.PreviousAttempt) []history.PreviousAttempt {
	attempts = slices.Clone(attempts)
	for i := range attempts {
		a := &attempts[i]
		for _, at := range []**metav1.Time{&a.UpgradeAt, &a.StartTime, &a.CommenceTime, &a.CompleteTime} {
			*at = clampTime(*at)
		}
	}
	return attempts
}

func sanitizeSteps(steps []history.StepCondition) []history.StepCondition {
	steps = slices.Clone(steps[:min(len(steps), maxSteps)])
	for i := range steps {
		c := &steps[i]
		for _, at := range []**metav1.Time{&c.StartTime, &c.CompleteTime, &c.LastProbeTime, &c.LastTransitionTime, &c.ReasonTime, &c.ProgressTime} {
			*at = clampTime(*at)
		}
	}
	return steps
}

// clampTime returns nil for a time that JSON cannot hold.
func clampTime(t *metav1.Time) *metav1.Time {
	if t != nil && (t.IsZero() || t.UTC().Year() > maxYear || t.UTC().Year() < 0) {
		return nil
	}
	return t
}

// fitSteps returns the conditions of a record with enough room for all steps of the runbook. If there are too
// many, it drops steps that this release does not know, from the end.
func fitSteps(steps []history.StepCondition, book engine.Runbook) []history.StepCondition {
	known := map[string]bool{}
	for _, table := range [][]engine.Step{book.Steps, book.Cleanup, book.Finally} {
		for i := range table {
			known[table[i].Name] = true
			for _, name := range table[i].FormerNames {
				known[name] = true
			}
		}
	}
	room := maxSteps - len(known)
	return slices.DeleteFunc(slices.Clone(steps), func(c history.StepCondition) bool {
		if known[c.Type] {
			return false
		}
		room--
		return room < 0
	})
}
