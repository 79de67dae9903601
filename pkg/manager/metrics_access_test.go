// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"
)

// metricsWorld is a metrics server whose token reviews are answered from a table.
type metricsWorld struct {
	clock    *testingclock.FakeClock
	statuses map[string]int
	err      error
	reviewed []string
	handler  http.Handler
}

func newMetricsWorld() *metricsWorld {
	w := &metricsWorld{clock: testingclock.NewFakeClock(time.Unix(1000, 0)), statuses: map[string]int{"prometheus": http.StatusOK, "viewer": http.StatusForbidden}}
	access := &metricsAccess{clock: w.clock, log: logr.Discard(), review: func(_ context.Context, token, verb, path string) (int, error) {
		w.reviewed = append(w.reviewed, token+" "+verb+" "+path)
		if w.err != nil {
			return 0, w.err
		}
		if status := w.statuses[token]; status != 0 {
			return status, nil
		}
		return http.StatusUnauthorized, nil
	}}
	w.handler = access.wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "metrics") }))
	return w
}

func (w *metricsWorld) get(headers ...string) (int, string) {
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	for _, h := range headers {
		r.Header.Add("Authorization", h)
	}
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, r)
	return recorder.Code, recorder.Body.String()
}

func TestMetricsRequestsWithoutATokenCostNothing(t *testing.T) {
	t.Parallel()
	for name, headers := range map[string][]string{
		"no header":           nil,
		"an empty header":     {""},
		"no token":            {"Bearer "},
		"blanks for a token":  {"Bearer    "},
		"a password":          {"Basic cHJvbWV0aGV1czpx"},
		"another scheme":      {"Negotiate prometheus"},
		"two headers":         {"Bearer prometheus", "Bearer prometheus"},
		"two tokens":          {"Bearer prometheus grafana"},
		"control characters":  {"Bearer prom\x01etheus"},
		"a token of 1 MB":     {"Bearer " + strings.Repeat("x", 1<<20)},
		"a token without its": {"prometheus"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newMetricsWorld()
			if code, body := w.get(headers...); code != http.StatusUnauthorized || strings.Contains(body, "metrics") {
				t.Errorf("responded %d %s", code, body)
			}
			if len(w.reviewed) > 0 {
				t.Errorf("%d tokens were reviewed", len(w.reviewed))
			}
		})
	}
}

func TestMetricsDecisionsAreCachedForAMinute(t *testing.T) {
	t.Parallel()
	w := newMetricsWorld()
	for range 3 {
		for token, want := range map[string]int{"prometheus": http.StatusOK, "viewer": http.StatusForbidden, "stranger": http.StatusUnauthorized} {
			if code, _ := w.get("bearer " + token); code != want {
				t.Errorf("%s: responded %d, want %d", token, code, want)
			}
		}
	}
	if len(w.reviewed) != 3 {
		t.Errorf("reviewed %q", w.reviewed)
	}
	w.clock.Step(time.Minute)
	w.statuses["prometheus"] = http.StatusForbidden // the permission was revoked
	if code, _ := w.get("Bearer prometheus"); code != http.StatusForbidden {
		t.Errorf("a minute after a right was revoked: %d", code)
	}
	if got := w.reviewed[len(w.reviewed)-1]; got != "prometheus get /metrics" {
		t.Errorf("reviewed %q", got)
	}
}

func TestMetricsReviewErrorsAreNotCached(t *testing.T) {
	t.Parallel()
	w := newMetricsWorld()
	w.err = errors.New("the API server is down")
	if code, body := w.get("Bearer prometheus"); code != http.StatusInternalServerError || strings.Contains(body, "API server") {
		t.Errorf("responded %d %s", code, body)
	}
	w.err = nil
	if code, body := w.get("Bearer prometheus"); code != http.StatusOK || body != "metrics" {
		t.Errorf("responded %d %s", code, body)
	}
}

// A flood of invalid tokens causes a limited number of reviews and does not block a previously
// allowed token.
func TestMetricsReviewsOfUnknownTokensAreLimited(t *testing.T) {
	t.Parallel()
	w := newMetricsWorld()
	w.get("Bearer prometheus")
	for minute := range 10 {
		before := len(w.reviewed)
		limited := 0
		for i := range 1000 {
			if code, _ := w.get(fmt.Sprintf("Bearer made-up-%d-%d", minute, i)); code == http.StatusTooManyRequests {
				limited++
			}
		}
		if reviews := len(w.reviewed) - before; reviews > reviewsPerMin || limited < 1000-reviewsPerMin {
			t.Errorf("minute %d: %d reviews, %d requests limited", minute, reviews, limited)
		}
		w.clock.Step(time.Minute)
		for range 30 {
			w.get("Bearer made-up") // the flood continues before Prometheus scrapes
		}
		if code, _ := w.get("Bearer prometheus"); code != http.StatusOK {
			t.Errorf("minute %d: Prometheus is locked out: %d", minute, code)
		}
	}
}

func TestMetricsDecisionsAreBounded(t *testing.T) {
	t.Parallel()
	clk := testingclock.NewFakeClock(time.Unix(1000, 0))
	access := &metricsAccess{clock: clk, review: func(_ context.Context, token, _, _ string) (int, error) {
		if token == "prometheus" {
			return http.StatusOK, nil
		}
		return http.StatusUnauthorized, nil
	}}
	for i := range 100 * reviewsPerMin {
		if _, err := access.decide(t.Context(), strconv.Itoa(i), "get", "/metrics"); err != nil {
			t.Fatal(err)
		}
		if i%reviewsPerMin == 0 {
			clk.Step(time.Minute)
			if status, err := access.decide(t.Context(), "prometheus", "get", "/metrics"); err != nil || status != http.StatusOK {
				t.Fatal(status, err)
			}
		}
	}
	if n := len(access.decisions); n > maxDecisions {
		t.Errorf("%d decisions are kept", n)
	}
}

func TestMetricsReviewsAskTheAPIServer(t *testing.T) {
	t.Parallel()
	var requested []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Spec struct {
				Token                 string
				User                  string
				Groups                []string
				NonResourceAttributes struct{ Path, Verb string }
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		requested = append(requested, fmt.Sprintf("%s %s %+v", r.Method, r.URL.Path, body.Spec))
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "tokenreviews") {
			fmt.Fprintf(w, `{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": {"authenticated": %t, "user": {"username": %q, "groups": ["g"]}}}`, body.Spec.Token != "stranger", body.Spec.Token)
			return
		}
		fmt.Fprintf(w, `{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "status": {"allowed": %t}}`, body.Spec.User == "prometheus")
	}))
	t.Cleanup(server.Close)
	filter, err := newMetricsAccess(testingclock.NewFakeClock(time.Unix(1000, 0)))(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	handler, err := filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "metrics") }))
	if err != nil {
		t.Fatal(err)
	}
	w := &metricsWorld{handler: handler}
	for token, want := range map[string]int{"prometheus": 200, "viewer": 403, "stranger": 401} {
		if code, _ := w.get("Bearer " + token); code != want {
			t.Errorf("%s: responded %d, want %d", token, code, want)
		}
	}
	requested = nil
	if code, _ := w.get("Bearer admin"); code != 403 {
		t.Errorf("admin: responded %d", code)
	}
	want := []string{
		"POST /apis/authentication.k8s.io/v1/tokenreviews {Token:admin User: Groups:[] NonResourceAttributes:{Path: Verb:}}",
		"POST /apis/authorization.k8s.io/v1/subjectaccessreviews {Token: User:admin Groups:[g] NonResourceAttributes:{Path:/metrics Verb:get}}",
	}
	if diff := cmp.Diff(want, requested); diff != "" {
		t.Errorf("requested (-want +got):\n%s", diff)
	}
}
