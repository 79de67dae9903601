// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
)

// HistoryKey is how the history of an object identifies a record.
type HistoryKey int

const (
	// ByVersion keeps a record per version. It belongs to the last attempt at the version, and sums up earlier
	// attempts.
	ByVersion HistoryKey = iota
	// ByAttempt keeps a record per attempt, whatever its version.
	ByAttempt
)

// Limit returns how many records an object keeps.
func (k HistoryKey) Limit() int {
	if k == ByAttempt {
		return 5
	}
	return 16
}

// same reports whether two records are the same element of the history.
func (k HistoryKey) same(a, b history.Record) bool {
	if k == ByAttempt {
		return a.Attempt == b.Attempt
	}
	return a.Version == b.Version
}

// currentRecord returns the record of the attempt in progress, whatever the spec requests by now. Without one,
// it returns the record of the requested attempt, new or existing.
func currentRecord(status Status, request AttemptRequest, key HistoryKey) history.Record {
	records := *status.History
	fresh := newRecord(request.Version, request.At)
	if i := slices.IndexFunc(records, history.Record.InProgress); i >= 0 {
		record := *records[i].DeepCopy()
		if record.UpgradeAt == nil { // written by a release that did not record the time: without it, a failure would end the attempt for good
			record.UpgradeAt = fresh.UpgradeAt
		}
		return record
	}
	if key == ByAttempt {
		fresh.Attempt = cmp.Or(request.Number, nextNumber(records))
		return currentAttempt(records, fresh)
	}
	i := slices.IndexFunc(records, func(r history.Record) bool { return r.Version == fresh.Version })
	if i < 0 {
		return fresh
	}
	previous := *records[i].DeepCopy()
	switch {
	case previous.Finished() && previous.UpgradeAt == nil && fresh.UpgradeAt != nil: // written by a release that did not record the time
		previous.UpgradeAt, previous.CompleteTime = fresh.UpgradeAt, cmp.Or(lastTime(previous), fresh.UpgradeAt)
		return previous
	case previous.Finished() && previous.Phase == history.PhaseFailed && previous.Key() != fresh.Key():
		return nextAttempt(previous, fresh)
	case isUnstartedRetry(previous) && previous.PreviousAttempts[0].UpgradeAt.Equal(fresh.UpgradeAt):
		return lastAttempt(previous, status.records())
	case !previous.Finished() && previous.Key() != fresh.Key():
		fresh.Attempt, fresh.PreviousAttempts = max(previous.Attempt, 1), previous.PreviousAttempts
		return fresh
	}
	return previous
}

// currentAttempt returns the record of the requested attempt in a history with a record per attempt.
func currentAttempt(records []history.Record, fresh history.Record) history.Record {
	for i := range records {
		if records[i].Version == fresh.Version && records[i].Key() == fresh.Key() {
			return *records[i].DeepCopy()
		}
	}
	return fresh
}

// nextNumber returns the number of the next attempt.
func nextNumber(records []history.Record) int32 {
	last := int32(0)
	for i := range records {
		if records[i].StartTime != nil || records[i].Finished() {
			last = max(last, records[i].Attempt)
		}
	}
	return max(last, last+1) // it may be the greatest number already
}

// lastTime returns the last recorded activity of a finished attempt, or nil if the record contains no time.
func lastTime(record history.Record) *metav1.Time {
	last := cmp.Or(record.CompleteTime, record.StartTime)
	if record.CompleteTime != nil {
		return last
	}
	for _, c := range record.Conditions {
		if last == nil || c.CompleteTime != nil && last.Before(c.CompleteTime) {
			last = c.CompleteTime
		}
	}
	return last
}

func newRecord(version string, at time.Time) history.Record {
	record := history.Record{Version: version, Phase: history.PhaseNew, Attempt: 1}
	if !at.IsZero() {
		record.UpgradeAt = toMetaTime(at)
	}
	return record
}

// nextAttempt returns the record of an attempt after a failed one.
func nextAttempt(failed, fresh history.Record) history.Record {
	fresh.Attempt = max(failed.Attempt, failed.Attempt+1) // it may be the greatest number already
	summary := history.PreviousAttempt{
		Attempt: max(failed.Attempt, 1), UpgradeAt: failed.UpgradeAt, Phase: failed.Phase,
		Reason: failed.Reason, Message: failed.Message, FailedStep: failedStep(failed),
		StartTime: failed.StartTime, CommenceTime: failed.CommenceTime, CompleteTime: failed.CompleteTime,
	}
	all := append([]history.PreviousAttempt{summary}, failed.PreviousAttempts...)
	fresh.PreviousAttempts = all[:min(len(all), history.MaxPreviousAttempts)]
	return fresh
}

// isUnstartedRetry reports whether a record belongs to a retry that has not started.
func isUnstartedRetry(r history.Record) bool {
	return r.StartTime == nil && !r.Finished() && len(r.PreviousAttempts) > 0
}

// isAttempt reports whether two records belong to the same attempt.
func isAttempt(a, b history.Record) bool {
	return a.Version == b.Version && a.Attempt == b.Attempt && a.Key() == b.Key()
}

// lastAttempt returns the record of the attempt before a retry that is no longer requested. Earlier releases
// kept only a summary of it.
func lastAttempt(requested history.Record, replaced []history.Record) history.Record {
	last := requested.PreviousAttempts[0]
	if i := slices.IndexFunc(replaced, func(r history.Record) bool { return isReplacedBy(r, requested) }); i >= 0 {
		return *replaced[i].DeepCopy()
	}
	return history.Record{
		Version: requested.Version, Attempt: last.Attempt, UpgradeAt: last.UpgradeAt, Phase: last.Phase, Reason: last.Reason, Message: last.Message,
		StartTime: last.StartTime, CommenceTime: last.CommenceTime, CompleteTime: last.CompleteTime, PreviousAttempts: requested.PreviousAttempts[1:],
	}
}

// isReplacedBy reports whether a retry directly follows an attempt.
func isReplacedBy(failed, retry history.Record) bool {
	return failed.Version == retry.Version && len(retry.PreviousAttempts) > 0 &&
		failed.Attempt == retry.PreviousAttempts[0].Attempt && failed.Key() == retry.PreviousAttempts[0].Key()
}

// failedStep returns the name of the step that failed the attempt, or an empty string.
func failedStep(record history.Record) string {
	for _, c := range record.Conditions {
		if c.CompleteTime != nil && c.Status == metav1.ConditionFalse {
			return c.Type
		}
	}
	return ""
}

// lostRecord returns a record for an attempt that only the Lease shows.
func lostRecord(attempt lock.Attempt) history.Record {
	at, _ := time.Parse(time.RFC3339, attempt.Key) // zero if the Lease does not name the time
	return newRecord(attempt.Version, at)
}

// maxChannels bounds the requested channels in a record.
const maxChannels = 8

// addChannel adds a requested channel, unless it is empty or listed. Beyond the limit, it drops the oldest.
func addChannel(channels []string, requested string) []string {
	if requested == "" || slices.Contains(channels, requested) {
		return channels
	}
	channels = append(slices.Clone(channels), requested)
	return channels[max(len(channels)-maxChannels, 0):]
}

// upsertRecord returns the history with that record first. It drops the records of attempts that never started
// and are no longer requested, or replaces them with the attempts that they had replaced. It also drops the
// oldest records beyond the limit.
func upsertRecord(records, replaced []history.Record, record history.Record, key HistoryKey, limit int) []history.Record {
	all := []history.Record{record}
	for _, r := range records {
		kept := r.StartTime != nil || r.Finished()
		if isUnstartedRetry(r) && !key.same(r, record) {
			r, kept = lastAttempt(r, replaced), true
		}
		if kept && !slices.ContainsFunc(all, func(other history.Record) bool { return key.same(other, r) }) {
			all = append(all, r)
		}
	}
	return all[:min(len(all), limit)]
}

// replacedRecords returns the records of failed attempts that an object keeps beside its history: a retry that
// has not started has replaced them, or their results are undelivered. It selects them from former records of
// the object.
func replacedRecords(records, former []history.Record, now time.Time) []history.Record {
	var kept []history.Record
	for _, r := range former {
		i := slices.IndexFunc(records, func(other history.Record) bool { return other.Version == r.Version })
		if i < 0 || isAttempt(records[i], r) || r.Phase != history.PhaseFailed || !r.Finished() {
			continue
		}
		if isUnstartedRetry(records[i]) && isReplacedBy(r, records[i]) || isResultPending(r, now) {
			kept = append(kept, r)
		}
	}
	return kept[:min(len(kept), history.MaxPreviousAttempts)]
}
