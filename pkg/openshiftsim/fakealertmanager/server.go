// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fakealertmanager

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/alertmanager"
)

// ServeHTTP serves a request.
func (a *Alertmanager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Date", a.clock.Now().UTC().Format(http.TimeFormat))
	a.mux.ServeHTTP(w, r)
}

// Content returns a silence in the format of the API.
func Content(s alertmanager.Silence) map[string]any {
	var matchers []any
	for _, m := range s.Matchers {
		matchers = append(matchers, map[string]any{"name": m.Name, "value": m.Value, "isRegex": m.IsRegex, "isEqual": m.IsEqual})
	}
	return map[string]any{
		"id": s.ID, "status": map[string]any{"state": string(s.State)}, "matchers": matchers,
		"startsAt": s.StartsAt.UTC().Format(time.RFC3339Nano), "endsAt": s.EndsAt.UTC().Format(time.RFC3339Nano),
		"createdBy": s.CreatedBy, "comment": s.Comment,
	}
}

func (a *Alertmanager) serveList(w http.ResponseWriter, r *http.Request) {
	found := []map[string]any{}
	for _, s := range a.all() {
		has := func(filter string) bool {
			return slices.ContainsFunc(s.Matchers, func(m alertmanager.Matcher) bool { return m.String() == filter })
		}
		if !slices.ContainsFunc(r.URL.Query()["filter"], func(f string) bool { return !has(f) }) {
			found = append(found, Content(s))
		}
	}
	writeJSON(w, http.StatusOK, found)
}

// requested is a silence in a request.
type requested struct {
	ID                 string
	Matchers           []matcher
	StartsAt, EndsAt   time.Time
	CreatedBy, Comment string
}

type matcher alertmanager.Matcher

// UnmarshalJSON decodes a matcher. isEqual defaults to true.
func (m *matcher) UnmarshalJSON(data []byte) error {
	m.IsEqual = true
	return json.Unmarshal(data, (*alertmanager.Matcher)(m))
}

func (a *Alertmanager) serveUpsert(w http.ResponseWriter, r *http.Request) {
	var body requested
	data, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(data, &body)
	}
	if err != nil {
		writeJSON(w, http.StatusBadRequest, err.Error())
		return
	}
	silence := alertmanager.Silence{ID: body.ID, StartsAt: body.StartsAt, EndsAt: body.EndsAt, CreatedBy: body.CreatedBy, Comment: body.Comment}
	for _, m := range body.Matchers {
		silence.Matchers = append(silence.Matchers, alertmanager.Matcher(m))
	}
	id, err := a.Upsert(r.Context(), silence)
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"silenceID": id})
}

func (a *Alertmanager) serveExpire(w http.ResponseWriter, r *http.Request) {
	if err := a.Expire(r.Context(), r.PathValue("id")); err != nil {
		writeError(w, err)
	}
}

func writeError(w http.ResponseWriter, err error) {
	code := http.StatusServiceUnavailable
	if rejected, is := errors.AsType[rejection](err); is {
		code = rejected.code
	}
	writeJSON(w, code, err.Error())
}

func writeJSON(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the client may have disconnected
}
