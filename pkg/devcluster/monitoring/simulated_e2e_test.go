// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package monitoring_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/devtest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/prometheus"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/alerting"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
)

// alertsView is what the product reads about alerts. That they have a start time is compared, but not the time.
type alertsView struct {
	Active, Critical []clusterstate.Alert
	HasSamples       bool
}

func viewAlerts(t *testing.T, source interface {
	checks.Prometheus
	ActiveAlerts(ctx context.Context) ([]clusterstate.Alert, error)
},
) alertsView {
	t.Helper()
	var view alertsView
	var errs [3]error
	view.Active, errs[0] = source.ActiveAlerts(t.Context())
	view.Critical, errs[1] = source.CriticalAlerts(t.Context())
	view.HasSamples, errs[2] = source.HasSamples(t.Context(), `ALERTS{alertstate="firing",alertname!="Watchdog"}`)
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, alerts := range [][]clusterstate.Alert{view.Active, view.Critical} {
		for i := range alerts {
			if !alerts[i].Since.IsZero() {
				alerts[i].Since = time.Unix(0, 0)
			}
		}
	}
	return view
}

// TestAlerts_as_simulated fires and resolves the same alerts in a real and a simulated Prometheus, and compares what the
// product reads.
func TestAlerts_as_simulated(t *testing.T) {
	t.Parallel()
	running := devtest.StartMonitoring(t, alerting.Spec{})
	client, err := prometheus.New(prometheus.Options{HTTPClient: httpclient.Options{URL: running.PrometheusURL(), Timeout: 10 * time.Second}, Watchdog: "Watchdog"})
	if err != nil {
		t.Fatal(err)
	}
	simulated := openshift.NewAlerts(clock.RealClock{})
	compare := func(step string) {
		if diff := cmp.Diff(viewAlerts(t, simulated), viewAlerts(t, client), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-simulated +real):\n%s", step, diff)
		}
	}
	compare("nothing fires")
	for _, step := range []struct {
		name  string
		alert alerting.Alert
	}{
		{"without a severity", alerting.Alert{Name: "Smoke"}},
		{"a critical alert of a pod", alerting.Alert{Name: "Fire", Labels: map[string]string{"severity": "critical", "namespace": "openshift-etcd", "pod": "b"}}},
		{"of another pod", alerting.Alert{Name: "Fire", Labels: map[string]string{"severity": "critical", "namespace": "openshift-etcd", "pod": "a"}}},
		{"the same once more", alerting.Alert{Name: "Fire", Labels: map[string]string{"severity": "critical", "namespace": "openshift-etcd", "pod": "a"}}},
		{"of another namespace", alerting.Alert{Name: "Fire", Labels: map[string]string{"severity": "critical", "namespace": "app"}}},
		{"in capital letters", alerting.Alert{Name: "Alarm", Labels: map[string]string{"severity": "Critical"}}},
		{"a warning", alerting.Alert{Name: "Heat", Labels: map[string]string{"severity": "warning", "namespace": "app"}}},
	} {
		simulated.Fire(step.alert)
		if err := running.Fire(t.Context(), step.alert); err != nil {
			t.Fatal(err)
		}
		compare(step.name)
	}
	simulated.Resolve("Fire")
	if err := running.Resolve(t.Context(), "Fire"); err != nil {
		t.Fatal(err)
	}
	compare("some are resolved")
}

// TestQueries_that_fail makes Prometheus give the answers that the tests of the client imitate.
func TestQueries_that_fail(t *testing.T) {
	t.Parallel()
	running := devtest.StartMonitoring(t, alerting.Spec{Alerts: []alerting.Alert{{Name: "Smoke"}}})
	client, err := prometheus.New(prometheus.Options{HTTPClient: httpclient.Options{URL: running.PrometheusURL(), Timeout: 10 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	for expression, want := range map[string]string{
		"sum(":                   `responded 400 Bad Request: {"status":"error","errorType":"bad_data","error":"`,
		"1":                      `responded 400 Bad Request: {"status":"error","errorType":"bad_data","error":"`,
		"ALERTS * on() ALERTS":   `responded 422 Unprocessable Entity: {"status":"error","errorType":"execution","error":"`,
		"quantile(2, vector(1))": `the response has warnings: PromQL warning: quantile value should be between 0 and 1`,
	} {
		if _, err := client.HasSamples(t.Context(), expression); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", expression, err, want)
		}
	}
}
