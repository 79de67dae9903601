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
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/monitoring"
)

// hostile answers each request in the next of some ways.
type hostile struct {
	ways         []http.HandlerFunc
	requestCount atomic.Int32
	url          string
}

func startHostile(t *testing.T, ways ...http.HandlerFunc) *hostile {
	t.Helper()
	h := &hostile{ways: ways}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ways[int(h.requestCount.Add(1)-1)%len(h.ways)](w, r)
	}))
	t.Cleanup(server.Close)
	h.url = server.URL
	return h
}

// failingHandlers are ways in which nobody claims to have done what was asked for.
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

// misleadingHandlers are ways in which somebody claims to, in addition.
func misleadingHandlers() []http.HandlerFunc {
	return append(failingHandlers(),
		func(w http.ResponseWriter, _ *http.Request) { endless(w, "[") },
		func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"alertname":"\u001b[2J`+
				strings.Repeat("é", 1<<20)+`"},"value":[1,"1"]}]}}`)
		},
	)
}

// endless writes until nobody reads any more.
func endless(w io.Writer, text string) {
	text = strings.Repeat(text, 1<<12)
	for {
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
	}
}

// drip writes a byte now and then until nobody reads any more.
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

// TestHostileServersAreSurvived has Prometheus, Alertmanager and the receiver misbehave in all ways, one after the other.
// What is said of that can be printed and is short, memory stays bounded, the upgrade does not commence without
// Prometheus, and needs nobody else; what could not be told is told when somebody takes it.
func TestHostileServersAreSurvived(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, devcluster.Spec{Speed: fast, Monitoring: &monitoring.Spec{}})
	userClient := newUserClient(t, cluster)
	prometheus, alertmanager, receiver := startHostile(t, misleadingHandlers()...), startHostile(t, misleadingHandlers()...), startHostile(t, failingHandlers()...)
	const settings = "maintenance: {patience: 2s}\nalerts: {interval: 1s, timeout: 1s, url: %q}\nalertmanager: {timeout: 1s, url: %q}\nwebhook: {timeout: 1s, url: %q}\n"
	operator := startOperator(t, cluster, devcluster.OperatorOptions{Config: fmt.Sprintf(settings, prometheus.url, alertmanager.url, receiver.url)})
	upgrade := applyUpgrade(t, userClient, upgradeTo("4.20.6"))

	eventually(t, time.Minute, "Prometheus has answered in each way", func(ctx context.Context) error {
		if err := userClient.Get(ctx, client.ObjectKeyFromObject(upgrade), upgrade); err != nil {
			return err
		}
		checkTexts(t, upgrade)
		if asked := int(prometheus.requestCount.Load()); asked <= len(prometheus.ways) {
			return fmt.Errorf("it was asked %d times", asked)
		}
		return nil
	})
	if c := meta.FindStatusCondition(upgrade.Status.Conditions, v1alpha1.ConditionProgressing); c == nil || c.Reason != "CannotObserve" {
		t.Errorf("the upgrade says %+v, want CannotObserve", c)
	}
	if asked := clusterVersion(t, userClient).Spec.DesiredUpdate; asked != nil {
		t.Errorf("the upgrade has commenced: %+v", asked)
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
			t.Errorf("%s is not over as %s", step, want)
		}
	}
	if memory := statusOf(t, operator.Replicas()[0].PID(), "VmRSS"); memory > maxMemory {
		t.Errorf("%d KiB are resident, want at most %d", memory, maxMemory)
	}
	if receiver.requestCount.Load() == 0 || alertmanager.requestCount.Load() == 0 {
		t.Error("nobody turned to the receiver, or to Alertmanager")
	}
	if err := operator.Configure(fmt.Sprintf(settings, cluster.Monitoring.PrometheusURL(), cluster.Monitoring.AlertmanagerURL(), cluster.Sink.URL())); err != nil {
		t.Fatal(err)
	}
	checkAftermath(t, cluster, operator)
}

// checkTexts fails if something that is said of an upgrade cannot be printed, or is long.
func checkTexts(t *testing.T, upgrade *v1alpha1.UpgradeConfig) {
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
			t.Errorf("%s says, in %d bytes: %q", of, len(text), text)
		}
	}
}
