// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package devcluster_test

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/devtest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/informersdk/conformance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/informer"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/manifests"
)

// startInformer starts an informer on a new cluster. It returns the informer and a function that requests
// insights.
func startInformer(t *testing.T) (server *informer.Server, ask func() (string, error)) {
	t.Helper()
	running := devtest.Start(t, func(ctx context.Context) (*controlplane.ControlPlane, error) {
		return controlplane.Start(ctx, controlplane.Options{Dir: t.TempDir(), WithoutControllerManager: true})
	})
	c, err := manifests.Client(running.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := manifests.Read(os.DirFS("../../deploy/update-status/crds"))
	if err != nil {
		t.Fatal(err)
	}
	if err := manifests.Apply(t.Context(), c, definitions); err != nil {
		t.Fatal(err)
	}
	if server, err = informer.Start(t.Context(), c, "informers", "mine"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	registered := informerManifest(t, c)
	if registered != "mine" {
		t.Errorf("the UpdateInformer names Service %s", registered)
	}
	return server, func() (string, error) {
		caller, err := httpclient.New(httpclient.Options{
			URL: "https://" + server.Address(), CA: server.CA(), ServerName: "mine.informers.svc", Timeout: 2 * time.Second,
			Token: func(context.Context) (string, error) { return "any", nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer caller.Close()
		path := strings.Split(strings.TrimPrefix(hooksv1alpha.UpdateInsightsPath, "/"), "/")
		body, err := caller.Do(t.Context(), httpclient.Request{Method: http.MethodGet, Path: path})
		return string(body), err
	}
}

// informerManifest returns the name of the Service in the UpdateInformer.
func informerManifest(t *testing.T, c client.Client) string {
	t.Helper()
	objects, err := manifests.Decode([]byte(`{"apiVersion": "config.openshift.io/v1beta1", "kind": "UpdateInformer", "metadata": {"name": "mine"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "mine"}, objects[0]); err != nil {
		t.Fatal(err)
	}
	spec, _ := objects[0].Object["spec"].(map[string]any)
	config, _ := spec["clientConfig"].(map[string]any)
	service, _ := config["service"].(map[string]any)
	name, _ := service["name"].(string)
	return name
}

func TestInformer(t *testing.T) {
	t.Parallel()
	server, ask := startInformer(t)
	if findings, err := conformance.Run(t.Context(), conformance.Target{URL: "https://" + server.Address(), CA: server.CA(), ServerName: "mine.informers.svc", Token: "any"}); err != nil || len(findings) > 0 {
		t.Errorf("findings %v, %v", findings, err)
	}
	insight := hooksv1alpha.Insight{
		UID: "a", Scope: updatev1beta1.InsightScope{Type: updatev1beta1.ScopeControlPlane},
		Impact: updatev1beta1.InsightImpact{Level: updatev1beta1.LevelWarning, Summary: "The queue is full"},
	}
	for _, tc := range []struct {
		name     string
		behavior informer.Behavior
		want     string // part of the response or the error
		fails    bool
	}{
		{"insight", informer.Behavior{Insights: []hooksv1alpha.Insight{insight}}, `"uid":"a"`, false},
		{"failure", informer.Behavior{Response: hooksv1alpha.ResponseFailure, Message: "no database"}, `"Failure","message":"no database"`, false},
		{"wait", informer.Behavior{Response: hooksv1alpha.ResponseWait, Message: "collecting"}, `"Wait","message":"collecting"`, false},
		{"hang", informer.Behavior{Hang: true}, "no complete response in time", true},
		{"connection", informer.Behavior{Break: informer.BreakConnection}, "EOF", true},
		{"certificate", informer.Behavior{Break: informer.BreakCertificate}, "another.mine.informers.svc", true},
		{"status", informer.Behavior{Break: informer.BreakStatus}, "500", true},
		{"redirect", informer.Behavior{Break: informer.BreakRedirect}, "307", true},
		{"json", informer.Behavior{Break: informer.BreakJSON}, "<html>", false},
		{"size", informer.Behavior{Break: informer.BreakSize}, "longer than", true},
		{"nothing", informer.Behavior{}, `"insights":[]`, false},
	} {
		server.Behave(tc.behavior)
		got, err := ask()
		if err != nil {
			got = err.Error()
		}
		if (err != nil) != tc.fails || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %s", tc.name, got[:min(len(got), 500)])
		}
	}
	if server.Requests(hooksv1alpha.UpdateInsightsPath) == 0 {
		t.Error("no request was counted")
	}
}
