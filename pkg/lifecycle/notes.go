// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
)

// attempt returns the note of the attempt for the Lease.
func (s *scope[T]) attempt(record history.Record) lock.Attempt {
	attempt := lock.Attempt{
		Key: record.Key(), Version: record.Version, Type: s.runbookType,
		Requested: record.RequestTime != nil, PrecedingVersion: record.PrecedingVersion,
	}
	if s.Kind.HistoryKey() == ByAttempt {
		attempt.Number = record.Attempt
	}
	if record.PrecedingChannel != nil {
		attempt.Channels, attempt.FormerChannel = strings.Join(record.Channels, ","), *record.PrecedingChannel
	}
	if attempt.Requested {
		attempt.Image, attempt.RequestTime = noteOfImage(record.RequestedImage), record.RequestTime.UTC().Format(time.RFC3339)
	}
	if record.CommenceTime != nil && !s.lock.DeleteFree { // nothing reads the note of a deleted Lease
		attempt.CommenceTime = record.CommenceTime.UTC().Format(time.RFC3339)
		attempt.Notified = strings.Join(notifiedMilestones(record), ",")
	}
	return attempt
}

func noteOfImage(image *string) string {
	if image == nil {
		return ""
	}
	return cmp.Or(*image, lock.NoImage)
}

// notedImage returns the requested image of a note, or nil if the note has none.
func notedImage(attempt lock.Attempt) *string {
	if !attempt.Requested || attempt.Image == "" {
		return nil
	}
	return new(strings.TrimPrefix(attempt.Image, lock.NoImage))
}

// notedRequest returns the noted time of the request, or now if it is not noted.
func notedRequest(attempt lock.Attempt, now time.Time) *metav1.Time {
	at, err := time.Parse(time.RFC3339, attempt.RequestTime)
	if err != nil {
		at = now
	}
	return toMetaTime(at)
}

// maxMilestones bounds the milestones in a record that were notified for an earlier object.
const maxMilestones = 16

// notifiedMilestones returns the milestones that were notified about an attempt, for this object or an earlier
// one.
func notifiedMilestones(record history.Record) []string {
	var all []string
	for _, m := range record.NotifiedMilestones {
		all = append(all, string(m))
	}
	for _, c := range record.Conditions {
		if c.CompleteTime != nil && c.Milestone != "" && !slices.Contains(all, string(c.Milestone)) {
			all = append(all, string(c.Milestone))
		}
	}
	return all[:min(len(all), maxMilestones)]
}

// recoverNotes adds what the Lease notes about the attempt and the record lacks.
func (s *scope[T]) recoverNotes(attempt lock.Attempt) {
	r, before := &s.record, s.attempt(s.record)
	if r.RequestTime == nil && (attempt.Requested || s.claimed && attempt.Key == "") { // an earlier release did not note it
		r.RequestTime = notedRequest(attempt, s.now)
	}
	if r.PrecedingChannel == nil && attempt.Channels != "" {
		r.PrecedingChannel, r.Channels = &attempt.FormerChannel, strings.Split(attempt.Channels, ",")
	}
	if image := notedImage(attempt); image != nil {
		r.RequestedImage = image
	}
	r.PrecedingVersion = cmp.Or(r.PrecedingVersion, attempt.PrecedingVersion)
	if at, err := time.Parse(time.RFC3339, attempt.CommenceTime); err == nil && r.CommenceTime == nil {
		r.CommenceTime = toMetaTime(at)
	}
	if s.claimed && attempt.Notified != "" {
		r.NotifiedMilestones = nil
		for m := range strings.SplitSeq(attempt.Notified, ",") {
			r.NotifiedMilestones = append(r.NotifiedMilestones, history.Milestone(m))
		}
	}
	if s.attempt(s.record) != before {
		s.setPlan(s.record)
	}
}

// adoptContinuing adopts an upgrade to the requested version that has commenced and continues since an earlier
// object of this name was deleted. It reports whether there is one.
func (s *scope[T]) adoptContinuing(ctx context.Context) (bool, error) {
	if !s.isNew() {
		return false, nil
	}
	attempt, found, err := s.lock.Continuing(ctx, s.holder(s.obj))
	s.continuing = attempt
	if err != nil || !found || attempt.Version != s.request.Version {
		return false, err
	}
	record, requested := s.record, s.request
	if key := newRecord("", s.request.At).Key(); key != "" { // it is the attempt that this object requests
		attempt.Key, attempt.Number = key, 0
	}
	s.resumeClaim(attempt, false)
	if begun := s.record; s.plan.Known {
		begun.CommenceTime, begun.RequestTime = nil, toMetaTime(s.now) // the cluster decides whether the update is still this one
		phase, err := engine.CurrentPhase(ctx, s.Clock, s.plan.Book, begun)
		if err != nil || phase == engine.PhaseCommitted {
			return true, err
		}
	}
	s.claimed, s.request = false, requested
	s.setAttempt(record, requested.RunbookType)
	return false, nil
}

// isNew reports whether, as far as the object shows, no step of an attempt at the requested version has begun.
func (s *scope[T]) isNew() bool {
	return !s.deleted() && s.record.StartTime == nil && !s.record.Finished()
}

// confirmContinuing returns errStaleCache if, at the start of the pass, the cached Lease lacked an upgrade that
// continues without its object: no new attempt may start, or end, beside it.
func (s *scope[T]) confirmContinuing(ctx context.Context) error {
	if s.claimed || !s.isNew() || s.lock.DeleteFree {
		return nil
	}
	live, _, err := s.lock.ContinuingConfirmed(ctx, s.holder(s.obj))
	if err == nil && live != s.continuing {
		err = errStaleCache
	}
	return err
}
