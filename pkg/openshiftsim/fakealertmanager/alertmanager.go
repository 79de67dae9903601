// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fakealertmanager

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/alertmanager"
)

// Alertmanager has silences. Its methods answer like a client of the API, and it serves the API at
// /api/v2. Only ServeHTTP is safe for concurrent use.
type Alertmanager struct {
	// Err, if set, is the error returned by all methods, as if it could not be reached.
	Err error

	clock    clock.PassiveClock
	mux      http.ServeMux
	mu       sync.Mutex             // held while a request is served
	silences []alertmanager.Silence // the oldest first
}

// New returns an Alertmanager with no silences.
func New(clk clock.PassiveClock) *Alertmanager {
	a := &Alertmanager{clock: clk}
	a.mux.HandleFunc("GET /api/v2/silences", a.serveList)
	a.mux.HandleFunc("POST /api/v2/silences", a.serveUpsert)
	a.mux.HandleFunc("DELETE /api/v2/silence/{id}", a.serveExpire)
	return a
}

// rejection is the reason why a request is rejected.
type rejection struct {
	code    int
	message string
}

func (r rejection) Error() string { return r.message }

// Silences returns the silences with all of these matchers, including expired ones, and
// Alertmanager's current time.
func (a *Alertmanager) Silences(_ context.Context, having ...alertmanager.Matcher) ([]alertmanager.Silence, time.Time, error) {
	if a.Err != nil {
		return nil, a.clock.Now(), a.Err
	}
	found := slices.DeleteFunc(a.all(), func(s alertmanager.Silence) bool { return !s.HasMatchers(having...) })
	return found, a.clock.Now(), nil
}

// InEffect returns the silences that have not expired.
func (a *Alertmanager) InEffect() []alertmanager.Silence {
	return slices.DeleteFunc(a.all(), func(s alertmanager.Silence) bool { return !s.InEffect() })
}

// all returns the silences with their states, in the order in which Alertmanager lists them.
func (a *Alertmanager) all() []alertmanager.Silence {
	var all []alertmanager.Silence
	for _, s := range a.silences {
		s.Matchers, s.State = slices.Clone(s.Matchers), state(s, a.clock.Now())
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b alertmanager.Silence) int {
		return cmp.Or(strings.Compare(string(a.State), string(b.State)), a.EndsAt.Compare(b.EndsAt), strings.Compare(a.ID, b.ID))
	})
	return all
}

func state(s alertmanager.Silence, now time.Time) alertmanager.SilenceState {
	switch {
	case now.Before(s.StartsAt):
		return alertmanager.Pending
	case now.Before(s.EndsAt):
		return alertmanager.Active
	}
	return alertmanager.Expired
}

// Upsert creates a silence or changes the one with its ID, and returns the resulting ID.
func (a *Alertmanager) Upsert(_ context.Context, requested alertmanager.Silence) (string, error) {
	now := a.clock.Now().UTC()
	existing := a.find(requested.ID)
	switch {
	case a.Err != nil:
		return "", a.Err
	case len(requested.Matchers) == 0 || requested.CreatedBy == "" || requested.Comment == "" || requested.StartsAt.IsZero() || requested.EndsAt.IsZero():
		return "", rejection{http.StatusUnprocessableEntity, "a required field is missing in body"}
	case !requested.StartsAt.Before(requested.EndsAt):
		return "", rejection{http.StatusBadRequest, "Failed to create silence: start time must be before end time"}
	case requested.EndsAt.Before(now):
		return "", rejection{http.StatusBadRequest, "Failed to create silence: end time can't be in the past"}
	case requested.ID != "" && existing == nil:
		return "", rejection{http.StatusNotFound, "silence not found"}
	}
	requested.Matchers = slices.Clone(requested.Matchers)
	if existing != nil {
		if canUpdate(*existing, requested, now) {
			*existing = requested
			return requested.ID, nil
		}
		end(existing, now)
	}
	requested.ID = fmt.Sprintf("00000000-0000-4000-8000-%012d", len(a.silences)+1)
	if requested.StartsAt.Before(now) {
		requested.StartsAt = now
	}
	a.silences = append(a.silences, requested)
	return requested.ID, nil
}

// canUpdate reports whether a silence can be changed to another one without getting a new ID.
func canUpdate(from, to alertmanager.Silence, now time.Time) bool {
	if !slices.Equal(from.Matchers, to.Matchers) {
		return false
	}
	switch state(from, now) {
	case alertmanager.Active:
		return from.StartsAt.Unix() == to.StartsAt.Unix()
	case alertmanager.Pending:
		return !to.StartsAt.Before(now)
	case alertmanager.Expired:
	}
	return false
}

// Expire expires a silence.
func (a *Alertmanager) Expire(_ context.Context, id string) error {
	existing := a.find(id)
	switch {
	case a.Err != nil:
		return a.Err
	case existing == nil:
		return rejection{http.StatusNotFound, "silence not found"}
	}
	end(existing, a.clock.Now().UTC())
	return nil
}

// find returns the silence with an ID, or nil.
func (a *Alertmanager) find(id string) *alertmanager.Silence {
	i := slices.IndexFunc(a.silences, func(s alertmanager.Silence) bool { return s.ID == id })
	if i < 0 {
		return nil
	}
	return &a.silences[i]
}

// end expires a silence unless it has expired.
func end(s *alertmanager.Silence, now time.Time) {
	if state(*s, now) == alertmanager.Expired {
		return
	}
	if s.StartsAt.After(now) {
		s.StartsAt = now
	}
	s.EndsAt = now
}
