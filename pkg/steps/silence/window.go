// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package silence

import (
	"context"
	"fmt"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/alertmanager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Alertmanager stores silences. It is usually an *alertmanager.Client.
type Alertmanager interface {
	Silences(ctx context.Context, having ...alertmanager.Matcher) (found []alertmanager.Silence, now time.Time, err error)
	Upsert(ctx context.Context, s alertmanager.Silence) (id string, err error)
	Expire(ctx context.Context, id string) error
}

// Silencer creates windows. It is created once and used in every pass, so it knows when to extend a
// silence and makes no request before that.
type Silencer struct {
	// Alertmanager stores the silences. If nil, no Alertmanager is configured and the steps are
	// skipped.
	Alertmanager Alertmanager

	throttle engine.Throttle
}

// Settings configure windows.
type Settings struct {
	// Lease is how long a silence lasts unless it is extended. If the operator is gone, alerts stay
	// silenced for at most this time.
	Lease time.Duration
	// Timeout is how long a step retries before the upgrade continues without it.
	Timeout time.Duration
}

// Window is a period of silenced alerts for an attempt.
type Window struct {
	silencer *Silencer
	attempt  engine.AttemptRef
	name     string
	scope    Scope
	settings Settings
}

// Window returns the window with that name, e.g. ControlPlane. The silences contain the name.
func (s *Silencer) Window(attempt engine.AttemptRef, name string, scope Scope, settings Settings) Window {
	return Window{silencer: s, attempt: attempt, name: name, scope: scope, settings: settings}
}

const (
	reasonNotConfigured = "NotConfigured" // no Alertmanager, or nothing to silence
	reasonNotSilenced   = "NotSilenced"   // alerts still notify although they should be silenced
	reasonNotEnded      = "NotEnded"      // alerts are still silenced although they should not be
	reasonNothingToEnd  = "NothingToEnd"  // the silences have expired or were never created
)

// Open silences the alerts. If that fails until the timeout, the step is skipped as NotSilenced,
// and KeepAlive keeps trying.
func (w Window) Open() engine.UpgradeStep {
	return w.silencer.retry(w.settings.Timeout, reasonNotSilenced, "the alerts are not silenced",
		func(ctx context.Context, run engine.Run) (engine.Result, error) {
			if len(w.desired()) == 0 {
				return engine.Skip(reasonNotConfigured, "no alerts need to be silenced"), nil
			}
			until, kept, err := w.ensure(ctx, run.Now)
			if err != nil {
				return engine.Result{}, err
			}
			w.silencer.throttle.Keep(w.key(), run.Now, kept)
			return engine.Done("silenced until %s, and longer if the upgrade takes longer: %s", text.FormatTime(until), w.scope), nil
		})
}

// KeepAlive extends the silences halfway through their lease, and creates them again if they are
// gone. It makes no request before that. It retries errors once a minute.
func (w Window) KeepAlive() engine.UpgradeStep {
	extend := func(ctx context.Context, run engine.Run) (engine.Result, error) {
		_, kept, err := w.ensure(ctx, run.Now)
		if err != nil {
			return engine.Result{}, fmt.Errorf("keeping the alerts silenced: %w", err)
		}
		return kept, nil
	}
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		if w.silencer.Alertmanager == nil || len(w.desired()) == 0 {
			return engine.Result{}, nil
		}
		return w.silencer.throttle.Step(w.key(), nil, extend)(ctx, run)
	}
}

// key identifies the window across all upgrades. It starts with the UID of the object.
func (w Window) key() string { return w.attempt.UID + "/" + w.attempt.ID() + "/" + w.name }

// Close ends the silences. It is skipped if there are none. If ending them fails until the timeout,
// it is skipped as NotEnded, and the silences expire.
func (w Window) Close() engine.UpgradeStep {
	return w.silencer.closeStep(w.attempt, w.settings, ownerMatcher(labelUID, w.attempt.UID), ownerMatcher(labelWindow, w.name))
}

// CloseAll ends every silence for the object, across all windows and attempts. It is skipped like
// Close.
func (s *Silencer) CloseAll(attempt engine.AttemptRef, settings Settings) engine.UpgradeStep {
	return s.closeStep(attempt, settings, ownerMatcher(labelUID, attempt.UID))
}

// CloseNow ends the same silences as CloseAll. It tries only once, because silences expire.
func (s *Silencer) CloseNow(ctx context.Context, attempt engine.AttemptRef) {
	if s.Alertmanager == nil {
		return
	}
	s.throttle.Drop(attempt.UID + "/")
	_, _ = s.closeMatching(ctx, ownerMatcher(labelUID, attempt.UID)) // the remaining ones expire
}

func (s *Silencer) closeStep(attempt engine.AttemptRef, settings Settings, filter ...alertmanager.Matcher) engine.UpgradeStep {
	failing := fmt.Sprintf("the silences could not be ended and will expire within %s", settings.Lease)
	return s.retry(settings.Timeout, reasonNotEnded, failing,
		func(ctx context.Context, _ engine.Run) (engine.Result, error) {
			s.throttle.Drop(attempt.UID + "/")
			switch n, err := s.closeMatching(ctx, filter...); {
			case err != nil:
				return engine.Result{}, err
			case n == 0:
				return engine.Skip(reasonNothingToEnd, "no silence of this upgrade is in effect"), nil
			default:
				return engine.Done("silences ended: %d", n), nil
			}
		})
}

// retry returns a step that retries do while Alertmanager is unavailable. The step is skipped if no
// Alertmanager is configured.
func (s *Silencer) retry(timeout time.Duration, reason, failing string, do engine.UpgradeStep) engine.UpgradeStep {
	retry := engine.Retry{Timeout: timeout, Reason: reason, Failing: failing}.Step(do)
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		if s.Alertmanager == nil {
			return engine.Skip(reasonNotConfigured, "no Alertmanager is configured"), nil
		}
		return retry(ctx, run)
	}
}
