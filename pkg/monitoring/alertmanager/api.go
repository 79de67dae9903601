// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package alertmanager

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// apiSilence is a silence in the format of the API.
type apiSilence struct {
	ID     string `json:"id,omitempty"`
	Status *struct {
		State SilenceState `json:"state"`
	} `json:"status,omitempty"`
	Matchers  []apiMatcher `json:"matchers"`
	StartsAt  time.Time    `json:"startsAt"`
	EndsAt    time.Time    `json:"endsAt"`
	CreatedBy string       `json:"createdBy"`
	Comment   string       `json:"comment"`
}

type apiMatcher struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	IsRegex bool   `json:"isRegex"`
	IsEqual *bool  `json:"isEqual,omitempty"` // defaults to true
}

func encode(s Silence) ([]byte, error) {
	a := apiSilence{ID: s.ID, StartsAt: s.StartsAt.UTC(), EndsAt: s.EndsAt.UTC(), CreatedBy: s.CreatedBy, Comment: s.Comment}
	for _, m := range s.Matchers {
		a.Matchers = append(a.Matchers, apiMatcher{m.Name, m.Value, m.IsRegex, &m.IsEqual})
	}
	return json.Marshal(a)
}

func decodeList(data []byte) ([]Silence, error) {
	var list []apiSilence
	if err := decode(data, &list); err != nil {
		return nil, err
	}
	if list == nil {
		return nil, errors.New("it is null, not a list")
	}
	silences := make([]Silence, len(list))
	for i, a := range list {
		var err error
		if silences[i], err = a.toSilence(); err != nil {
			return nil, fmt.Errorf("silence %d of %d: %w", i+1, len(list), err)
		}
	}
	return silences, nil
}

// toSilence returns the silence, or an error if a required field is missing or invalid.
func (a apiSilence) toSilence() (Silence, error) {
	switch {
	case !idPattern.MatchString(a.ID):
		return Silence{}, fmt.Errorf("%q is no ID", text.Excerpt(a.ID))
	case a.Status == nil:
		return Silence{}, errors.New("it has no status")
	case a.Status.State != Pending && a.Status.State != Active && a.Status.State != Expired:
		return Silence{}, fmt.Errorf("%q is no state", text.Excerpt(string(a.Status.State)))
	case a.StartsAt.IsZero() || a.EndsAt.IsZero():
		return Silence{}, errors.New("it has no beginning or no end")
	}
	s := Silence{ID: a.ID, State: a.Status.State, StartsAt: a.StartsAt, EndsAt: a.EndsAt, CreatedBy: a.CreatedBy, Comment: a.Comment}
	for _, m := range a.Matchers {
		s.Matchers = append(s.Matchers, Matcher{m.Name, m.Value, m.IsRegex, m.IsEqual == nil || *m.IsEqual})
	}
	return s, nil
}

func decodeID(data []byte) (string, error) {
	var response struct {
		SilenceID string `json:"silenceID"`
	}
	if err := decode(data, &response); err != nil {
		return "", err
	}
	if !idPattern.MatchString(response.SilenceID) {
		return "", fmt.Errorf("%q is no ID", text.Excerpt(response.SilenceID))
	}
	return response.SilenceID, nil
}

// decode decodes exactly one JSON value.
func decode(data []byte, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s (it begins with %q)", text.Excerpt(err.Error()), text.Excerpt(string(data[:min(len(data), 40)])))
	}
	return nil
}
