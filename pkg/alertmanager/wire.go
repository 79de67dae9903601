// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package alertmanager

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/endpoint"
)

// wire is a silence as the API has it.
type wire struct {
	ID     string `json:"id,omitempty"`
	Status *struct {
		State State `json:"state"`
	} `json:"status,omitempty"`
	Matchers  []wireMatcher `json:"matchers"`
	StartsAt  time.Time     `json:"startsAt"`
	EndsAt    time.Time     `json:"endsAt"`
	CreatedBy string        `json:"createdBy"`
	Comment   string        `json:"comment"`
}

type wireMatcher struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	IsRegex bool   `json:"isRegex"`
	IsEqual *bool  `json:"isEqual,omitempty"` // missing is true
}

func encode(s Silence) ([]byte, error) {
	w := wire{ID: s.ID, StartsAt: s.StartsAt.UTC(), EndsAt: s.EndsAt.UTC(), CreatedBy: s.CreatedBy, Comment: s.Comment}
	for _, m := range s.Matchers {
		w.Matchers = append(w.Matchers, wireMatcher{m.Name, m.Value, m.IsRegex, &m.IsEqual})
	}
	return json.Marshal(w)
}

func decodeList(data []byte) ([]Silence, error) {
	var list []wire
	if err := decode(data, &list); err != nil {
		return nil, err
	}
	if list == nil {
		return nil, errors.New("it is null, not a list")
	}
	silences := make([]Silence, len(list))
	for i, w := range list {
		var err error
		if silences[i], err = w.silence(); err != nil {
			return nil, fmt.Errorf("silence %d of %d: %w", i+1, len(list), err)
		}
	}
	return silences, nil
}

// silence is what the API says, if it says all that matters.
func (w wire) silence() (Silence, error) {
	switch {
	case !idPattern.MatchString(w.ID):
		return Silence{}, fmt.Errorf("%q is no ID", endpoint.Printable(w.ID))
	case w.Status == nil:
		return Silence{}, errors.New("it has no status")
	case w.Status.State != Pending && w.Status.State != Active && w.Status.State != Expired:
		return Silence{}, fmt.Errorf("%q is no state", endpoint.Printable(string(w.Status.State)))
	case w.StartsAt.IsZero() || w.EndsAt.IsZero():
		return Silence{}, errors.New("it has no beginning or no end")
	}
	s := Silence{ID: w.ID, State: w.Status.State, StartsAt: w.StartsAt, EndsAt: w.EndsAt, CreatedBy: w.CreatedBy, Comment: w.Comment}
	for _, m := range w.Matchers {
		s.Matchers = append(s.Matchers, Matcher{m.Name, m.Value, m.IsRegex, m.IsEqual == nil || *m.IsEqual})
	}
	return s, nil
}

func decodeID(data []byte) (string, error) {
	var answer struct {
		SilenceID string `json:"silenceID"`
	}
	if err := decode(data, &answer); err != nil {
		return "", err
	}
	if !idPattern.MatchString(answer.SilenceID) {
		return "", fmt.Errorf("%q is no ID", endpoint.Printable(answer.SilenceID))
	}
	return answer.SilenceID, nil
}

// decode reads one value of JSON and nothing else.
func decode(data []byte, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s (it begins with %q)", endpoint.Printable(err.Error()), endpoint.Printable(string(data[:min(len(data), 40)])))
	}
	return nil
}
