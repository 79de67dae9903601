// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/prometheus"
)

// Watchdog is the alert that always fires on OpenShift.
const Watchdog = "Watchdog"

// routedPrometheus queries OpenShift's Prometheus through its Route with the user's token. It implements
// checks.AlertSource.
type routedPrometheus struct {
	reader client.Reader
	config *rest.Config
}

// ActiveAlerts returns the firing and pending alerts. It sends two requests, one for the Route and one for
// the alerts.
func (p routedPrometheus) ActiveAlerts(ctx context.Context) ([]clusterstate.Alert, error) {
	server, err := p.find(ctx)
	if err != nil {
		return nil, err
	}
	return server.ActiveAlerts(ctx)
}

// Spans returns the times when the series of an expression had samples. It sends two requests, one for the
// Route and one for the series.
func (p routedPrometheus) Spans(ctx context.Context, expression string, start, end time.Time, step time.Duration) ([]prometheus.Series, error) {
	server, err := p.find(ctx)
	if err != nil {
		return nil, err
	}
	return server.Spans(ctx, expression, start, end, step)
}

// find reads the Route and returns a client for it.
func (p routedPrometheus) find(ctx context.Context) (*prometheus.Client, error) {
	if p.config.Impersonate.UserName != "" {
		return nil, errors.New("alerts are not read with --as")
	}
	route := &unstructured.Unstructured{}
	route.SetGroupVersionKind(schema.GroupVersionKind{Group: "route.openshift.io", Version: "v1", Kind: "Route"})
	if err := p.reader.Get(ctx, client.ObjectKey{Namespace: "openshift-monitoring", Name: "prometheus-k8s"}, route); err != nil {
		return nil, fmt.Errorf("finding the Route of Prometheus: %w", err)
	}
	host, _, err := unstructured.NestedString(route.Object, "spec", "host")
	if err != nil || host == "" {
		return nil, errors.New("the Route of Prometheus has no host")
	}
	ca, err := authorities(p.config)
	if err != nil {
		return nil, err
	}
	return prometheus.New(prometheus.Options{
		HTTPClient: httpclient.Options{URL: "https://" + host, CA: ca, Token: p.token, Proxy: http.ProxyFromEnvironment},
		Watchdog:   Watchdog,
	})
}

// token returns the bearer token that the user authenticates with to the API server.
func (p routedPrometheus) token(ctx context.Context) (string, error) {
	var header string
	wrapped, err := rest.HTTPWrappersForConfig(p.config, roundTripper(func(request *http.Request) (*http.Response, error) {
		header = request.Header.Get("Authorization")
		return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody}, nil
	}))
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.config.Host, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := wrapped.RoundTrip(request)
	if err != nil {
		return "", err
	}
	if err := response.Body.Close(); err != nil {
		return "", err
	}
	token, found := strings.CutPrefix(header, "Bearer ")
	if !found {
		return "", errors.New("the kubeconfig has no token, which Prometheus requires; log in with \"oc login\"")
	}
	return token, nil
}

// authorities returns the CA certificates of the API server, which also sign the Route's certificate. It
// returns nil to use the system's CA certificates.
func authorities(config *rest.Config) ([]byte, error) {
	if len(config.CAData) > 0 || config.CAFile == "" {
		return config.CAData, nil
	}
	ca, err := os.ReadFile(config.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the authorities of the API server: %w", err)
	}
	return ca, nil
}

// roundTripper is a function that serves requests.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip serves a request.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
