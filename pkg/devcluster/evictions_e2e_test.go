// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package devcluster_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/devtest"
)

// withoutRetries removes the header that makes client-go repeat a request up to ten times. The status has its value.
type withoutRetries struct{ next http.RoundTripper }

func (w withoutRetries) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := w.next.RoundTrip(request)
	if err == nil {
		response.Header.Del("Retry-After")
	}
	return response, err
}

// TestEvictions_on_an_API_server checks the table of the simulation's Eviction API on the real one. No
// controller manager changes the budgets.
func TestEvictions_on_an_API_server(t *testing.T) {
	t.Parallel()
	running := devtest.Start(t, func(ctx context.Context) (*controlplane.ControlPlane, error) {
		return controlplane.Start(ctx, controlplane.Options{Dir: t.TempDir(), WithoutControllerManager: true})
	})
	access := running.RESTConfig()
	access.Wrap(func(next http.RoundTripper) http.RoundTripper { return withoutRetries{next} })
	api, err := client.New(access, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range evictionCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // retries of a conflict take ten seconds
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-"}}
			if err := api.Create(t.Context(), namespace); err != nil {
				t.Fatal(err)
			}
			if err := api.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "default"}}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tc.run(t, api, namespace.Name)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
