// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// elections is an API server with a Lease that hangs on every request for nodes.
type elections struct {
	free  atomic.Bool // whether the Lease has no holder
	asked chan struct{}
	nodes chan struct{}
}

func (e *elections) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/version":
		_, _ = w.Write([]byte(`{"major": "1", "minor": "37"}`))
	case strings.HasSuffix(r.URL.Path, "/leases/election"):
		e.asked <- struct{}{}
		lease := coordinationv1.Lease{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}}
		lease.Name, lease.Namespace = "election", "operators"
		lease.Spec.LeaseDurationSeconds = new(int32(3600))
		if !e.free.Load() {
			lease.Spec.HolderIdentity = new("another replica")
		}
		_ = json.NewEncoder(w).Encode(lease)
	case r.URL.Path == "/api/v1/nodes":
		e.nodes <- struct{}{}
		<-r.Context().Done()
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func TestRun_watches_nothing_while_the_replica_stands_by(t *testing.T) {
	t.Parallel()
	api := &elections{asked: make(chan struct{}, 1000), nodes: make(chan struct{}, 1000)}
	server := httptest.NewServer(api)
	defer server.Close()
	defer server.CloseClientConnections()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	options := manager.Options{
		Namespace: "operators", MetricsBind: "0", HealthBind: "0", LogLevel: "error", LogFormat: "json",
		LeaderElection: manager.LeaderElection{Enabled: true, LeaseDuration: time.Hour, RenewDeadline: time.Minute, RetryPeriod: time.Second},
	}
	node := manager.Kind{Object: &corev1.Node{}, AddToScheme: corev1.AddToScheme, ClusterScoped: true, Requests: manager.Self}
	controller := manager.Controller{
		Name: "standby", Reads: []manager.Kind{node}, AddToScheme: []func(*runtime.Scheme) error{corev1.AddToScheme},
		Reconciler: reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil }),
	}
	ended := make(chan error, 1)
	go func() {
		ended <- manager.Run(ctx, options, &rest.Config{Host: server.URL}, logr.Discard(), manager.Binary{LeaderLease: "election", Controllers: []manager.Controller{controller}, Clock: clock.RealClock{}})
	}()
	wait := func(what string, happened <-chan struct{}) {
		t.Helper()
		tooLate, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		select {
		case <-happened:
		case err := <-ended:
			t.Fatalf("ended before %s: %v", what, err)
		case <-tooLate.Done():
			t.Fatalf("no %s within a minute", what)
		}
	}
	for range 3 {
		wait("request for the Lease", api.asked)
	}
	if n := len(api.nodes); n != 0 {
		t.Errorf("%d requests for nodes while the replica stands by", n)
	}
	api.free.Store(true)
	wait("request for nodes once the replica leads", api.nodes)
	cancel()
	if err := <-ended; err != nil {
		t.Logf("ended: %v", err)
	}
}
