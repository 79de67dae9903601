// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// maxShutdown limits how long a binary may take to exit on a busy machine.
const maxShutdown = 25 * time.Second

// TestRun_ends_although_the_API_server_never_answers stops a binary while the API server leaves a
// request unanswered: either the first request or all later ones.
func TestRun_ends_although_the_API_server_never_answers(t *testing.T) {
	t.Parallel()
	for name, answersVersion := range map[string]bool{"first request": false, "later requests": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hanging := make(chan struct{}, 100)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if answersVersion && r.URL.Path == "/version" {
					_, _ = w.Write([]byte(`{"major": "1", "minor": "34"}`))
					return
				}
				hanging <- struct{}{}
				<-r.Context().Done()
			}))
			defer server.Close()
			defer server.CloseClientConnections()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			options := manager.Options{Namespace: "operators", MetricsBind: "0", HealthBind: "0", LogLevel: "error", LogFormat: "json", LeaderElection: manager.DefaultLeaderElection()}
			go func() {
				ended <- manager.Run(ctx, options, &rest.Config{Host: server.URL}, logr.Discard(), manager.Binary{LeaderLease: "silent", Clock: clock.RealClock{}})
			}()
			select {
			case <-hanging:
			case err := <-ended:
				t.Fatalf("ended before it was stopped: %v", err)
			}
			cancel()
			tooLate, cancelTooLate := context.WithTimeout(t.Context(), maxShutdown)
			defer cancelTooLate()
			select {
			case err := <-ended:
				t.Logf("ended: %v", err)
			case <-tooLate.Done():
				t.Fatalf("does not end within %s", maxShutdown)
			}
		})
	}
}
