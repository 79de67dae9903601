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

// HistoryKey is what identifies a record in the history of an object.
type HistoryKey int

const (
	// ByVersion keeps a record per version. It is that of the last attempt at the version, and sums
	// up the earlier ones.
	ByVersion HistoryKey = iota
	// ByAttempt keeps a record per attempt, whatever its version.
	ByAttempt
)

// same reports whether two records are the same element of the history.
func (k HistoryKey) same(a, b history.Record) bool {
	if k == ByAttempt {
		return a.Attempt == b.Attempt
	}
	return a.Version == b.Version
}

// currentRecord returns the record of the attempt in progress, whatever the spec requests by now,
// or else that of the attempt that the spec requests, which may be new.
func currentRecord(records []history.Record, request Request, key HistoryKey) history.Record {
	fresh := newRecord(request.Version, request.At)
	if i := slices.IndexFunc(records, history.Record.InProgress); i >= 0 {
		record := *records[i].DeepCopy()
		if record.UpgradeAt == nil { // of a release that did not record the time: it would be over once it fails
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
	case previous.Finished() && previous.UpgradeAt == nil && fresh.UpgradeAt != nil: // of a release that did not record the time
		previous.UpgradeAt, previous.CompleteTime = fresh.UpgradeAt, cmp.Or(lastTime(previous), fresh.UpgradeAt)
		return previous
	case previous.Finished() && previous.Phase == history.PhaseFailed && previous.Key() != fresh.Key():
		return nextAttempt(previous, fresh)
	case !previous.Finished() && previous.Key() != fresh.Key():
		fresh.Attempt, fresh.PreviousAttempts = max(previous.Attempt, 1), previous.PreviousAttempts
		return fresh
	}
	return previous
}

// currentAttempt returns the record of the attempt that the spec requests in a history with a record
// per attempt.
func currentAttempt(records []history.Record, fresh history.Record) history.Record {
	for i := range records {
		if records[i].Version == fresh.Version && records[i].Key() == fresh.Key() {
			return *records[i].DeepCopy()
		}
	}
	return fresh
}

// nextNumber returns the number of an attempt after those of the history.
func nextNumber(records []history.Record) int32 {
	last := int32(0)
	for i := range records {
		if records[i].StartTime != nil || records[i].Finished() {
			last = max(last, records[i].Attempt)
		}
	}
	return max(last, last+1) // it may be the greatest number already
}

// lastTime returns the time at which a finished attempt was last seen doing something; nil if the
// record contains no time at all.
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

// nextAttempt returns the record of an attempt after one that failed.
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

// failedStep returns the name of the step that failed the attempt; empty if none did.
func failedStep(record history.Record) string {
	for _, c := range record.Conditions {
		if c.CompleteTime != nil && c.Status == metav1.ConditionFalse {
			return c.Type
		}
	}
	return ""
}

// lostRecord returns the record of an attempt that is known only from the Lease.
func lostRecord(attempt lock.Attempt) history.Record {
	at, _ := time.Parse(time.RFC3339, attempt.Key) // zero if the Lease does not name the time
	return newRecord(attempt.Version, at)
}

// commencedBefore reports whether an earlier attempt at the same version had commenced.
func commencedBefore(record history.Record) bool {
	return slices.ContainsFunc(record.PreviousAttempts, func(a history.PreviousAttempt) bool { return a.CommenceTime != nil })
}

// maxChannels is the number of requested channels in a record.
const maxChannels = 8

// addChannel returns the channels with one that is requested; empty means none. The oldest is
// dropped beyond the limit.
func addChannel(channels []string, requested string) []string {
	if requested == "" || slices.Contains(channels, requested) {
		return channels
	}
	channels = append(slices.Clone(channels), requested)
	return channels[max(len(channels)-maxChannels, 0):]
}

// upsertRecord returns the history with that record first. The records of attempts that never
// started and that the spec no longer requests are dropped, and so are the oldest ones beyond the
// limit.
func upsertRecord(records []history.Record, record history.Record, key HistoryKey, limit int) []history.Record {
	rest := slices.DeleteFunc(slices.Clone(records), func(r history.Record) bool {
		return key.same(r, record) || r.StartTime == nil && !r.Finished() && len(r.PreviousAttempts) == 0
	})
	records = append([]history.Record{record}, rest...)
	return records[:min(len(records), limit)]
}
