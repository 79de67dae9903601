// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// route returns the Route to Prometheus.
func route(host string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "route.openshift.io/v1", "kind": "Route",
		"metadata": map[string]any{"namespace": "openshift-monitoring", "name": "prometheus-k8s"},
		"spec":     map[string]any{"host": host},
	}}
}

func TestAlerts_are_read_through_the_Route(t *testing.T) {
	t.Parallel()
	alert := func(name string) string {
		return fmt.Sprintf(`{"labels":{"alertname":%q},"annotations":{},"state":"firing","activeAt":"2026-11-22T14:00:00Z","value":"1"}`, name)
	}
	tests := map[string]struct {
		config rest.Config
		alerts []string
		want   string // the alerts or part of the error
	}{
		"one fires":            {rest.Config{BearerToken: "secret"}, []string{"Watchdog", "Smoke"}, "Smoke"},
		"no rules are checked": {rest.Config{BearerToken: "secret"}, []string{"Smoke"}, "Watchdog"},
		"another token":        {rest.Config{BearerToken: "other"}, []string{"Watchdog"}, "401"},
		"no token":             {rest.Config{}, []string{"Watchdog"}, "oc login"},
		"impersonation":        {rest.Config{BearerToken: "secret", Impersonate: rest.ImpersonationConfig{UserName: "x"}}, []string{"Watchdog"}, "--as"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer secret" || r.URL.Path != "/api/v1/alerts" {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				var alerts []string
				for _, name := range test.alerts {
					alerts = append(alerts, alert(name))
				}
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"status":"success","data":{"alerts":[%s]}}`, strings.Join(alerts, ","))
			}))
			t.Cleanup(server.Close)
			config := test.config
			config.Host = "https://api.invalid"
			config.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
			reader := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(route(strings.TrimPrefix(server.URL, "https://"))).Build()
			alerts, err := routedPrometheus{reader, &config}.ActiveAlerts(t.Context())
			var got []string
			for _, alert := range alerts {
				got = append(got, alert.Name)
			}
			if all := strings.Join(got, ","); err == nil && all != test.want || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("alerts %q, error %v, want %s", got, err, test.want)
			}
		})
	}
}

func TestAlerts_need_a_Route(t *testing.T) {
	t.Parallel()
	for name, host := range map[string]string{"without a host": "", "missing": "-"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			builder := fake.NewClientBuilder().WithScheme(runtime.NewScheme())
			if host == "" {
				builder = builder.WithObjects(route(""))
			}
			if alerts, err := (routedPrometheus{builder.Build(), &rest.Config{}}).ActiveAlerts(t.Context()); err == nil || !strings.Contains(err.Error(), "Route of Prometheus") {
				t.Errorf("alerts %v, error %v, want one about the Route", alerts, err)
			}
		})
	}
}
