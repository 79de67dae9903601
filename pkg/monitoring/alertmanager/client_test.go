// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package alertmanager_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testclock "k8s.io/utils/clock/testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/alertmanager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/fakealertmanager"
)

func client(t *testing.T, h http.Handler) *alertmanager.Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return clientFor(t, server.URL)
}

func clientFor(t *testing.T, url string) *alertmanager.Client {
	t.Helper()
	c, err := alertmanager.New(httpclient.Options{URL: url, Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// checkSilenceLifecycle creates, changes, and expires a silence.
func checkSilenceLifecycle(t *testing.T, c *alertmanager.Client, now time.Time) {
	t.Helper()
	ctx := t.Context()
	mine := alertmanager.NotEqual("marker", `a "quoted" \ one of `+now.String())
	find := func() []alertmanager.Silence {
		t.Helper()
		found, at, err := c.Silences(ctx, mine)
		if err != nil {
			t.Fatal(err)
		}
		if at.Sub(now).Abs() > time.Minute {
			t.Errorf("it is %s there, want %s", at, now)
		}
		return found
	}
	want := alertmanager.Silence{
		Matchers: []alertmanager.Matcher{
			alertmanager.NotMatches("alertname", "Ours.*"), mine, alertmanager.Matches("severity", "info|warning"), alertmanager.Equal("x", "y"),
		},
		StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour), CreatedBy: "me", Comment: "why",
	}
	if found := find(); len(found) > 0 {
		t.Fatalf("a silence exists already: %+v", found)
	}
	id, err := c.Upsert(ctx, want)
	if err != nil {
		t.Fatal(err)
	}
	other := want
	other.Matchers = other.Matchers[2:]
	others, err := c.Upsert(ctx, other)
	if err != nil {
		t.Fatal(err)
	}
	found := find()
	if len(found) != 1 || found[0].StartsAt.Before(now.Add(-time.Minute)) {
		t.Fatalf("found %+v, want one that begins now", found)
	}
	want.ID, want.State, want.StartsAt = id, alertmanager.Active, found[0].StartsAt
	asSets := cmp.Transformer("set", func(all []alertmanager.Matcher) map[alertmanager.Matcher]bool {
		set := map[alertmanager.Matcher]bool{}
		for _, m := range all {
			set[m] = true
		}
		return set
	})
	same := cmp.Options{asSets, cmp.Comparer(func(a, b time.Time) bool { return a.Sub(b).Abs() < time.Second })}
	if diff := cmp.Diff(want, found[0], same); diff != "" {
		t.Fatalf("made (-want +got):\n%s", diff)
	}

	longer := found[0]
	longer.EndsAt = now.Add(2 * time.Hour)
	if again, err := c.Upsert(ctx, longer); err != nil || again != id {
		t.Fatalf("prolonging: %q, %v; want the same ID", again, err)
	}
	if diff := cmp.Diff([]alertmanager.Silence{longer}, find(), same); diff != "" {
		t.Fatalf("prolonged (-want +got):\n%s", diff)
	}
	for range 2 {
		if err := c.Expire(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	if found := find(); len(found) != 1 || found[0].State != alertmanager.Expired || found[0].InEffect() {
		t.Fatalf("ended: %+v", found)
	}
	again, err := c.Upsert(ctx, longer)
	if err != nil || again == id {
		t.Fatalf("setting one that has ended: %q, %v; want another ID", again, err)
	}
	if err := errors.Join(c.Expire(ctx, again), c.Expire(ctx, others)); err != nil {
		t.Fatal(err)
	}
	longer.ID = "00000000-0000-4000-8000-999999999999"
	var statusErr *httpclient.StatusError
	if _, err := c.Upsert(ctx, longer); !errors.As(err, &statusErr) || statusErr.Code != http.StatusNotFound {
		t.Fatalf("setting one that is not known: %v", err)
	}
	if err := c.Expire(ctx, longer.ID); !errors.As(err, &statusErr) || statusErr.Code != http.StatusNotFound {
		t.Fatalf("ending one that is not known: %v", err)
	}
}

func TestClient_silence_life_cycle(t *testing.T) {
	t.Parallel()
	now := time.Date(2020, 5, 1, 12, 0, 0, 0, time.UTC)
	checkSilenceLifecycle(t, client(t, fakealertmanager.New(testclock.NewFakePassiveClock(now))), now)
}

func TestClient_returns_an_error_for_every_invalid_response(t *testing.T) {
	t.Parallel()
	const good = `{"id":"a-1","status":{"state":"active"},"matchers":[{"name":"m","value":"v","isRegex":false}],` +
		`"startsAt":"2020-05-01T12:00:00Z","endsAt":"2020-05-01T13:00:00Z"}`
	for name, tc := range map[string]struct{ list, set, want string }{
		"nothing":                {``, ``, "unexpected end of JSON input"},
		"HTML":                   {"<html>\x1b[31m", "<html>\x1b[31m", `it begins with "<html>"`},
		"truncated JSON":         {`[` + good, `{"silenceID":"a-`, "unexpected end"},
		"more than one value":    {`[] []`, `{"silenceID":"a"} {}`, "after top-level value"},
		"null":                   {`null`, `null`, ""},
		"another shape":          {`{"status":"error"}`, `["a"]`, "cannot unmarshal"},
		"no ID":                  {`[` + strings.Replace(good, `"a-1"`, `""`, 1) + `]`, `{}`, `"" is no ID`},
		"an ID that is a path":   {`[` + strings.Replace(good, `a-1`, `../../x`, 1) + `]`, `{"silenceID":"../../x"}`, `"../../x" is no ID`},
		"no status":              {`[` + strings.Replace(good, `status`, `statusx`, 1) + `]`, ``, ""},
		"an unknown state":       {`[` + strings.Replace(good, `active`, `\u0007`, 1) + `]`, ``, ""},
		"no end":                 {`[` + strings.Replace(good, `endsAt`, `endsAtx`, 1) + `]`, ``, ""},
		"a time that is none":    {`[` + strings.Replace(good, `2020`, `20x0`, 1) + `]`, ``, ""},
		"one bad one among good": {`[` + good + `,{}]`, ``, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := client(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body := tc.list
				if r.Method == http.MethodPost {
					body = tc.set
				}
				_, _ = w.Write([]byte(body))
			}))
			_, _, listed := c.Silences(t.Context())
			_, set := c.Upsert(t.Context(), alertmanager.Silence{})
			for _, err := range []error{listed, set} {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("got %v, want an error with %s", err, tc.want)
				}
			}
		})
	}
}

func TestSilences_applies_the_filter_itself(t *testing.T) {
	t.Parallel()
	const others = `[{"id":"a-1","status":{"state":"active"},"matchers":[{"name":"m","value":"v","isRegex":false}],` +
		`"startsAt":"2020-05-01T12:00:00Z","endsAt":"2020-05-01T13:00:00Z"}]`
	c := client(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(others)) }))
	for name, tc := range map[string]struct {
		having []alertmanager.Matcher
		want   int
	}{
		"no filter":            {nil, 1},
		"it has it":            {[]alertmanager.Matcher{alertmanager.Equal("m", "v")}, 1},
		"another value":        {[]alertmanager.Matcher{alertmanager.Equal("m", "w")}, 0},
		"the opposite":         {[]alertmanager.Matcher{alertmanager.NotEqual("m", "v")}, 0},
		"not all of them":      {[]alertmanager.Matcher{alertmanager.Equal("m", "v"), alertmanager.Equal("n", "v")}, 0},
		"a regular expression": {[]alertmanager.Matcher{alertmanager.Matches("m", "v")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, _, err := c.Silences(t.Context(), tc.having...)
			if err != nil || len(found) != tc.want {
				t.Errorf("found %v, %v; want %d", found, err, tc.want)
			}
		})
	}
}

func TestExpire_makes_no_request_with_an_invalid_ID(t *testing.T) {
	t.Parallel()
	c := client(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("requested %s", r.URL) }))
	for _, id := range []string{"", "..", "../silences", "a b", strings.Repeat("a", 65)} {
		if err := c.Expire(t.Context(), id); err == nil {
			t.Errorf("%q was accepted", id)
		}
	}
}

func FuzzTheList(f *testing.F) {
	f.Add([]byte(`[{"id":"a-1","status":{"state":"active"},"matchers":[],"startsAt":"2020-05-01T12:00:00Z","endsAt":"2020-05-01T13:00:00Z"}]`))
	f.Add([]byte(`<html>`))
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }))
	f.Cleanup(server.Close)
	f.Fuzz(func(t *testing.T, data []byte) {
		body = data
		found, _, err := clientFor(t, server.URL).Silences(t.Context())
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("the error has %d bytes", len(err.Error()))
		}
		for _, s := range found {
			if s.ID == "" || s.State == "" || s.EndsAt.IsZero() {
				t.Errorf("accepted: %+v", s)
			}
		}
	})
}
