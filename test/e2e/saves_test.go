// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
)

// saves is a proxy between the operator and the API server that intercepts each request that saves
// the steps of an upgrade.
type saves struct {
	t      *testing.T
	access *rest.Config // of the operator to the proxy
	proxy  *httputil.ReverseProxy

	mu sync.Mutex // held during a save
	// onSave is called before steps are saved. It forwards the request by calling pass, and pass reports whether
	// the steps were saved. If onSave is nil, all requests are forwarded.
	onSave func(steps []history.StepCondition, pass func() bool)
}

func startSaves(t *testing.T, cluster *devcluster.Cluster) *saves {
	t.Helper()
	s := &saves{t: t, proxy: proxyOf(t, cluster.RESTConfig())}
	s.access = serveProxy(t, s)
	return s
}

// proxyOf returns a proxy of an API server. It trusts the server, and forwards the credentials of its clients.
func proxyOf(t *testing.T, server *rest.Config) *httputil.ReverseProxy {
	t.Helper()
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(server))
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(server.Host)
	if err != nil {
		t.Fatal(err)
	}
	return &httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		// A request of a killed operator ends with an error.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
}

// serveProxy serves a handler over TLS, and returns how clients connect to it.
func serveProxy(t *testing.T, handler http.Handler) *rest.Config {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of connections that end when the operator is killed
	server.StartTLS()
	t.Cleanup(server.Close)
	vouches := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: vouches}}
}

// ServeHTTP forwards a request and its response.
func (s *saves) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, "/upgradeconfigs/") || !strings.HasSuffix(r.URL.Path, "/status") {
		s.proxy.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	// A save that is forwarded also ends if the operator is killed meanwhile, so its outcome is known.
	r = r.WithContext(context.WithoutCancel(r.Context()))
	r.Body = io.NopCloser(bytes.NewReader(body))

	s.mu.Lock()
	defer s.mu.Unlock()
	answer := httptest.NewRecorder()
	pass := func() bool {
		s.proxy.ServeHTTP(answer, r)
		return answer.Code == http.StatusOK
	}
	if s.onSave == nil {
		pass()
	} else {
		s.onSave(s.steps(body), pass)
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // the client may have disconnected
}

// steps returns the steps of the newest attempt, or nil if the patch has none.
func (s *saves) steps(body []byte) []history.StepCondition {
	var patch struct {
		Status upgradev1alpha1.UpgradeConfigStatus `json:"status"`
	}
	if err := json.Unmarshal(body, &patch); err != nil {
		s.t.Errorf("reading a patch: %v\n%s", err, body)
	}
	if len(patch.Status.History) == 0 {
		return nil
	}
	return patch.Status.History[0].Conditions
}

// setOnSave sets or clears onSave.
func (s *saves) setOnSave(at func(steps []history.StepCondition, pass func() bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onSave = at
}
