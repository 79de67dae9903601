// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/alertmanager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Alertmanager keeps silences. It is usually an *alertmanager.Client.
type Alertmanager interface {
	Silences(ctx context.Context, having ...alertmanager.Matcher) ([]alertmanager.Silence, error)
	Set(ctx context.Context, s alertmanager.Silence) (id string, err error)
	Expire(ctx context.Context, id string) error
}

// Silencer makes windows. It is made once and used for every look: it remembers
// when a silence is to be prolonged, so that nothing is asked until then.
type Silencer struct {
	// Alertmanager is asked; nil: there is none, and the steps are skipped.
	Alertmanager Alertmanager

	mu    sync.Mutex
	notes map[note]memory
}

// Settings are how windows are kept.
type Settings struct {
	// Lease is how long a silence lasts unless it is prolonged: so long do
	// alerts stay silenced if the operator is gone.
	Lease time.Duration
	// Patience is for how long a step tries before the upgrade goes on without.
	Patience time.Duration
}

// Window is a time in which alerts are silenced for an attempt.
type Window struct {
	silencer *Silencer
	about    engine.Subject
	name     string
	scope    Scope
	settings Settings
}

// Window is the window of that name, which stands in the silences, as in ControlPlane.
func (s *Silencer) Window(about engine.Subject, name string, scope Scope, settings Settings) Window {
	return Window{silencer: s, about: about, name: name, scope: scope, settings: settings}
}

const (
	reasonNotConfigured = "NotConfigured" // nobody to ask, or nothing to silence
	reasonNotSilenced   = "NotSilenced"   // alerts are told although they should not be
	reasonNotEnded      = "NotEnded"      // alerts are not told although they should be
	reasonNothingToEnd  = "NothingToEnd"  // the silences have lapsed, or were never made
)

// Opened silences the alerts. If that does not work for as long as patience
// lasts, the step is skipped as NotSilenced; Kept goes on trying.
func (w Window) Opened() engine.UpgradeStep {
	return w.silencer.patiently(w.settings.Patience, reasonNotSilenced, "the alerts are not silenced",
		func(ctx context.Context, now time.Time) (engine.Result, error) {
			if len(w.wanted()) == 0 {
				return engine.Skip(reasonNotConfigured, "no alerts are to be silenced"), nil
			}
			until, err := w.silence(ctx, now)
			if err != nil {
				return engine.Result{}, err
			}
			return engine.Done("silenced until %s, and longer where it takes longer: %s", until.UTC().Format(time.RFC3339), w.scope), nil
		})
}

// Kept is a keeper: it prolongs the silences at their half-life, and makes them
// anew if they are gone. Until then it asks nobody. While that does not work,
// it tries once a minute.
func (w Window) Kept() engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		if w.silencer.Alertmanager == nil || len(w.wanted()) == 0 {
			return engine.Result{}, nil
		}
		known, fresh := w.silencer.recall(w, run.Now)
		if !fresh {
			_, _ = w.silence(ctx, run.Now) // what came of it is remembered
			known, _ = w.silencer.recall(w, run.Now)
		}
		if known.err != nil {
			return engine.Result{}, fmt.Errorf("keeping the alerts silenced: %w", known.err)
		}
		return engine.WaitFor(known.due.Sub(run.Now), "Silenced", "the alerts are silenced"), nil
	}
}

// Ended ends the silences. If there are none, it is skipped; and if that does
// not work for as long as patience lasts, it is skipped as NotEnded: they lapse.
func (w Window) Ended() engine.UpgradeStep {
	return w.silencer.ended(w.about, w.settings, mark(labelUID, w.about.UID), mark(labelWindow, w.name))
}

// AllEnded ends every silence that was made for the UpgradeConfig, of whatever
// window and attempt. It is skipped where Ended is.
func (s *Silencer) AllEnded(about engine.Subject, settings Settings) engine.UpgradeStep {
	return s.ended(about, settings, mark(labelUID, about.UID))
}

// Abandoned ends what AllEnded ends, if that works at the first try: nobody waits
// for silences that lapse.
func (s *Silencer) Abandoned(ctx context.Context, about engine.Subject) {
	if s.Alertmanager == nil {
		return
	}
	s.forget(about.UID)
	_, _ = s.end(ctx, mark(labelUID, about.UID)) // else they lapse
}

func (s *Silencer) ended(about engine.Subject, settings Settings, having ...alertmanager.Matcher) engine.UpgradeStep {
	failing := fmt.Sprintf("the silences are not ended, and lapse within %s", settings.Lease)
	return s.patiently(settings.Patience, reasonNotEnded, failing,
		func(ctx context.Context, _ time.Time) (engine.Result, error) {
			s.forget(about.UID)
			switch n, err := s.end(ctx, having...); {
			case err != nil:
				return engine.Result{}, err
			case n == 0:
				return engine.Skip(reasonNothingToEnd, "no silence of this upgrade is in force"), nil
			default:
				return engine.Done("silences ended: %d", n), nil
			}
		})
}

// patiently makes a step of what may be out of reach for a while. It tries
// again each time after half as long as it has been trying for.
func (s *Silencer) patiently(patience time.Duration, reason, failing string, do func(context.Context, time.Time) (engine.Result, error)) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		if s.Alertmanager == nil {
			return engine.Skip(reasonNotConfigured, "there is no Alertmanager to ask"), nil
		}
		result, err := do(ctx, run.Now)
		if err == nil {
			return result, nil
		}
		again, goOn := run.Retry(patience)
		if !goOn {
			return engine.Skip(reason, "%s, after %s of trying: %v", failing, patience, err), nil
		}
		return engine.WaitFor(again, reason, "%s yet: %v", failing, err), nil
	}
}
