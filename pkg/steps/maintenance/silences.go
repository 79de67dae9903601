// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/alertmanager"
)

// maxLook bounds one look, with all its requests.
const maxLook = 20 * time.Second

// createdBy is who makes the silences, for people.
const createdBy = "managed-upgrade-operator"

// silence makes what Alertmanager has of this window what it should have, and
// returns until when the alerts are silenced. What came of it is remembered.
func (w Window) silence(ctx context.Context, now time.Time) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, maxLook)
	defer cancel()
	until, err := w.reconcile(ctx, now)
	if err != nil {
		w.silencer.remember(w, memory{at: now, due: now.Add(retry), err: err})
		return time.Time{}, err
	}
	w.silencer.remember(w, memory{at: now, due: until.Add(-w.settings.Lease / 2)})
	return until, nil
}

// reconcile first makes and prolongs, and then ends: alerts are rather silenced
// twice than not.
func (w Window) reconcile(ctx context.Context, now time.Time) (time.Time, error) {
	spare, err := w.silencer.alive(ctx, mark(labelUID, w.about.UID), mark(labelWindow, w.name))
	if err != nil {
		return time.Time{}, err
	}
	until := w.lapse(now)
	for _, matchers := range w.wanted() {
		at := slices.IndexFunc(spare, func(s alertmanager.Silence) bool {
			return s.State == alertmanager.Active && alike(s.Matchers, matchers)
		})
		if at < 0 {
			if err := w.set(ctx, now, alertmanager.Silence{Matchers: matchers, StartsAt: now.Add(-w.settings.Lease)}); err != nil {
				return time.Time{}, err
			}
			continue
		}
		kept := spare[at]
		spare = slices.Delete(spare, at, at+1)
		if left := kept.EndsAt.Sub(now); left > w.settings.Lease/2 && left <= w.settings.Lease {
			until = earlier(until, kept.EndsAt)
			continue
		}
		if err := w.set(ctx, now, kept); err != nil {
			return time.Time{}, err
		}
	}
	return until, w.silencer.expire(ctx, spare)
}

// set makes or prolongs a silence. One that is to be made begins in the past:
// Alertmanager takes that for now, whatever time its clock shows.
func (w Window) set(ctx context.Context, now time.Time, s alertmanager.Silence) error {
	s.EndsAt = w.lapse(now)
	s.CreatedBy = createdBy
	s.Comment = fmt.Sprintf("Upgrade to %s, UpgradeConfig %s/%s, attempt %d, %s: prolonged for as long as this lasts, ended with it.",
		w.about.Version, w.about.Namespace, w.about.Name, w.about.Attempt, w.name)
	_, err := w.silencer.Alertmanager.Set(ctx, s)
	return err
}

func (w Window) lapse(now time.Time) time.Time {
	return now.Add(w.settings.Lease).Truncate(time.Second)
}

// alive lists the silences which have the matchers and have not ended, that
// which lasts longest first.
func (s *Silencer) alive(ctx context.Context, having ...alertmanager.Matcher) ([]alertmanager.Silence, error) {
	found, err := s.Alertmanager.Silences(ctx, having...)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(s alertmanager.Silence) bool { return !s.Alive() })
	slices.SortFunc(found, func(a, b alertmanager.Silence) int {
		return cmp.Or(b.EndsAt.Compare(a.EndsAt), strings.Compare(a.ID, b.ID))
	})
	return found, nil
}

// end ends all silences which have the matchers, and says how many there were.
func (s *Silencer) end(ctx context.Context, having ...alertmanager.Matcher) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, maxLook)
	defer cancel()
	found, err := s.alive(ctx, having...)
	if err != nil {
		return 0, err
	}
	return len(found), s.expire(ctx, found)
}

// expire ends each of the silences that can be ended.
func (s *Silencer) expire(ctx context.Context, all []alertmanager.Silence) error {
	var wrong []error
	for _, one := range all {
		wrong = append(wrong, s.Alertmanager.Expire(ctx, one.ID))
	}
	return errors.Join(wrong...)
}

// alike says whether the matchers are the same, in whatever order.
func alike(a, b []alertmanager.Matcher) bool {
	return len(a) == len(b) && alertmanager.Silence{Matchers: a}.Has(b...) && alertmanager.Silence{Matchers: b}.Has(a...)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
