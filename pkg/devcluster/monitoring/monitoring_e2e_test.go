// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package monitoring_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/devtest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/monitoring"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/alerting"
)

// doRequest returns the response body.
func doRequest(t *testing.T, method, at, body string) ([]byte, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, at, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s: %s", method, at, response.Status, answer)
	}
	return answer, nil
}

func decode[T any](t *testing.T, text []byte) T {
	t.Helper()
	var into T
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return into
}

// firingAlerts returns the names and severities of the alerts that Prometheus reports as firing.
func firingAlerts(t *testing.T, running *monitoring.Monitoring) []string {
	t.Helper()
	answer, err := doRequest(t, http.MethodGet, running.PrometheusURL()+"/api/v1/query?query="+url.QueryEscape(`ALERTS{alertstate="firing"}`), "")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, result := range decode[struct {
		Data struct {
			Result []struct{ Metric map[string]string }
		}
	}](t, answer).Data.Result {
		found = append(found, result.Metric["alertname"]+" "+result.Metric["severity"])
	}
	slices.Sort(found)
	return found
}

// known returns the names of the alerts that Alertmanager reports.
func known(t *testing.T, running *monitoring.Monitoring) []string {
	t.Helper()
	answer, err := doRequest(t, http.MethodGet, running.AlertmanagerURL()+"/api/v2/alerts", "")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, alert := range decode[[]struct{ Labels map[string]string }](t, answer) {
		found = append(found, alert.Labels["alertname"])
	}
	slices.Sort(found)
	return found
}

// silenced returns the comments of the active silences.
func silenced(t *testing.T, running *monitoring.Monitoring) []string {
	t.Helper()
	answer, err := doRequest(t, http.MethodGet, running.AlertmanagerURL()+"/api/v2/silences", "")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, silence := range decode[[]struct {
		Comment string
		Status  struct{ State string }
	}](t, answer) {
		if silence.Status.State == "active" {
			found = append(found, silence.Comment)
		}
	}
	return found
}

func silence(t *testing.T, running *monitoring.Monitoring, comment string) {
	t.Helper()
	now := time.Now()
	body, err := json.Marshal(map[string]any{
		"matchers":  []any{map[string]any{"name": "alertname", "value": "Fire", "isRegex": false}},
		"startsAt":  now,
		"endsAt":    now.Add(time.Hour),
		"createdBy": "test",
		"comment":   comment,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := doRequest(t, http.MethodPost, running.AlertmanagerURL()+"/api/v2/silences", string(body)); err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, what string, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func eventually(t *testing.T, what string, want []string, get func() []string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for got := get(); !slices.Equal(got, want); got = get() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: got %v, want %v", what, got, want)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func timed(t *testing.T, what string, do func() error) {
	t.Helper()
	startTime := time.Now()
	if err := do(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s took %s", what, time.Since(startTime).Round(time.Millisecond))
}

func TestAlert_fires_and_is_resolved(t *testing.T) {
	t.Parallel()
	smoke := alerting.Alert{Name: "Smoke", Labels: map[string]string{"severity": "warning"}}
	running := devtest.StartMonitoring(t, alerting.Spec{Alerts: []alerting.Alert{smoke}})
	expect(t, "what fires from the start", []string{"Smoke warning", "Watchdog none"}, firingAlerts(t, running))

	for _, severity := range []string{"critical", "warning"} {
		timed(t, "firing", func() error {
			return running.Fire(t.Context(), alerting.Alert{Name: "Fire", Labels: map[string]string{"severity": severity}})
		})
	}
	expect(t, "what fires then", []string{"Fire critical", "Fire warning", "Smoke warning", "Watchdog none"}, firingAlerts(t, running))
	eventually(t, "what Alertmanager received", []string{"Fire", "Fire", "Smoke", "Watchdog"}, func() []string { return known(t, running) })

	timed(t, "resolving", func() error { return running.Resolve(t.Context(), "Fire") })
	expect(t, "what fires in the end", []string{"Smoke warning", "Watchdog none"}, firingAlerts(t, running))
	eventually(t, "what Alertmanager received in the end", []string{"Smoke", "Watchdog"}, func() []string { return known(t, running) })

	if err := running.Resolve(t.Context(), "Fire"); err == nil {
		t.Error("an alert was resolved that does not fire")
	}
	if err := running.Fire(t.Context(), smoke); err != nil {
		t.Errorf("firing what fires: %v", err)
	}
	timed(t, "firing once more", func() error {
		return running.Fire(t.Context(), alerting.Alert{Name: "Fire", Labels: map[string]string{"severity": "critical"}})
	})
	expect(t, "what fires once more", []string{"Fire critical", "Smoke warning", "Watchdog none"}, firingAlerts(t, running))
}

func TestServers_keep_address_and_data_across_restarts(t *testing.T) {
	t.Parallel()
	running := devtest.StartMonitoring(t, alerting.Spec{Alerts: []alerting.Alert{{Name: "Smoke"}}})
	silence(t, running, "quiet, please")
	expect(t, "silences", []string{"quiet, please"}, silenced(t, running))

	timed(t, "stopping Alertmanager", running.StopAlertmanager)
	if _, err := doRequest(t, http.MethodGet, running.AlertmanagerURL()+"/-/ready", ""); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("asking a stopped Alertmanager: %v, want refused", err)
	}
	expect(t, "what fires meanwhile", []string{"Smoke ", "Watchdog none"}, firingAlerts(t, running))
	timed(t, "starting Alertmanager", func() error { return running.StartAlertmanager(t.Context()) })
	expect(t, "silences afterwards", []string{"quiet, please"}, silenced(t, running))

	timed(t, "stopping Prometheus", running.StopPrometheus)
	if _, err := doRequest(t, http.MethodGet, running.PrometheusURL()+"/-/ready", ""); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("asking a stopped Prometheus: %v, want refused", err)
	}
	if err := running.Fire(t.Context(), alerting.Alert{Name: "Fire"}); err != nil {
		t.Errorf("firing while Prometheus is down: %v", err)
	}
	if err := running.Resolve(t.Context(), "Smoke"); err != nil {
		t.Errorf("resolving while Prometheus is down: %v", err)
	}
	timed(t, "starting Prometheus", func() error { return running.StartPrometheus(t.Context()) })
	expect(t, "what fires afterwards", []string{"Fire ", "Watchdog none"}, firingAlerts(t, running))
}

func TestStop_leaves_no_process(t *testing.T) {
	t.Parallel()
	devtest.CheckStop(t, devtest.StartMonitoring(t, alerting.Spec{}), 2)
}
