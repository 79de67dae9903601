// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/alerting"
)

// hostile is a server that misbehaves in a different way for each request.
type hostile struct {
	handlers     []http.HandlerFunc
	requestCount atomic.Int32
	url          string
}

func startHostile(t *testing.T, handlers ...http.HandlerFunc) *hostile {
	t.Helper()
	h := &hostile{handlers: handlers}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.handlers[int(h.requestCount.Add(1)-1)%len(h.handlers)](w, r)
	}))
	t.Cleanup(server.Close)
	h.url = server.URL
	return h
}

// failingHandlers return no success.
func failingHandlers() []http.HandlerFunc {
	return []http.HandlerFunc{
		func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		},
		func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			endless(w, "\x1b[31m\u202e\x00")
		},
		func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			drip(w, r)
		},
	}
}

// misleadingHandlers return a success with an invalid body, in addition.
func misleadingHandlers() []http.HandlerFunc {
	return append(failingHandlers(),
		func(w http.ResponseWriter, _ *http.Request) { endless(w, "[") },
		func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"alertname":"\u001b[2J`+
				strings.Repeat("é", 1<<20)+`"},"value":[1,"1"]}]}}`)
		},
	)
}

// endless writes until the client closes the connection.
func endless(w io.Writer, text string) {
	text = strings.Repeat(text, 1<<12)
	for {
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
	}
}

// drip writes a byte every 20 ms until the client closes the connection.
func drip(w http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		_, _ = io.WriteString(w, " ")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestHostileServers has Prometheus, Alertmanager, and the receiver misbehave in all ways, one
// after the other. Messages are printable and short, memory is bounded, the upgrade does not
// commence without Prometheus, and does not need the others. Notifications are delivered once the
// receiver works.
func TestHostileServers(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, openshiftsim.ClusterSpec{Speed: fast, Monitoring: &alerting.Spec{}})
	userClient := newUserClient(t, cluster)
	prometheus, alertmanager, receiver := startHostile(t, misleadingHandlers()...), startHostile(t, misleadingHandlers()...), startHostile(t, failingHandlers()...)
	const settings = "maintenance: {timeout: 2s}\nalerts: {interval: 1s, timeout: 1s, url: %q}\nalertmanager: {timeout: 1s, url: %q}\nwebhook: {timeout: 1s, url: %q}\n"
	operator := startOperator(t, cluster, devcluster.OperatorOptions{Config: fmt.Sprintf(settings, prometheus.url, alertmanager.url, receiver.url)})
	upgrade := applyUpgrade(t, userClient, upgradeTo("4.20.6"))

	eventually(t, time.Minute, "Prometheus has misbehaved in each way", func(ctx context.Context) error {
		if err := userClient.Get(ctx, client.ObjectKeyFromObject(upgrade), upgrade); err != nil {
			return err
		}
		checkTexts(t, upgrade)
		if n := int(prometheus.requestCount.Load()); n <= len(prometheus.handlers) {
			return fmt.Errorf("it got %d requests", n)
		}
		return nil
	})
	if c := meta.FindStatusCondition(upgrade.Status.Conditions, upgradev1alpha1.ConditionProgressing); c == nil || c.Reason != "CannotObserve" {
		t.Errorf("the condition is %+v, want CannotObserve", c)
	}
	if update := clusterVersion(t, userClient).Spec.DesiredUpdate; update != nil {
		t.Errorf("an update was requested: %+v", update)
	}

	if err := operator.Configure(fmt.Sprintf(settings, cluster.Monitoring.PrometheusURL(), alertmanager.url, receiver.url)); err != nil {
		t.Fatal(err)
	}
	follow(t, userClient, upgrade, func(record *history.Record) {
		upgrade.Status.History = []history.Record{*record}
		checkTexts(t, upgrade)
	})
	for step, want := range map[string]string{"ControlPlaneMaintWindow": "NotSilenced", "RemoveMaintWindow": "NotEnded"} {
		if i := slices.IndexFunc(upgrade.Status.History[0].Conditions, func(c history.StepCondition) bool { return c.Type == step && c.Reason == want }); i < 0 {
			t.Errorf("%s did not finish with reason %s", step, want)
		}
	}
	if memory := statusOf(t, operator.Replicas()[0].PID(), "VmRSS"); memory > maxMemory {
		t.Errorf("%d KiB are resident, want at most %d", memory, maxMemory)
	}
	if receiver.requestCount.Load() == 0 || alertmanager.requestCount.Load() == 0 {
		t.Error("the receiver or Alertmanager got no request")
	}
	if err := operator.Configure(fmt.Sprintf(settings, cluster.Monitoring.PrometheusURL(), cluster.Monitoring.AlertmanagerURL(), cluster.Sink.URL())); err != nil {
		t.Fatal(err)
	}
	checkAftermath(t, cluster, operator)
}

// checkTexts fails if a message of an upgrade is not printable, or is too long.
func checkTexts(t *testing.T, upgrade *upgradev1alpha1.UpgradeConfig) {
	t.Helper()
	texts := map[string]string{}
	for _, c := range upgrade.Status.Conditions {
		texts[c.Type] = c.Message
	}
	for _, h := range upgrade.Status.History {
		for _, c := range h.Conditions {
			texts["step "+c.Type] = c.Message
		}
	}
	for of, text := range texts {
		if len(text) > 2048 || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) {
			t.Errorf("%s has a message of %d bytes: %q", of, len(text), text)
		}
	}
}
