// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package alertmanager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
)

// Client sends requests to an Alertmanager, or to a cluster of them behind a single address.
// Changes reach the other members of a cluster with a delay.
type Client struct {
	http *httpclient.Client
}

// maxBodyBytes is the maximum size of the list of silences, in bytes.
const maxBodyBytes = 4 << 20

// New returns a client for the Alertmanager whose API is at /api/v2 below the URL. It returns an
// error if the options are invalid.
func New(o httpclient.Options) (*Client, error) {
	o.MaxBodyBytes = maxBodyBytes
	e, err := httpclient.New(o)
	if err != nil {
		return nil, err
	}
	return &Client{http: e}, nil
}

// Silences lists the silences that have all of the matchers, in any state. It also returns
// Alertmanager's current time, or zero if the response does not contain it. Silences end according
// to this time.
func (c *Client) Silences(ctx context.Context, filter ...Matcher) ([]Silence, time.Time, error) {
	query := url.Values{}
	for _, m := range filter {
		query.Add("filter", m.String())
	}
	body, now, err := c.http.DoDated(ctx, request(http.MethodGet, query, nil, "silences"))
	if err != nil {
		return nil, now, fmt.Errorf("listing the silences: %w", err)
	}
	all, err := decodeList(body)
	if err != nil {
		return nil, now, fmt.Errorf("reading the list of silences: %w", err)
	}
	var found []Silence
	for _, s := range all {
		if s.HasMatchers(filter...) { // the server may ignore the filter, and silences of other clients must not be changed
			found = append(found, s)
		}
	}
	return found, now, nil
}

// Upsert creates a silence or changes the silence with its ID, and returns the resulting ID. If
// Alertmanager cannot change a silence, it expires the silence and creates another one with a new
// ID.
func (c *Client) Upsert(ctx context.Context, s Silence) (string, error) {
	body, err := encode(s)
	if err != nil {
		return "", fmt.Errorf("writing a silence: %w", err)
	}
	response, err := c.http.Do(ctx, request(http.MethodPost, nil, body, "silences"))
	if err != nil {
		return "", fmt.Errorf("setting a silence: %w", err)
	}
	id, err := decodeID(response)
	if err != nil {
		return "", fmt.Errorf("setting a silence: reading the answer: %w", err)
	}
	return id, nil
}

// Expire expires a silence. It succeeds if the silence has already expired. An unknown silence is
// an error, because another member of the cluster may know it.
func (c *Client) Expire(ctx context.Context, id string) error {
	if !idPattern.MatchString(id) {
		return errors.New("ending a silence: its ID is not one")
	}
	if _, err := c.http.Do(ctx, request(http.MethodDelete, nil, nil, "silence", id)); err != nil {
		return fmt.Errorf("ending the silence %s: %w", id, err)
	}
	return nil
}

// idPattern matches valid IDs. They become part of a path.
var idPattern = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

func request(method string, query url.Values, body []byte, path ...string) httpclient.Request {
	r := httpclient.Request{Method: method, Path: append([]string{"api", "v2"}, path...), Query: query, Body: body}
	if body != nil {
		r.ContentType = "application/json"
	}
	return r
}
