// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fakealertmanager

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Server serves silences at /api/v2.
type Server struct {
	clock clock.PassiveClock
	mux   http.ServeMux

	mu       sync.Mutex
	created  int
	silences map[string]*silence
}

// New returns a server with no silences.
func New(clk clock.PassiveClock) *Server {
	s := &Server{clock: clk, silences: map[string]*silence{}}
	s.mux.HandleFunc("GET /api/v2/silences", s.list)
	s.mux.HandleFunc("POST /api/v2/silences", s.post)
	s.mux.HandleFunc("DELETE /api/v2/silence/{id}", s.expire)
	return s
}

// ServeHTTP serves a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Date", s.clock.Now().UTC().Format(http.TimeFormat))
	s.mux.ServeHTTP(w, r)
}

type silence struct {
	ID        string    `json:"id"`
	Status    status    `json:"status"`
	UpdatedAt time.Time `json:"updatedAt"`
	Matchers  []matcher `json:"matchers"`
	StartsAt  time.Time `json:"startsAt"`
	EndsAt    time.Time `json:"endsAt"`
	CreatedBy string    `json:"createdBy"`
	Comment   string    `json:"comment"`
}

type status struct {
	State string `json:"state"`
}

type matcher struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	IsRegex bool   `json:"isRegex"`
	IsEqual bool   `json:"isEqual"`
}

// UnmarshalJSON decodes a matcher. isEqual defaults to true.
func (m *matcher) UnmarshalJSON(data []byte) error {
	type plain matcher
	p := plain{IsEqual: true}
	if err := json.Unmarshal(data, &p); err != nil {
		return err
	}
	*m = matcher(p)
	return nil
}

// filter returns the matcher in filter syntax.
func (m matcher) filter() string {
	operator := map[matcher]string{
		{IsEqual: true}: "=", {}: "!=", {IsRegex: true, IsEqual: true}: "=~", {IsRegex: true}: "!~",
	}[matcher{IsRegex: m.IsRegex, IsEqual: m.IsEqual}]
	return m.Name + operator + `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(m.Value) + `"`
}

func (s *silence) state(now time.Time) string {
	switch {
	case now.Before(s.StartsAt):
		return "pending"
	case now.Before(s.EndsAt):
		return "active"
	}
	return "expired"
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	found := []silence{}
	for _, one := range s.silences {
		has := func(filter string) bool {
			return slices.ContainsFunc(one.Matchers, func(m matcher) bool { return m.filter() == filter })
		}
		if slices.ContainsFunc(r.URL.Query()["filter"], func(f string) bool { return !has(f) }) {
			continue
		}
		shown := *one
		shown.Status.State = one.state(s.clock.Now())
		found = append(found, shown)
	}
	slices.SortFunc(found, func(a, b silence) int {
		return cmp.Or(strings.Compare(a.Status.State, b.Status.State), a.EndsAt.Compare(b.EndsAt), strings.Compare(a.ID, b.ID))
	})
	writeJSON(w, http.StatusOK, found)
}

func (s *Server) post(w http.ResponseWriter, r *http.Request) {
	var requested silence
	data, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(data, &requested)
	}
	now := s.clock.Now().UTC()
	switch {
	case err != nil:
		writeJSON(w, http.StatusBadRequest, err.Error())
		return
	case len(requested.Matchers) == 0 || requested.CreatedBy == "" || requested.Comment == "" || requested.StartsAt.IsZero() || requested.EndsAt.IsZero():
		writeJSON(w, http.StatusUnprocessableEntity, "a required field is missing in body")
		return
	case !requested.StartsAt.Before(requested.EndsAt):
		writeJSON(w, http.StatusBadRequest, "Failed to create silence: start time must be before end time")
		return
	case requested.EndsAt.Before(now):
		writeJSON(w, http.StatusBadRequest, "Failed to create silence: end time can't be in the past")
		return
	}
	existing, known := s.silences[requested.ID]
	if requested.ID != "" && !known {
		writeJSON(w, http.StatusNotFound, "silence not found")
		return
	}
	if !known || !canUpdate(existing, &requested, now) {
		if known && existing.state(now) != "expired" {
			s.end(existing, now)
		}
		s.created++
		requested.ID = fmt.Sprintf("00000000-0000-4000-8000-%012d", s.created)
		if requested.StartsAt.Before(now) {
			requested.StartsAt = now
		}
	}
	requested.UpdatedAt = now
	s.silences[requested.ID] = &requested
	writeJSON(w, http.StatusOK, map[string]string{"silenceID": requested.ID})
}

// canUpdate reports whether a silence can be changed to another one without getting a new ID.
func canUpdate(from, to *silence, now time.Time) bool {
	if !slices.Equal(from.Matchers, to.Matchers) {
		return false
	}
	switch from.state(now) {
	case "active":
		return from.StartsAt.Unix() == to.StartsAt.Unix()
	case "pending":
		return !to.StartsAt.Before(now)
	}
	return false
}

func (s *Server) expire(w http.ResponseWriter, r *http.Request) {
	existing, known := s.silences[r.PathValue("id")]
	if !known {
		writeJSON(w, http.StatusNotFound, nil)
		return
	}
	if now := s.clock.Now().UTC(); existing.state(now) != "expired" {
		s.end(existing, now)
	}
	w.WriteHeader(http.StatusOK)
}

func (s *Server) end(one *silence, now time.Time) {
	if one.StartsAt.After(now) {
		one.StartsAt = now
	}
	one.EndsAt, one.UpdatedAt = now, now
}

func writeJSON(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the client may have disconnected
}
