// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package silence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/alertmanager"
)

// requestTimeout limits the requests of one call of a step.
const requestTimeout = 20 * time.Second

// createdBy is the creator of the silences.
const createdBy = "managed-upgrade-operator"

// ensure brings the silences of this window in Alertmanager to their desired state. It returns when
// the silences expire, and the result with the time of the next extension.
func (w Window) ensure(ctx context.Context, now time.Time) (time.Time, engine.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	unclaimed, at, err := w.silencer.active(ctx, ownerMatcher(labelUID, w.attempt.UID), ownerMatcher(labelWindow, w.name))
	if err != nil {
		return time.Time{}, engine.Result{}, err
	}
	if !at.IsZero() {
		now = at
	}
	until, err := w.reconcile(ctx, unclaimed, now)
	return until, engine.WaitFor(until.Add(-w.settings.Lease/2).Sub(now), "Silenced", "the alerts are silenced"), err
}

// reconcile creates and extends silences before it ends others, because silencing an alert twice is
// better than not at all. It uses the time of Alertmanager, so a silence never lasts longer than
// its lease, even if the clock of this process is ahead.
func (w Window) reconcile(ctx context.Context, unclaimed []alertmanager.Silence, now time.Time) (time.Time, error) {
	until := w.expiry(now)
	for _, matchers := range w.desired() {
		at := slices.IndexFunc(unclaimed, func(s alertmanager.Silence) bool {
			return s.State == alertmanager.Active && sameMatchers(s.Matchers, matchers)
		})
		if at < 0 {
			if err := w.upsert(ctx, now, alertmanager.Silence{Matchers: matchers, StartsAt: now.Add(-w.settings.Lease)}); err != nil {
				return time.Time{}, err
			}
			continue
		}
		existing := unclaimed[at]
		unclaimed = slices.Delete(unclaimed, at, at+1)
		if remaining := existing.EndsAt.Sub(now); remaining > w.settings.Lease/2 && remaining <= w.settings.Lease {
			until = engine.Earliest(until, existing.EndsAt)
			continue
		}
		if err := w.upsert(ctx, now, existing); err != nil {
			return time.Time{}, err
		}
	}
	return until, w.silencer.expire(ctx, unclaimed)
}

// upsert creates or extends a silence. A new silence has a start in the past, so Alertmanager
// starts it now according to its own clock.
func (w Window) upsert(ctx context.Context, now time.Time, s alertmanager.Silence) error {
	s.EndsAt = w.expiry(now)
	s.CreatedBy = createdBy
	s.Comment = fmt.Sprintf("Upgrade to %s at %s, %s %s/%s, %s: extended while this lasts, and ended with it.",
		w.attempt.Version, w.attempt.Key, w.attempt.Kind, w.attempt.Namespace, w.attempt.Name, w.name)
	_, err := w.silencer.Alertmanager.Upsert(ctx, s)
	return err
}

func (w Window) expiry(now time.Time) time.Time {
	return now.Add(w.settings.Lease).Truncate(time.Second)
}

// active lists the unexpired silences with the matchers, sorted by their end, the latest first. It
// also returns the time of Alertmanager, or zero if it is unknown.
func (s *Silencer) active(ctx context.Context, filter ...alertmanager.Matcher) ([]alertmanager.Silence, time.Time, error) {
	found, now, err := s.Alertmanager.Silences(ctx, filter...)
	if err != nil {
		return nil, now, err
	}
	found = slices.DeleteFunc(found, func(s alertmanager.Silence) bool { return !s.InEffect() })
	slices.SortFunc(found, func(a, b alertmanager.Silence) int {
		return cmp.Or(b.EndsAt.Compare(a.EndsAt), strings.Compare(a.ID, b.ID))
	})
	return found, now, nil
}

// closeMatching ends all silences with the matchers and returns their number.
func (s *Silencer) closeMatching(ctx context.Context, filter ...alertmanager.Matcher) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	found, _, err := s.active(ctx, filter...)
	if err != nil {
		return 0, err
	}
	return len(found), s.expire(ctx, found)
}

// expire ends the silences. It tries all of them, even after an error.
func (s *Silencer) expire(ctx context.Context, all []alertmanager.Silence) error {
	var errs []error
	for _, one := range all {
		errs = append(errs, s.Alertmanager.Expire(ctx, one.ID))
	}
	return errors.Join(errs...)
}

// sameMatchers reports whether the matchers are the same, in any order.
func sameMatchers(a, b []alertmanager.Matcher) bool {
	return len(a) == len(b) && alertmanager.Silence{Matchers: a}.HasMatchers(b...) && alertmanager.Silence{Matchers: b}.HasMatchers(a...)
}
