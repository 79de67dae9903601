// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package nodekeeper_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/nodekeeper"
)

// refuseEvictions registers a validating webhook that, like KubeVirt's, responds with 429 to
// evictions of pods with a prefix. It returns the number of its calls.
func (k *testEnv) refuseEvictions(prefix string) *atomic.Int64 {
	k.tb.Helper()
	calls := &atomic.Int64{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		calls.Add(1)
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: !strings.HasPrefix(review.Request.Name, prefix)}
		if !review.Response.Allowed {
			review.Response.Result = &metav1.Status{Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests, Message: "eviction triggered a migration"}
		}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review)
	}))
	k.tb.Cleanup(server.Close)
	k.create(&admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "virt"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "evictions.example.com", AdmissionReviewVersions: []string{"v1"},
			SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: &server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"*"}, Resources: []string{"pods/eviction"}},
			}},
		}},
	})
	return calls
}

// TestDrain_with_a_webhook_that_refuses_evictions drains a node with a pod that no PDB selects but
// whose eviction a webhook refuses. The pod gets as much time as one that a PDB protects.
func TestDrain_with_a_webhook_that_refuses_evictions(t *testing.T) {
	t.Parallel()
	k := start(t)
	const node = "edge-0"
	k.addNode(node)
	k.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "virt"}}, pod(node, "virt", "virt-launcher-a"), pod(node, "virt", "plain"))
	k.waitUntilReady()
	calls := k.refuseEvictions("virt-launcher-")
	k.upgrade(120)
	k.run(config.NodeDrain{TimeOut: config.Duration{Duration: 45 * time.Minute}})
	k.requestDrain(node, time.Now().Add(-time.Hour)) // the first sighting is recorded
	k.eventually("the drain is seen", func() string {
		var seen corev1.Node
		if err := k.userClient.Get(t.Context(), client.ObjectKey{Name: node}, &seen); err != nil {
			t.Fatal(err)
		}
		if seen.Annotations[nodekeeper.AnnotationDrainFirstSeen] == "" {
			return "it is not"
		}
		return ""
	})

	k.clock.advance(46 * time.Minute)
	k.triggerReconcile()
	k.waitForPods(node, "virt/virt-launcher-a")
	k.eventually("the refusal is published", func() string {
		return gocmp.Diff(map[string]int{"Pod virt-launcher-a": 1, "Node edge-0": 1}, k.events("DrainBlocked"))
	})
	if calls.Load() == 0 {
		t.Error("the webhook was not called")
	}
	k.clock.advance(60 * time.Minute)
	asked := calls.Load()
	k.triggerReconcile()
	k.eventually("the eviction is requested again", func() string {
		if calls.Load() > asked {
			return ""
		}
		return "it is not"
	})
	k.waitForPods(node, "virt/virt-launcher-a")
	if events := k.events("DrainForced"); len(events) > 0 {
		t.Errorf("before the time of guarded pods, Events were published: %v", events)
	}
	k.clock.advance(15 * time.Minute)
	k.triggerReconcile()
	k.waitForPods(node, "")
	k.eventually("the forced pod is published and counted", func() string {
		return gocmp.Diff(map[string]int{"Pod virt-launcher-a": 1, "Node edge-0": 1}, k.events("DrainForced")) +
			gocmp.Diff(map[string]float64{"forced_drains_total EvictionRefused": 1}, k.series())
	})
}
