// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify/webhook"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

func clearProxy(t *testing.T) {
	t.Helper()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		t.Setenv(name, "")
	}
}

// TestWebhook_names_the_managed_cluster sends the events of a run's record and a notification about
// a fleet.
func TestWebhook_names_the_managed_cluster(t *testing.T) {
	clearProxy(t)
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var e event.Event
		var data webhook.Data
		if err := e.UnmarshalJSON(body); err != nil {
			t.Error(err)
		}
		if err := e.DataAs(&data); err != nil {
			t.Error(err)
		}
		got = append(got, strings.Join([]string{e.Source(), strings.TrimPrefix(e.Type(), "io.openshift.managed.upgrade."), e.Subject(), data.Cluster}, " | "))
	}))
	t.Cleanup(server.Close)
	h := newTestHub(t, Options{Webhook: httpclient.Options{URL: server.URL, Timeout: 10 * time.Second}})
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "3b0f"}}
	live := simulation.NewFakeClient(t, []client.Object{system}...)
	if err := h.bind(manager.Clients{Live: live}); err != nil {
		t.Fatal(err)
	}
	if h.runs.Notifier.Webhook != h.webhook || h.upgrades.Webhook != h.webhook {
		t.Fatal("a controller lacks the webhook")
	}
	start := metav1.NewTime(time.Date(2027, 3, 2, 12, 0, 0, 0, time.UTC))
	step := func(name string, milestone engine.Milestone, status metav1.ConditionStatus, reason string) history.StepCondition {
		c := history.StepCondition{Type: name, Milestone: milestone, Status: status, Reason: reason, Message: "text", StartTime: &start, LastTransitionTime: &start}
		if status == metav1.ConditionTrue {
			c.CompleteTime = &start
		}
		return c
	}
	record := history.Record{Version: "4.20.6", Attempt: 1, Conditions: []history.StepCondition{
		step("Started", engine.MilestoneStarted, metav1.ConditionTrue, "Done"),
		step(fleetv1alpha1.StepUpgradeDelivered, "", metav1.ConditionTrue, "Done"), // this step is not published
		step("Observed", engine.MilestoneControlPlaneUpgraded, metav1.ConditionFalse, "Waiting"),
	}}
	run := corev1.ObjectReference{Kind: "ClusterUpgradeRun", Namespace: "store-17", Name: "stores", UID: "u-1"}
	fleet := corev1.ObjectReference{Kind: "ManagedClustersUpgrade", Namespace: "fleet", Name: "stores", UID: "u-2"}
	if err := h.webhook.PublishSteps(t.Context(), run, record); err != nil {
		t.Fatal(err)
	}
	if err := h.webhook.Publish(t.Context(), fleet, engine.Notification{ID: "1", Milestone: engine.MilestoneCompleted, Reason: "Complete"}); err != nil {
		t.Fatal(err)
	}
	if err := h.webhook.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"urn:uuid:3b0f | started | ClusterUpgradeRun/store-17/stores | store-17",
		"urn:uuid:3b0f | completed | ManagedClustersUpgrade/fleet/stores | ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("CloudEvents (-want +got):\n%s", diff)
	}
}

func TestWebhook_flags_that_are_invalid(t *testing.T) {
	t.Parallel()
	for want, options := range map[string]httpclient.Options{
		"--webhook-url: ":     {URL: "receiver.example.com", Timeout: 10 * time.Second},
		"--webhook-timeout: ": {URL: "https://receiver.example.com", Timeout: time.Hour},
	} {
		_, err := newHub(Options{Webhook: options}, logr.Discard(), clocktesting.NewFakeClock(time.Unix(0, 0)))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
