// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// At startup, the binary logs the kinds that the API server does not serve, and what to do.
func TestMissingKinds_are_logged(t *testing.T) {
	t.Parallel()
	deployment, replicas := manager.Kind{Object: &appsv1.Deployment{}}, manager.Kind{Object: &appsv1.ReplicaSet{}}
	lease, budget := manager.Kind{Object: &coordinationv1.Lease{}}, manager.Kind{Object: &policyv1.PodDisruptionBudget{}}
	for name, tc := range map[string]struct {
		kinds []manager.Kind
		want  string
	}{
		"all are served":    {kinds: []manager.Kind{deployment}},
		"a kind of a group": {kinds: []manager.Kind{deployment, replicas}, want: `"missing"=["ReplicaSet.apps"]`},
		"a group":           {kinds: []manager.Kind{lease, replicas, lease}, want: `"missing"=["Lease.coordination.k8s.io" "ReplicaSet.apps"]`},
		"an optional kind":  {kinds: []manager.Kind{{Object: &corev1.Pod{}, Optional: true}}},
		"what is not known": {kinds: []manager.Kind{budget}}, // no reason to tell users to install it
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				groups := map[string]string{
					"/api": "",
					"/apis": `{"metadata":{"name":"apps"},"versions":[{"version":"v1","freshness":"Current","resources":[` +
						`{"resource":"deployments","responseKind":{"group":"apps","version":"v1","kind":"Deployment"},"scope":"Namespaced","verbs":["get"]}]}]},` +
						`{"metadata":{"name":"policy"},"versions":[{"version":"v1","freshness":"Stale"}]}`,
				}
				w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
				_, _ = fmt.Fprintf(w, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[%s]}`, groups[r.URL.Path])
			}))
			defer server.Close()
			var logged []string
			log := funcr.New(func(_, line string) { logged = append(logged, line) }, funcr.Options{})
			manager.LogMissing(t.Context(), &rest.Config{Host: server.URL}, log, clientgoscheme.Scheme, tc.kinds)
			line := strings.Join(logged, "\n")
			if tc.want == "" && line != "" || !strings.Contains(line, tc.want) || tc.want != "" && !strings.Contains(line, "make install") {
				t.Errorf("logged %q, want %q", line, tc.want)
			}
			if n := requests.Load(); n != 2 {
				t.Errorf("%d requests, want 2", n)
			}
		})
	}
}
