// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package silence

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/alertmanager"
)

// Alertmanager keeps silences. It is usually an *alertmanager.Client.
type Alertmanager interface {
	Silences(ctx context.Context, having ...alertmanager.Matcher) ([]alertmanager.Silence, error)
	Upsert(ctx context.Context, s alertmanager.Silence) (id string, err error)
	Expire(ctx context.Context, id string) error
}

// Silencer makes windows. It is made once and used for every look: it remembers
// when a silence is to be prolonged, so that nothing is asked until then.
type Silencer struct {
	// Alertmanager is asked; nil: there is none, and the steps are skipped.
	Alertmanager Alertmanager

	mu    sync.Mutex
	cache map[cacheKey]cacheEntry
}

// Settings are how windows are kept.
type Settings struct {
	// Lease is how long a silence lasts unless it is prolonged: so long do
	// alerts stay silenced if the operator is gone.
	Lease time.Duration
	// Timeout is for how long a step tries before the upgrade goes on without.
	Timeout time.Duration
}

// Window is a time in which alerts are silenced for an attempt.
type Window struct {
	silencer *Silencer
	attempt  engine.AttemptRef
	name     string
	scope    Scope
	settings Settings
}

// Window is the window of that name, which stands in the silences, as in ControlPlane.
func (s *Silencer) Window(attempt engine.AttemptRef, name string, scope Scope, settings Settings) Window {
	return Window{silencer: s, attempt: attempt, name: name, scope: scope, settings: settings}
}

const (
	reasonNotConfigured = "NotConfigured" // nobody to ask, or nothing to silence
	reasonNotSilenced   = "NotSilenced"   // alerts are told although they should not be
	reasonNotEnded      = "NotEnded"      // alerts are not told although they should be
	reasonNothingToEnd  = "NothingToEnd"  // the silences have lapsed, or were never made
)

// Open silences the alerts. If that does not work for as long as patience
// lasts, the step is skipped as NotSilenced; Kept goes on trying.
func (w Window) Open() engine.UpgradeStep {
	return w.silencer.retryUntil(w.settings.Timeout, reasonNotSilenced, "the alerts are not silenced",
		func(ctx context.Context, now time.Time) (engine.Result, error) {
			if len(w.desired()) == 0 {
				return engine.Skip(reasonNotConfigured, "no alerts are to be silenced"), nil
			}
			until, err := w.ensure(ctx, now)
			if err != nil {
				return engine.Result{}, err
			}
			return engine.Done("silenced until %s, and longer where it takes longer: %s", until.UTC().Format(time.RFC3339), w.scope), nil
		})
}

// KeepAlive is a keeper: it prolongs the silences at their half-life, and makes them
// anew if they are gone. Until then it asks nobody. While that does not work,
// it tries once a minute.
func (w Window) KeepAlive() engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		if w.silencer.Alertmanager == nil || len(w.desired()) == 0 {
			return engine.Result{}, nil
		}
		entry, ok := w.silencer.get(w, run.Now)
		if !ok {
			_, _ = w.ensure(ctx, run.Now) // what came of it is remembered
			entry, _ = w.silencer.get(w, run.Now)
		}
		if entry.err != nil {
			return engine.Result{}, fmt.Errorf("keeping the alerts silenced: %w", entry.err)
		}
		return engine.WaitFor(entry.due.Sub(run.Now), "Silenced", "the alerts are silenced"), nil
	}
}

// Close ends the silences. If there are none, it is skipped; and if that does
// not work for as long as patience lasts, it is skipped as NotEnded: they lapse.
func (w Window) Close() engine.UpgradeStep {
	return w.silencer.closeStep(w.attempt, w.settings, ownerMatcher(labelUID, w.attempt.UID), ownerMatcher(labelWindow, w.name))
}

// CloseAll ends every silence that was made for the UpgradeConfig, of whatever
// window and attempt. It is skipped where Ended is.
func (s *Silencer) CloseAll(attempt engine.AttemptRef, settings Settings) engine.UpgradeStep {
	return s.closeStep(attempt, settings, ownerMatcher(labelUID, attempt.UID))
}

// CloseNow ends what AllEnded ends, if that works at the first try: nobody waits
// for silences that lapse.
func (s *Silencer) CloseNow(ctx context.Context, attempt engine.AttemptRef) {
	if s.Alertmanager == nil {
		return
	}
	s.invalidate(attempt.UID)
	_, _ = s.closeMatching(ctx, ownerMatcher(labelUID, attempt.UID)) // else they lapse
}

func (s *Silencer) closeStep(attempt engine.AttemptRef, settings Settings, filter ...alertmanager.Matcher) engine.UpgradeStep {
	failing := fmt.Sprintf("the silences are not ended, and lapse within %s", settings.Lease)
	return s.retryUntil(settings.Timeout, reasonNotEnded, failing,
		func(ctx context.Context, _ time.Time) (engine.Result, error) {
			s.invalidate(attempt.UID)
			switch n, err := s.closeMatching(ctx, filter...); {
			case err != nil:
				return engine.Result{}, err
			case n == 0:
				return engine.Skip(reasonNothingToEnd, "no silence of this upgrade is in force"), nil
			default:
				return engine.Done("silences ended: %d", n), nil
			}
		})
}

// retryUntil makes a step of what may be out of reach for a while. It tries
// again each time after half as long as it has been trying for.
func (s *Silencer) retryUntil(timeout time.Duration, reason, failing string, do func(context.Context, time.Time) (engine.Result, error)) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		if s.Alertmanager == nil {
			return engine.Skip(reasonNotConfigured, "there is no Alertmanager to ask"), nil
		}
		result, err := do(ctx, run.Now)
		if err == nil {
			return result, nil
		}
		retryAfter, ok := run.Retry(timeout)
		if !ok {
			return engine.Skip(reason, "%s, after %s of trying: %v", failing, timeout, err), nil
		}
		return engine.WaitFor(retryAfter, reason, "%s yet: %v", failing, err), nil
	}
}
