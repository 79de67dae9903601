// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// deploymentServer returns the client configuration for an API server that serves only the former
// operator's Deployment. The watch receives states from the channel; the list is empty.
func deploymentServer(t *testing.T, states <-chan *appsv1.Deployment) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		w.Header().Set("Content-Type", "application/json")
		encode := func(value any) {
			if err := json.NewEncoder(w).Encode(value); err != nil && r.Context().Err() == nil {
				t.Error(err)
			}
		}
		switch {
		case r.URL.Path != "/apis/apps/v1/namespaces/"+formerNamespace+"/deployments" || query.Get("fieldSelector") != "metadata.name="+formerName:
			t.Errorf("unexpected request for %s", r.URL)
			http.NotFound(w, r)
		case query.Get("sendInitialEvents") != "": // an API server of an older release
			w.WriteHeader(http.StatusUnprocessableEntity)
			encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: metav1.StatusReasonInvalid, Code: 422})
		case query.Get("watch") == "":
			encode(appsv1.DeploymentList{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DeploymentList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}})
		default:
			for {
				_ = http.NewResponseController(w).Flush()
				select {
				case <-r.Context().Done():
					return
				case deployment := <-states:
					deployment.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}
					encode(map[string]any{"type": "MODIFIED", "object": deployment})
				}
			}
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return &rest.Config{Host: server.URL}
}

func TestObserveFormer(t *testing.T) {
	t.Parallel()
	idle, ours, runs := formerDeployment(), formerDeployment(), formerDeployment()
	idle.Spec.Replicas, ours.Spec.Template.Labels = new(int32(0)), nil
	found := make(chan struct{}, 1)
	handler := observeFormer(found)
	for name, deployment := range map[string]*appsv1.Deployment{"scaled to 0": idle, "this operator": ours} {
		handler.OnAdd(deployment, true)
		handler.OnUpdate(runs, deployment)
		if len(found) > 0 {
			t.Fatalf("the Deployment that is %s counts as the former operator", name)
		}
	}
	for name, observe := range map[string]func(){"added": func() { handler.OnAdd(runs, false) }, "scaled to 1": func() { handler.OnUpdate(idle, runs) }} {
		observe()
		observe() // before the first state is received
		if len(found) != 1 {
			t.Fatalf("the former operator, %s, is not observed", name)
		}
		<-found
	}
}

// While this operator is running, the former operator is installed without replicas and then scaled
// to 1.
func TestFormerWatch(t *testing.T) {
	t.Parallel()
	states := make(chan *appsv1.Deployment)
	former := formerOperator{client: simulation.NewFakeClient(t), namespace: "upgrades", clock: testingclock.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))}
	watch, err := newFormerWatch(former, deploymentServer(t, states))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- watch.Start(t.Context()) }()
	idle, runs := formerDeployment(), formerDeployment()
	idle.Spec.Replicas = new(int32(0))
	for i, deployment := range []*appsv1.Deployment{idle, runs} {
		deployment.ResourceVersion = string(rune('2' + i))
		select {
		case states <- deployment: // the server has already sent the previous state
		case err := <-ended:
			t.Fatalf("ended before the former operator runs: %v", err)
		}
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "docs/migrate.md") {
		t.Errorf("got %v, want an error that names docs/migrate.md", err)
	}
}

func TestFormerWatch_ends_with_the_context(t *testing.T) {
	t.Parallel()
	watch, err := newFormerWatch(formerOperator{}, deploymentServer(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- watch.Start(ctx) }()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("got %v, want no error", err)
	}
}
