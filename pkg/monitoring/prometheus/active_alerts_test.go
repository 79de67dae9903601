// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/prometheus"
)

const watchdogFiring = `{"labels":{"alertname":"Watchdog"},"state":"firing","activeAt":"2026-03-01T10:00:00Z"}`

func alertsResponse(alerts ...string) string {
	return `{"status":"success","data":{"alerts":[` + strings.Join(alerts, ",") + `]}}`
}

func TestActiveAlerts(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 3, 1, 12, 0, 0, 500, time.UTC)
	firing := `{"labels":{"alertname":"B","namespace":"x","severity":"Warning","pod":"p"},"annotations":{"summary":"s"},"state":"firing","activeAt":"2026-03-01T12:00:00.0000005Z","value":"1e+00"}`
	pending := `{"labels":{"alertname":"A"},"state":"pending","activeAt":"0001-01-01T00:00:00Z"}`
	var path string
	options := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.Method + " " + r.URL.Path
		respondJSON(alertsResponse(firing, watchdogFiring, pending))(w, r)
	}))
	options.Watchdog = "Watchdog"
	p, err := prometheus.New(options)
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.ActiveAlerts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []clusterstate.Alert{
		{Name: "A", Labels: map[string]string{"alertname": "A"}, Annotations: map[string]string{}},
		{
			Name: "B", Namespace: "x", Severity: "warning", Firing: true, Since: since,
			Labels:      map[string]string{"alertname": "B", "namespace": "x", "severity": "Warning", "pod": "p"},
			Annotations: map[string]string{"summary": "s"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if path != "GET /api/v1/alerts" {
		t.Errorf("requested %s", path)
	}
}

func TestActiveAlerts_returns_an_error_for_every_invalid_response(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		handler http.HandlerFunc
		reason  string
	}{
		"no watchdog":        {respondJSON(alertsResponse()), "alert Watchdog, which always fires"},
		"a pending watchdog": {respondJSON(alertsResponse(strings.Replace(watchdogFiring, "firing", "pending", 1))), "alert Watchdog, which always fires"},
		"a part of all stores": {
			respondJSON(strings.Replace(alertsResponse(watchdogFiring), "{", `{"warnings":["store a is down"],`, 1)), "the response has warnings: store a is down",
		},
		"null":            {respondJSON(`{"status":"success","data":null}`), "not a list of alerts"},
		"no list":         {respondJSON(`{"status":"success","data":{"alerts":7}}`), "malformed"},
		"a bad time":      {respondJSON(alertsResponse(watchdogFiring, `{"activeAt":"noon"}`)), "malformed"},
		"an error":        {respondJSON(`{"status":"error","error":"no"}`), `status "error"`},
		"no JSON":         {respondJSON(`<html>`), "not JSON"},
		"a server's fail": {respond(http.StatusInternalServerError, "text/plain", "down"), "500"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := serve(t, tc.handler)
			options.Watchdog = "Watchdog"
			p, err := prometheus.New(options)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := p.ActiveAlerts(t.Context()); err == nil || !strings.Contains(err.Error(), tc.reason) || got != nil {
				t.Errorf("got %v, %v; want an error with %q", got, err, tc.reason)
			}
		})
	}
}
